package diff

import (
	"context"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// maxVersionFile bounds a file that tells a version, bytes.
const maxVersionFile = 256 << 10

// maxVersion bounds what counts as a version, bytes.
const maxVersion = 100

// versions compares what the trees say of their parts.
func (c *comparer) versions(context.Context) error {
	add := func(name string, from, to string, source string) {
		c.r.Versions = append(c.r.Versions, VersionChange{name, from, to, source})
	}
	add("ROCm", c.rocm(c.a), c.rocm(c.b), "")
	add("HIP", c.hip(c.a), c.hip(c.b), "")
	add("LLVM", llvm(c.a), llvm(c.b), "lib/llvm/lib/clang")
	var told []VersionChange
	for i := range c.pairs {
		if p := &c.pairs[i]; p.state != same {
			if v, ok := c.told(p.a, p.b); ok && v.From != v.To {
				told = append(told, v)
			}
		}
	}
	for _, f := range c.added {
		if v, ok := c.told(nil, f); ok && v.To != "" {
			told = append(told, v)
		}
	}
	for _, f := range c.removed {
		if v, ok := c.told(f, nil); ok && v.From != "" {
			told = append(told, v)
		}
	}
	slices.SortFunc(told, func(x, y VersionChange) int {
		return strings.Compare(x.Name+"\x00"+x.Source, y.Name+"\x00"+y.Source)
	})
	c.r.Versions = append(c.r.Versions, cut(told, c.limit)...)
	return nil
}

// told is the version of a part before and after, by a file that tells it; a or
// b may be nil.
func (c *comparer) told(a, b *file) (VersionChange, bool) {
	f := b
	if f == nil {
		f = a
	}
	name, find := teller(f)
	if find == nil {
		return VersionChange{}, false
	}
	v := VersionChange{Name: name, Source: f.Path}
	for _, one := range []struct {
		s  *side
		f  *file
		to *string
	}{{c.a, a, &v.From}, {c.b, b, &v.To}} {
		if one.f == nil || !one.f.regular() || one.f.Size > maxVersionFile {
			continue
		}
		text, err := one.s.text(one.f.Path, maxVersionFile)
		if err != nil {
			c.note("files that tell versions and cannot be read", one.f.Path, err)
			return v, false
		}
		*one.to = short(find(string(text)))
	}
	return v, true
}

// short is s if it is of the length of a version, else its beginning.
func short(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > maxVersion {
		s = strings.ToValidUTF8(s[:maxVersion], "") + "…"
	}
	return s
}

var (
	cmakeVersion = regexp.MustCompile(`(?m)^\s*set\s*\(\s*PACKAGE_VERSION\s+"?([^"\s)]+)"?\s*\)`)
	pcVersion    = regexp.MustCompile(`(?m)^Version:[ \t]*(\S.*)$`)
)

// teller says what a file tells the version of, and how to find it there; nil
// if it tells none.
func teller(f *file) (name string, find func(string) string) {
	if !f.regular() {
		return "", nil
	}
	dir, base := path.Split(f.Path)
	first := func(re *regexp.Regexp) func(string) string {
		return func(text string) string {
			if m := re.FindStringSubmatch(text); m != nil {
				return m[1]
			}
			return ""
		}
	}
	switch {
	case dir == ".info/" && strings.HasPrefix(base, "version"):
		name := strings.TrimLeft(strings.TrimPrefix(base, "version"), "-_.")
		if name == "" {
			name = ".info"
		}
		return name, func(text string) string { line, _, _ := strings.Cut(text, "\n"); return line }
	case strings.HasSuffix(base, ".pc"):
		return strings.TrimSuffix(base, ".pc") + " (pkg-config)", first(pcVersion)
	}
	for _, suffix := range []string{"-config-version.cmake", "ConfigVersion.cmake", "-version.cmake"} {
		if name, ok := strings.CutSuffix(base, suffix); ok && strings.Contains(dir, "cmake/") && name != "" {
			return name + " (CMake)", first(cmakeVersion)
		}
	}
	return "", nil
}

// rocm is the version of the whole: the fullest that a side knows.
func (c *comparer) rocm(s *side) string {
	if s.Version != "" {
		return short(s.Version)
	}
	if s.rock != nil && s.rock.ROCm != "" {
		return short(s.rock.ROCm)
	}
	return short(firstLine(c.small(s, ".info/version")))
}

func firstLine(s string) string { line, _, _ := strings.Cut(s, "\n"); return line }

// small reads a small file, "" if there is none.
func (c *comparer) small(s *side, p string) string {
	if f := s.byPath[p]; f == nil || !f.regular() {
		return ""
	}
	b, err := s.text(p, maxVersionFile)
	if err != nil {
		c.note("files that tell versions and cannot be read", p, err)
	}
	return string(b)
}

// hipFiles tell the version of HIP, in lines of HIP_VERSION_MAJOR=7.
var hipFiles = []string{"share/hip/version", "bin/.hipVersion"}

var hipVersion = regexp.MustCompile(`(?m)^HIP_VERSION_(MAJOR|MINOR|PATCH)[ \t]*=[ \t]*([0-9]+)`)

// hip is the version of HIP: by its file, else by the name of its library.
func (c *comparer) hip(s *side) string {
	for _, p := range hipFiles {
		got := map[string]string{}
		for _, m := range hipVersion.FindAllStringSubmatch(c.small(s, p), -1) {
			if got[m[1]] == "" {
				got[m[1]] = m[2]
			}
		}
		if got["MAJOR"] != "" && got["MINOR"] != "" {
			v := got["MAJOR"] + "." + got["MINOR"]
			if got["PATCH"] != "" {
				v += "." + got["PATCH"]
			}
			return short(v)
		}
	}
	best := ""
	for i := range s.files {
		v, ok := strings.CutPrefix(s.files[i].Path, "lib/libamdhip64.so.")
		if ok && len(v) > len(best) {
			best = v
		}
	}
	return short(best)
}

// llvm is the major version of LLVM: the directories of the compiler's headers.
func llvm(s *side) string {
	var found []string
	for i := range s.files {
		f := &s.files[i]
		for _, dir := range []string{"lib/llvm/lib/clang/", "llvm/lib/clang/"} {
			v, ok := strings.CutPrefix(f.Path, dir)
			if v, _, in := strings.Cut(v, "/"); ok && v != "" && (in || f.Kind == manifest.Dir) && !slices.Contains(found, v) && len(found) < 8 {
				found = append(found, v)
			}
		}
	}
	return short(strings.Join(found, ", "))
}
