package aur

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/hostpkg"
)

// glibc is what the C library's package has.
var glibc = map[string]bool{
	"libc.so.6": true, "libm.so.6": true, "libdl.so.2": true, "libpthread.so.0": true, "librt.so.1": true,
	"libresolv.so.2": true, "libutil.so.1": true, "libanl.so.1": true, "libmvec.so.1": true, "ld-linux-x86-64.so.2": true,
}

// scripts are interpreters that a tree needs for a part of its programs.
var scripts = []struct {
	files *regexp.Regexp
	needs string // optdepends
}{
	{regexp.MustCompile(`\A(?:bin|libexec|share)/.*\.py\z`), "python: tools of ROCm that are written in Python"},
	{regexp.MustCompile(`\A(?:bin|libexec)/.*\.(?:pl|pm)\z`), "perl: tools of ROCm that are written in Perl"},
}

// needs sets what the package depends on: what the libraries and the compiler
// want of the host. What single programs or plugins want beside that is
// optional, and named with one of them.
func (p *Package) needs(t *tree, more []string) {
	arch := hostpkg.Distro{Family: hostpkg.Arch}
	core := t.hostNeeds(func(o object) bool { return isCore(o.path) })
	for _, lib := range slices.Sorted(maps.Keys(core)) {
		switch pkg := packageOf(arch, lib); {
		case strings.HasPrefix(lib, "libpython3."):
		case pkg == "":
			p.unknown(lib, core[lib])
		default:
			p.depends = add(p.depends, pkg)
		}
	}
	p.depends = add(p.depends, more...)
	slices.Sort(p.depends)
	p.optional(arch, t)
}

// optional sets optdepends, one line for each package.
func (p *Package) optional(arch hostpkg.Distro, t *tree) {
	wants := map[string][]string{}
	rest := t.hostNeeds(func(object) bool { return true })
	for _, lib := range slices.Sorted(maps.Keys(rest)) {
		switch pkg := packageOf(arch, lib); {
		case slices.Contains(p.depends, pkg):
		case pkg == "" && !slices.ContainsFunc(rest[lib], isCore): // a core one has been told of
			p.unknown(lib, rest[lib])
		case pkg != "":
			wants[pkg] = add(wants[pkg], rest[lib]...)
		}
	}
	told := func(pkg string) bool { return slices.Contains(p.depends, pkg) || len(wants[pkg]) > 0 }
	for _, s := range scripts {
		if pkg, _, _ := strings.Cut(s.needs, ":"); !told(pkg) && t.any(s.files) {
			p.optdepends = append(p.optdepends, s.needs)
		}
	}
	for pkg, paths := range wants {
		p.optdepends = append(p.optdepends, pkg+": "+users(paths))
	}
	slices.Sort(p.optdepends)
}

// isCore tells a part that everything else works with: the libraries that
// programs are linked with, and the compiler.
func isCore(file string) bool {
	switch path.Dir(file) {
	case "lib", "lib/llvm/bin", "lib/llvm/lib":
		return true
	}
	return false
}

// packageOf is the package of Arch that has a library, "" if none is known to.
func packageOf(arch hostpkg.Distro, lib string) string {
	switch {
	case glibc[lib]:
		return "glibc"
	case strings.HasPrefix(lib, "libpython3."):
		return "python" // of which Arch has one: rocgdb brings a program for each version
	}
	return arch.Package(lib)
}

// unknown notes a need that no package is known for.
func (p *Package) unknown(lib string, by []string) {
	p.Notes = append(p.Notes, fmt.Sprintf("%s is needed by %s, and no package of Arch is known to have it: find out, and name it with --depends", quoted(lib), users(by)))
}

// users names one of those that want something, and says how many more there
// are.
func users(paths []string) string {
	slices.Sort(paths)
	first := quoted(paths[0])
	for _, name := range paths { // somebody knows programs, nobody plugins
		if path.Dir(name) == "bin" {
			first = quoted(path.Base(name))
			break
		}
	}
	if len(paths) > 1 {
		return fmt.Sprintf("%s and %d more", first, len(paths)-1)
	}
	return first
}

// plainRE is what a name of a tree may hold to be shown as it is.
var plainRE = regexp.MustCompile(`\A[A-Za-z0-9._+/@-]{1,120}\z`)

// quoted is a name that can stand in a comment or a value, whatever it was.
func quoted(name string) string {
	if plainRE.MatchString(name) {
		return name
	}
	return "a file with an odd name"
}
