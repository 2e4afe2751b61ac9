package omit

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// Names lists the rules, sorted.
func Names() []string {
	names := make([]string, 0, len(rules))
	for i := range rules {
		names = append(names, rules[i].name)
	}
	slices.Sort(names)
	return names
}

// Check reports a name that is no rule's.
func Check(names []string) error {
	for _, name := range names {
		if find(name) == nil {
			return fmt.Errorf("nothing is called %q that could be left out; there are %s", name, strings.Join(Names(), ", "))
		}
	}
	return nil
}

// Canonical is names as a manifest has them: sorted, each once; nil for none.
func Canonical(names []string) []string {
	if len(names) == 0 {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// ForTarget lists those of names that leave out what is of other GPUs, so that
// what they take depends on the target. They want exactly one.
func ForTarget(names []string) []string {
	return slices.DeleteFunc(Canonical(names), func(name string) bool {
		r := find(name)
		return r == nil || r.of == nil
	})
}

// CheckTarget reports that names cannot be honoured for target.
func CheckTarget(names []string, target string) error {
	of := ForTarget(names)
	switch {
	case len(of) == 0 || gfx.IsTarget(target):
		return nil
	case target == "":
		return fmt.Errorf("to leave out %s of other GPUs, the GPU must be known: name its target, such as gfx1151", strings.Join(of, " and "))
	}
	return fmt.Errorf("to leave out %s of other GPUs, one target must be named, such as gfx1151: %s stands for several", strings.Join(of, " and "), target)
}

func find(name string) *rule {
	i := slices.IndexFunc(rules, func(r rule) bool { return r.name == name })
	if i < 0 {
		return nil
	}
	return &rules[i]
}

// Set is some rules together, for one tarball. It belongs to one goroutine.
type Set struct {
	rules  []compiled
	target string
	served bool            // something of the libraries' kernels is the target's own
	others map[string]bool // GPUs whose kernels are left out
}

// maxOthers bounds the GPUs that are remembered, for a message.
const maxOthers = 64

// New makes a set of rules for a target, which may be "" unless ForTarget has
// one of them.
func New(names []string, target string) (*Set, error) {
	if err := Check(names); err != nil {
		return nil, err
	}
	if err := CheckTarget(names, target); err != nil {
		return nil, err
	}
	s := &Set{target: target, others: map[string]bool{}}
	for _, name := range Canonical(names) {
		s.rules = append(s.rules, find(name).compile())
	}
	return s, nil
}

// Hit returns the rule that takes an entry out, by its path in the ROCm tree;
// "" for none. Where sure is set, no file for this processor can need it, so
// that it can be dropped as it streams by; otherwise a library or a program of
// what is kept may. Directories are never hit: they go when they are empty.
func (s *Set) Hit(name string, kind manifest.Kind) (rule string, sure bool) {
	if kind == manifest.Dir {
		return "", false
	}
	parts := strings.Split(name, "/")
	for i := range s.rules {
		if r := &s.rules[i]; r.takes(parts) && !s.serves(r, parts) {
			return r.name, r.sure(parts[len(parts)-1])
		}
	}
	return "", false
}

// serves reports whether the target may need what a rule is about.
func (s *Set) serves(r *compiled, parts []string) bool {
	if r.of == nil {
		return false
	}
	gpus := r.of(parts)
	if len(gpus) == 0 {
		return true
	}
	serves := slices.ContainsFunc(gpus, func(gpu string) bool { return gfx.MayRun(gpu, s.target) })
	switch {
	case r.name != kernels || !slices.Contains(parts, ".kpack") && !slices.Contains(parts, "library"):
		// Nothing that every target has.
	case serves:
		s.served = true
	case len(s.others) < maxOthers:
		s.others[gpus[0]] = true
	}
	return serves
}

// Mismatch reports, once all entries have been asked about, that nothing is
// left of the kernels: the tarball is another target's.
func (s *Set) Mismatch() error {
	if s.served || len(s.others) == 0 {
		return nil
	}
	has := slices.Sorted(maps.Keys(s.others))
	return fmt.Errorf("the tarball has no kernels for %s, but for %s: take the tarball of that target, or do not leave out %s",
		s.target, strings.Join(has[:min(len(has), 8)], ", "), kernels)
}

// IsLibrary reports whether a file is named as a shared library is: whatever
// is at its path, a program may ask for one of that name.
func IsLibrary(base string) bool {
	return strings.HasSuffix(base, ".so") || strings.Contains(base, ".so.")
}

// data are the endings of files that are no ELF for this processor, whatever
// they are.
var data = []string{
	".a", ".bat", ".bc", ".bin", ".bz2", ".c", ".cc", ".cfg", ".cl", ".cmake", ".co", ".cpp", ".csv", ".dat", ".data", ".def",
	".gz", ".h", ".hpp", ".hsaco", ".html", ".in", ".inc", ".inl", ".ini", ".ipp", ".json", ".kpack", ".md", ".modulemap", ".mtx", ".out",
	".png", ".py", ".pyi", ".rst", ".toml", ".td", ".txt", ".whl", ".xml", ".xz", ".yaml", ".yml", ".zst",
}

// sure reports whether a file of that name can be left out unseen.
func (c *compiled) sure(base string) bool {
	if IsLibrary(base) {
		return false
	}
	return !c.programs || slices.Contains(data, path.Ext(base))
}
