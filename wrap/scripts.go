package wrap

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
)

// Ruleset is the version of all rules of this package; it grows when the bytes
// that they give change, and is part of a prefix's recipe.
const Ruleset = 2

// The profiles: where interpreters are found.
const (
	FHS = "fhs" // well-known places and PATH
	Nix = "nix" // absolute paths from a list of directories
)

// RuleInterpreter is the name of the rule that corrects a script's first line.
const RuleInterpreter = "interpreter"

// ScriptOptions says which host the scripts are for.
type ScriptOptions struct {
	Profile         string                // FHS (the default) or Nix
	InterpreterPath []string              // absolute directories searched in order; Nix only
	Lookup          func(abs string) bool // whether that file of the host can be executed; nil asks the host
}

// Scripts edits the text files of one tree. Its methods may be called
// concurrently.
type Scripts struct {
	nix      bool
	resolver resolver

	mu         sync.Mutex
	unresolved map[Unresolved]struct{}
}

// Unresolved is a script whose interpreter nothing provides. The script is
// left as it was.
type Unresolved struct {
	Path        string // relative to the ROCm tree
	Interpreter string // what its first line says, without "#!"
	Reason      string
}

// NewScripts returns an editor for the scripts and text files of one tree.
func NewScripts(o ScriptOptions) *Scripts {
	if o.Lookup == nil {
		o.Lookup = hostExecutable
	}
	return &Scripts{
		nix:        o.Profile == Nix,
		resolver:   resolver{dirs: slices.Clone(o.InterpreterPath), exists: o.Lookup},
		unresolved: map[Unresolved]struct{}{},
	}
}

// Wants reports whether Edit could have something to do with a file, from its
// path relative to the ROCm tree and its first bytes (a few hundred are plenty).
func (s *Scripts) Wants(path string, head []byte) bool {
	if bytes.HasPrefix(head, []byte("#!")) {
		return true
	}
	return bytes.IndexByte(head, 0) < 0 && len(rulesFor(path, head)) > 0
}

// Edit returns the file as it should be and the names of the rules that
// changed it. A file with nothing to change is returned as it is, with no
// rules. Edit depends on its arguments, the options and, in the nix profile, on
// Lookup alone; it is idempotent; data is not modified. A script that cannot be
// put right is remembered for Unresolved and is no error.
func (s *Scripts) Edit(path string, mode fs.FileMode, data []byte) (out []byte, rules []string, err error) {
	out, changed := s.interpreter(path, mode, data)
	if changed {
		rules = append(rules, RuleInterpreter)
	}
	for _, r := range rulesFor(path, out) {
		edited, err := r.apply(path, mode, out)
		if err != nil {
			return data, nil, fmt.Errorf("edit %s by rule %s: %w", path, r.name, err)
		}
		if !bytes.Equal(edited, out) {
			out = edited
			rules = append(rules, r.name)
		}
	}
	return out, rules, nil
}

// interpreter applies the interpreter rule: nothing after the first line changes,
// but where sh is to start another one from the second.
func (s *Scripts) interpreter(path string, mode fs.FileMode, data []byte) ([]byte, bool) {
	old, whole, ok := parseShebang(data)
	if !ok {
		return data, false
	}
	if !whole {
		s.report(path, old, "a first line with no end")
		return data, false
	}
	want, reason := fhsShebang, ""
	if s.nix {
		want = s.resolver.shebang
	}
	line, reason := want(old)
	if reason == "" && line.len() > maxShebang {
		reason = fmt.Sprintf("a first line of %d bytes, the kernel reads %d", line.len(), maxShebang)
	}
	if reason != "" {
		s.report(path, old, reason)
		return data, false
	}
	if mode&0o111 != 0 && strings.Contains(line.tail, "\r") {
		s.report(path, old, "a carriage return ends the first line, and the kernel takes it as part of the name")
	}
	end := len(old.String())
	rest, interp, reason := s.trampolineTo(old, data[end:])
	if reason != "" {
		s.report(path, shebang{interp: interp}, reason)
	}
	if line == old && bytes.Equal(rest, data[end:]) {
		return data, false
	}
	return append([]byte(line.String()), rest...), true
}

func (s *Scripts) report(path string, old shebang, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := old.interp + old.gap + old.arg
	s.unresolved[Unresolved{Path: path, Interpreter: line[:min(len(line), maxFirstLine)], Reason: reason}] = struct{}{}
}

// Unresolved lists the scripts seen so far whose interpreter nothing provides,
// sorted by path, each once.
func (s *Scripts) Unresolved() []Unresolved {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Unresolved, 0, len(s.unresolved))
	for u := range s.unresolved {
		list = append(list, u)
	}
	slices.SortFunc(list, func(a, b Unresolved) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Interpreter, b.Interpreter), cmp.Compare(a.Reason, b.Reason))
	})
	return list
}
