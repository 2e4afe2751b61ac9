package wrap

import (
	"os"
	"path"
	"strings"
)

// resolver finds interpreters by name in a fixed list of directories: the nix
// profile, where no interpreter has a well-known place.
type resolver struct {
	dirs   []string
	exists func(abs string) bool
}

// hostExecutable is the default of ScriptOptions.Lookup.
func hostExecutable(abs string) bool {
	fi, err := os.Stat(abs)
	return err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0
}

// find returns the absolute path of the first interpreter of that name. A Python
// of another version stands in for one that is missing: AMD's scripts name the
// version that they were built with, not one that they need. "" means not found.
func (r resolver) find(interp string) string {
	name := path.Base(interp)
	if !plainName.MatchString(name) {
		return ""
	}
	if abs := r.lookup(name); abs != "" {
		return abs
	}
	if pythonName.MatchString(name) && name != "python3" {
		return r.lookup("python3")
	}
	return ""
}

func (r resolver) lookup(name string) string {
	for _, d := range r.dirs {
		if !path.IsAbs(d) || strings.ContainsAny(d, " \t\r\n\x00") || splitSpecial.MatchString(d) {
			continue
		}
		if abs := path.Join(d, name); r.exists(abs) {
			return abs
		}
	}
	return ""
}

// shebang is what s should be where every interpreter has an absolute path.
func (r resolver) shebang(s shebang) (out shebang, reason string) {
	if isTemplate(s.interp) {
		return s, "an unfilled template"
	}
	if isEnv(s.interp) {
		return r.env(s)
	}
	abs := r.find(s.interp)
	if abs == "" {
		return s, "not in the interpreter path"
	}
	out = s
	out.interp = abs
	return out, ""
}

// env takes env out of a line that only used it to search PATH, and keeps it
// where it does more: options, assignments, several arguments, escapes.
func (r resolver) env(s shebang) (out shebang, reason string) {
	call, ok := parseEnv(s.arg)
	if !ok {
		return s, "an env line of a form not known"
	}
	abs := r.find(call.command)
	if abs == "" {
		return s, call.command + " is not in the interpreter path"
	}
	out = s
	args := strings.TrimLeft(call.after, " \t")
	oneWord := !strings.ContainsAny(args, " \t") && !splitSpecial.MatchString(args)
	if call.plain && (oneWord || !call.split) {
		out.interp, out.arg = abs, args
		out.gap = call.after[:len(call.after)-len(args)]
		return out, ""
	}
	env := r.find("env")
	if env == "" {
		return s, "env is not in the interpreter path"
	}
	out.interp = env
	out.arg = call.before + abs + call.after
	return out, ""
}
