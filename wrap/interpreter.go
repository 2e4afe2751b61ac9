package wrap

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"
)

// maxShebang is the longest first line that the kernel reads whole, in bytes,
// without its newline: BINPRM_BUF_SIZE (256) less one.
const maxShebang = 255

// maxFirstLine bounds the search for the end of a first line.
const maxFirstLine = 4096

// hostDirs are where a distribution keeps interpreters: whatever lives below
// them is the host's own and no builder's.
var hostDirs = []string{"/bin/", "/sbin/", "/usr/", "/lib/", "/lib64/", "/etc/"}

var (
	// plainName is an interpreter's name that needs quoting nowhere.
	plainName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._+-]*$`)
	// pythonName is any name of a Python 3, or of one with no version.
	pythonName = regexp.MustCompile(`^python(3(\.[0-9]+)?)?$`)
	// splitSpecial are the bytes to which `env -S` gives a meaning.
	splitSpecial = regexp.MustCompile("[\\\\$\"'#\v\f]")
)

// shebang is the first line of a script, in parts that join to the whole line.
type shebang struct {
	lead   string // "#!" and the blanks after it
	interp string // the program that the kernel starts
	gap    string // blanks between it and the argument
	arg    string // the one argument that the kernel passes
	tail   string // trailing blanks and carriage return
}

// parseShebang reads the first line of data. Data that does not start with "#!"
// and a path is no script: Rust attributes, binary data and "#!python" are
// not. whole is false for a line with no end in sight.
func parseShebang(data []byte) (s shebang, whole, ok bool) {
	if !bytes.HasPrefix(data, []byte("#!")) {
		return s, false, false
	}
	line, whole := firstLine(data)
	if strings.IndexByte(line, 0) >= 0 {
		return s, false, false
	}
	body := strings.TrimRight(line, " \t\r")
	s.tail = line[len(body):]
	rest := strings.TrimLeft(body[min(2, len(body)):], " \t")
	s.lead = body[:len(body)-len(rest)]
	end := strings.IndexAny(rest, " \t")
	if end < 0 {
		end = len(rest)
	}
	s.interp = rest[:end]
	s.arg = strings.TrimLeft(rest[end:], " \t")
	s.gap = rest[end : len(rest)-len(s.arg)]
	if s.interp == "" || s.interp[0] != '/' && !isTemplate(s.interp) {
		return s, whole, false
	}
	return s, whole, true
}

// firstLine returns data up to its first newline, and whether that was found
// or the data ended. It looks at maxFirstLine bytes at most.
func firstLine(data []byte) (string, bool) {
	head := data[:min(len(data), maxFirstLine)]
	if i := bytes.IndexByte(head, '\n'); i >= 0 {
		return string(head[:i]), true
	}
	return string(head), len(head) == len(data)
}

func (s shebang) len() int {
	return len(s.lead) + len(s.interp) + len(s.gap) + len(s.arg)
}

func (s shebang) String() string { return s.lead + s.interp + s.gap + s.arg + s.tail }

// isTemplate tells a placeholder that a build was to fill in, such as
// @PYTHON_EXECUTABLE@ or ${PYTHON}.
func isTemplate(interp string) bool {
	return strings.Count(interp, "@") >= 2 || strings.Contains(interp, "${") || strings.Contains(interp, "{{")
}

// onHost reports whether an absolute interpreter is the host's and not a builder's.
func onHost(interp string) bool {
	clean := path.Clean(interp)
	return slices.ContainsFunc(hostDirs, func(d string) bool { return strings.HasPrefix(clean, d) })
}

// isEnv reports whether an interpreter is env, wherever it lies.
func isEnv(interp string) bool { return path.Base(interp) == "env" }

// portableName is the name under which PATH should find what a builder called
// interp: any Python 3 is python3, other names stay. "" means that it has none.
func portableName(interp string) string {
	name := path.Base(interp)
	switch {
	case !plainName.MatchString(name):
		return ""
	case pythonName.MatchString(name):
		return "python3"
	}
	return name
}

// fhsShebang is what s should be where interpreters are found through PATH.
// A reason says why it is left as it is although it cannot work.
func fhsShebang(s shebang) (out shebang, reason string) {
	if isTemplate(s.interp) {
		return s, "an unfilled template"
	}
	if isEnv(s.interp) {
		return fhsEnv(s)
	}
	if onHost(s.interp) {
		return s, ""
	}
	name := portableName(s.interp)
	if name == "" {
		return s, "a builder's path with no usable name"
	}
	out = s
	out.interp = "/usr/bin/env " + name
	if s.arg != "" {
		out.interp = "/usr/bin/env -S " + name
		out.arg = escapeSplit(s.arg)
	}
	return out, ""
}

// fhsEnv corrects an env line: env itself when it is a builder's, and the
// command when that is an absolute path of a builder.
func fhsEnv(s shebang) (out shebang, reason string) {
	out = s
	if !onHost(s.interp) {
		out.interp = "/usr/bin/env"
	}
	call, ok := parseEnv(s.arg)
	switch {
	case isTemplate(call.command):
		return s, "an unfilled template"
	case !ok && namesBuilder(s.arg):
		return out, "a builder's path in a form of env that is not known"
	case !ok:
		return out, ""
	case !call.split && strings.ContainsAny(s.arg, " \t"):
		return out, "several words for env, which gets them as one without -S"
	case call.command[0] != '/' || onHost(call.command):
		return out, ""
	}
	name := portableName(call.command)
	if name == "" {
		return s, "a builder's path with no usable name"
	}
	out.arg = call.before + name + call.after
	return out, ""
}

// namesBuilder reports whether a word of env's argument is an absolute path of a
// builder, quoted or not.
func namesBuilder(arg string) bool {
	words := strings.FieldsFunc(arg, func(r rune) bool { return strings.ContainsRune(" \t\"'=", r) })
	return slices.ContainsFunc(words, func(w string) bool { return w[0] == '/' && !onHost(w) })
}

// escapeSplit writes a kernel argument so that env -S splits it at blanks and
// changes nothing else.
func escapeSplit(arg string) string {
	return splitSpecial.ReplaceAllStringFunc(arg, func(c string) string {
		switch c {
		case "\v":
			return `\v`
		case "\f":
			return `\f`
		}
		return `\` + c
	})
}

// envCall is the argument of an env line, cut around the command that it runs.
type envCall struct {
	before  string // options and assignments, with the blanks after them
	command string
	after   string // the command's arguments, with the blanks before them
	split   bool   // -S was given, so that the arguments are several words
	plain   bool   // nothing but perhaps -S stands before the command
}

// envWord is one word of an env line with the blanks after it.
var envWord = regexp.MustCompile(`^([^ \t]+)([ \t]*)`)

// parseEnv finds the command in the argument of env. The options known are those
// that change what the command sees: -i, -u, -C, assignments and -S; with another,
// with a quoted command, or with env again, ok is false.
func parseEnv(arg string) (c envCall, ok bool) {
	c.plain = true
	rest, value := arg, false
	for rest != "" {
		m := envWord.FindStringSubmatch(rest)
		if m == nil {
			return c, false
		}
		word := m[1]
		kind := envOption(word)
		switch {
		case value:
			value = false
		case kind == envSplit:
			if c.split {
				return c, false
			}
			c.split = true
			if glued := splitGlued(word); glued != "" {
				c.before += word[:len(word)-len(glued)]
				rest = rest[len(word)-len(glued):]
				continue
			}
		case kind == envCommand:
			c.command, c.after = word, rest[len(word):]
			return c, !splitSpecial.MatchString(word) && !isEnv(word)
		case kind == envUnknown:
			return c, false
		default:
			c.plain = false
			value = kind == envTakesValue
		}
		c.before += m[0]
		rest = rest[len(m[0]):]
	}
	return c, false
}

type envKind int

const (
	envCommand envKind = iota
	envSplit
	envFlag
	envTakesValue
	envUnknown
)

// envOption tells what a word before the command means to env.
func envOption(word string) envKind {
	switch {
	case strings.HasPrefix(word, "-S"), strings.HasPrefix(word, "--split-string="):
		return envSplit
	case word == "-", word == "-i", word == "--ignore-environment", word == "--":
		return envFlag
	case word == "-u", word == "-C":
		return envTakesValue
	case strings.HasPrefix(word, "-u"), strings.HasPrefix(word, "-C"),
		strings.HasPrefix(word, "--unset="), strings.HasPrefix(word, "--chdir="):
		return envFlag
	case word[0] == '-':
		return envUnknown
	case strings.Contains(word, "="):
		return envFlag
	}
	return envCommand
}

// splitGlued is the text that follows -S in the same word, if any.
func splitGlued(word string) string {
	if after, found := strings.CutPrefix(word, "--split-string="); found {
		return after
	}
	return strings.TrimPrefix(word, "-S")
}
