package pinfile

import (
	"bytes"
	"regexp"
	"strings"
)

// dockerLine is one instruction: its bytes without what continues lines, as
// runs of the file.
type dockerLine struct {
	word  string // the instruction, in upper case
	at    int
	words []dockerWord
	rest  dockerWord // all after the instruction
	docs  []string   // what ends the here-documents that follow
}

// dockerWord is a word with where it stands; joined says that a line was
// continued within it.
type dockerWord struct {
	start, end int
	joined     bool
}

var (
	dockerEscape  = regexp.MustCompile("(?i)^#[ \t]*escape[ \t]*=[ \t]*([\\\\`])[ \t]*$")
	dockerDirect  = regexp.MustCompile(`^#[ \t]*[A-Za-z][A-Za-z0-9]*[ \t]*=`)
	dockerHeredoc = regexp.MustCompile(`(?:^|[ \t])[0-9]*<<-?(["']?)([A-Za-z_][A-Za-z0-9_.]*)["']?`)
)

// dockerLexer splits a Dockerfile into instructions.
type dockerLexer struct {
	t      *codeTree
	src    []byte
	escape byte
	i      int
}

func newDockerLexer(t *codeTree) *dockerLexer {
	l := &dockerLexer{t: t, src: t.src, escape: '\\'}
	for i := 0; i < len(l.src); {
		line := bytes.TrimRight(l.src[i:i+lineLen(l.src[i:])], "\r")
		if !dockerDirect.Match(line) {
			break
		}
		if m := dockerEscape.FindSubmatch(line); m != nil {
			l.escape = m[1][0]
		}
		i += lineLen(l.src[i:]) + 1
	}
	return l
}

// physical returns the line at i without its end.
func (l *dockerLexer) physical(i int) []byte { return l.src[i : i+lineLen(l.src[i:])] }

// continues reports whether the next line belongs to this one, and where the
// text before the escape ends.
func (l *dockerLexer) continues(line []byte) (int, bool) {
	trimmed := bytes.TrimRight(line, " \t\r")
	if len(trimmed) > 0 && trimmed[len(trimmed)-1] == l.escape {
		return len(trimmed) - 1, true
	}
	return len(trimmed), false
}

// next returns the next instruction; ok is false at the end.
func (l *dockerLexer) next() (out dockerLine, ok bool) {
	for l.i < len(l.src) {
		line := l.physical(l.i)
		trimmed := bytes.TrimLeft(line, " \t\r")
		if len(trimmed) == 0 || trimmed[0] == '#' {
			l.t.comment(l.i, l.i+len(line))
			l.i += len(line) + 1
			continue
		}
		return l.instruction(), true
	}
	return dockerLine{}, false
}

func (l *dockerLexer) instruction() dockerLine {
	runs := l.logical()
	w := &dockerWords{src: l.src, escape: l.escape, runs: runs}
	words := w.split()
	out := dockerLine{at: words[0].start, word: strings.ToUpper(string(l.src[words[0].start:words[0].end])), words: words[1:]}
	out.rest = dockerWord{words[0].end, runs[len(runs)-1][1], len(runs) > 1}
	if out.word == "RUN" || out.word == "COPY" || out.word == "ADD" {
		for _, m := range dockerHeredoc.FindAllSubmatch(l.src[out.rest.start:out.rest.end], 20) {
			out.docs = append(out.docs, string(m[2]))
		}
	}
	return out
}

// logical returns the runs of bytes that make one instruction, and steps over
// it.
func (l *dockerLexer) logical() [][2]int {
	var runs [][2]int
	for l.i < len(l.src) {
		line := l.physical(l.i)
		if trimmed := bytes.TrimLeft(line, " \t\r"); len(runs) > 0 && (len(trimmed) == 0 || trimmed[0] == '#') {
			// A comment or an empty line does not end what is continued.
			l.t.comment(l.i, l.i+len(line))
			l.i += len(line) + 1
			continue
		}
		n, more := l.continues(line)
		runs = append(runs, [2]int{l.i, l.i + n})
		if l.i = min(l.i+len(line)+1, len(l.src)); !more {
			break
		}
	}
	return runs
}

// heredoc steps over the lines up to the one that is end, and returns them.
func (l *dockerLexer) heredoc(end string) [][2]int {
	var lines [][2]int
	for l.i < len(l.src) {
		line := l.physical(l.i)
		at := l.i
		l.i = min(l.i+len(line)+1, len(l.src))
		if strings.TrimSpace(string(line)) == end {
			break
		}
		lines = append(lines, [2]int{at, at + len(line)})
	}
	return lines
}

// dockerWords splits runs into words as Docker does: at blanks outside quotes.
type dockerWords struct {
	src    []byte
	escape byte
	runs   [][2]int
}

func (w *dockerWords) split() []dockerWord {
	var out []dockerWord
	var quote byte
	open := false
	for n, run := range w.runs {
		if open && n > 0 {
			out[len(out)-1].joined = true
		}
		for i := run[0]; i < run[1]; i++ {
			c := w.src[i]
			if quote == 0 && (c == ' ' || c == '\t' || c == '\r') {
				open = false
				continue
			}
			if !open {
				out = append(out, dockerWord{start: i})
				open = true
			}
			switch {
			case c == w.escape && quote != '\'' && i+1 < run[1]:
				i++
			case quote == c:
				quote = 0
			case quote == 0 && (c == '"' || c == '\''):
				quote = c
			}
			out[len(out)-1].end = i + 1
		}
	}
	if len(out) == 0 {
		// A line of nothing but the escape.
		out = append(out, dockerWord{start: w.runs[0][0], end: w.runs[0][0]})
	}
	return out
}
