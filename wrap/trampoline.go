package wrap

import (
	"bytes"
	"path"
	"regexp"
	"slices"
)

// trampoline matches the second and third line of a script by which pip gets
// around the kernel's limit on the first: sh runs the second, and to Python both
// are one string (distlib, ScriptMaker._build_shebang). Group 2 is the
// interpreter, 1 and 3 its quotes.
var trampoline = regexp.MustCompile(`^\n'''exec' (["']?)(/[^\s"'$\\` + "`" + `]+)(["']?)((?: -[A-Za-z]+)*) "\$0" "\$@"[ \t]*\n' '''[ \t]*(?:\n|$)`)

// trampolineTo puts another interpreter into rest, what follows the first line of
// a script. It returns what stood there, "" if it is none of sh's. A reason says
// why it stays although it cannot work.
func (s *Scripts) trampolineTo(first shebang, rest []byte) (out []byte, interp, reason string) {
	if path.Base(first.interp) != "sh" || first.arg != "" {
		return rest, "", ""
	}
	m := trampoline.FindSubmatchIndex(rest)
	if m == nil || !bytes.Equal(rest[m[2]:m[3]], rest[m[6]:m[7]]) {
		return rest, "", ""
	}
	interp = string(rest[m[4]:m[5]])
	to := interp
	switch {
	case s.nix:
		if to = s.resolver.find(interp); to == "" {
			return rest, interp, "not in the interpreter path"
		}
	case !onHost(interp):
		// exec looks for a bare name in PATH, as env does.
		if to = portableName(interp); to == "" {
			return rest, interp, "a builder's path with no usable name"
		}
	}
	return slices.Concat(rest[:m[4]], []byte(to), rest[m[5]:]), interp, ""
}
