package audit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Limits on what is remembered of one text file.
const (
	maxLeaks    = 3   // lines that are quoted
	maxLeakText = 120 // bytes of a quoted line
)

// leaks are the lines of a text that name a build machine's directory, or
// another ROCm.
type leaks struct {
	count int
	first []leak
}

type leak struct {
	line int // from 1
	text string
}

// leakedPaths reports directories of build machines: in run paths, where they
// are searched, and in text that configures other builds.
func leakedPaths(ctx context.Context, a *auditor) error {
	for _, e := range a.tree.all {
		if e.hostELF() {
			a.leakedRunPath(e)
		}
		if e.leaks.count > 0 {
			a.leakedText(e)
		}
	}
	if !a.binaries {
		return nil
	}
	return a.scanBinaries(ctx)
}

func (a *auditor) leakedRunPath(e *entry) {
	for elem := range strings.SplitSeq(e.elf.RPath+":"+e.elf.RunPath, ":") {
		if builderPlace(elem+"/") && leaked(without([]byte(elem+"/"), a.tree.own)) {
			a.file(Finding{Rule: RuleLeakedPath, Severity: Required, Path: e.path, Subject: elem,
				Detail: "its run path names a directory of the machine that built it: " + elem,
				Hint:   "repack it: whoever makes that directory chooses its libraries"})
		}
	}
}

func (a *auditor) leakedText(e *entry) {
	var b strings.Builder
	for i, l := range e.leaks.first {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "line %d: %s", l.line, l.text)
	}
	if more := e.leaks.count - len(e.leaks.first); more > 0 {
		fmt.Fprintf(&b, "; and %d more lines", more)
	}
	a.file(Finding{Rule: RuleLeakedPath, Severity: Warning, Path: e.path,
		Detail: "names directories that are not of this tree: " + b.String(),
		Hint:   "builds that read it look for files that are not there; repacking rewrites the forms that are known"})
}

// findLeaks reads a text line by line. A line longer than 64 KiB is taken in
// pieces. The tree's own place may look like a builder's, as it does in CI: names
// below one of own are no leaks.
func findLeaks(r io.Reader, own [][]byte, movable bool) (leaks, error) {
	var l leaks
	in := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; {
		line, err := in.ReadSlice('\n')
		if leaked(line) && leaked(without(line, own)) || movable && installed(line) && installed(without(line, own)) {
			if l.count++; len(l.first) < maxLeaks {
				l.first = append(l.first, leak{n, quoteLine(line)})
			}
		}
		switch {
		case err == nil:
			n++
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return l, nil
		default:
			return l, err
		}
	}
}

// movable tells whether a file should name the tree relative to itself: there is
// a form for it, and repack writes that. A tree that stands in /opt/rocm, or in a
// directory that a link of that name leads to, may as well say so.
func (t *tree) movable(base string) bool {
	for _, o := range t.own {
		if bytes.HasPrefix(o, installedRoot) {
			return false
		}
	}
	return strings.HasSuffix(base, ".pc") || strings.HasSuffix(base, "-config")
}

// installedRoot begins the directory that AMD's own packages are installed in.
var installedRoot = []byte("/opt/rocm")

// remark matches lines that name a directory to people.
var remark = regexp.MustCompile(`^\s*(#|Name:|Description:|URL:)`)

// installed tells whether a line takes files from /opt/rocm or /opt/rocm-10.2.0.
func installed(line []byte) bool {
	i := bytes.Index(line, installedRoot)
	if i < 0 || !startsPath(line[:i]) || remark.Match(line) {
		return false
	}
	rest := line[i+len(installedRoot):]
	return len(rest) == 0 || endsPart(rest[0]) || rest[0] == '-'
}

func without(line []byte, own [][]byte) []byte {
	for _, o := range own {
		line = bytes.ReplaceAll(line, o, []byte("."))
	}
	return line
}

func quoteLine(line []byte) string {
	s := strings.ToValidUTF8(string(bytes.TrimSpace(line)), "?")
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	if len(s) > maxLeakText {
		s = strings.ToValidUTF8(s[:maxLeakText], "") + "…"
	}
	return s
}

// leaked tells whether a line names a directory of a build machine.
func leaked(line []byte) bool {
	for _, b := range builderPaths {
		for from := 0; ; {
			i := bytes.Index(line[from:], []byte(b.prefix))
			if i < 0 {
				break
			}
			i += from
			from = i + len(b.prefix)
			if (b.anywhere || startsPath(line[:i])) && (!b.whole || from == len(line) || endsPart(line[from])) {
				return true
			}
		}
	}
	return false
}

// startsPath tells whether a path can start behind before: it is not the middle
// of a longer one. -I and -L may stand right in front.
func startsPath(before []byte) bool {
	if len(before) == 0 || bytes.HasSuffix(before, []byte("-I")) || bytes.HasSuffix(before, []byte("-L")) {
		return true
	}
	return !isPathByte(before[len(before)-1])
}

func endsPart(c byte) bool { return c == '/' || !isPathByte(c) }

func isPathByte(c byte) bool {
	return c == '_' || c == '-' || c == '.' || c == '}' || c == ')' || c == '/' || c == '~' || c == '@' || c == '%' ||
		'0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}

// scanBinaries counts the ELF files that hold such a path anywhere.
func (a *auditor) scanBinaries(ctx context.Context) error {
	var mu sync.Mutex
	count, example := 0, ""
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(a.jobs)
	for _, e := range a.tree.all {
		if e.elf == nil || !e.isFile() {
			continue
		}
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			found, err := a.scanBinary(e)
			if err != nil || !found {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if count++; example == "" || e.path < example {
				example = e.path
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if count > 0 {
		a.file(Finding{Rule: RuleLeakedPath, Severity: Warning, Path: example, Subject: "binaries",
			Detail: fmt.Sprintf("%d binaries hold paths of the machine that built them, this one among them", count),
			Hint:   "mostly names of sources in messages; nothing to do unless a program looks for files there"})
	}
	return nil
}

// scanBinary streams one file. Paths are looked for as in text; pieces overlap
// by more than the longest prefix.
func (a *auditor) scanBinary(e *entry) (bool, error) {
	f, err := a.tree.open(e.path)
	if err != nil {
		return false, nil // reported as unreadable
	}
	defer f.Close()
	const keep = 64
	buf := make([]byte, 256<<10)
	have := 0
	for {
		n, err := f.Read(buf[have:])
		if leaked(buf[:have+n]) {
			return true, nil
		}
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		have += n
		if have > keep {
			copy(buf, buf[have-keep:have])
			have = keep
		}
	}
}
