package aur

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/hostpkg"
)

// standIns are the packages of Arch that a tree takes the place of, by what has
// to be in it. Each is named only if the tree has its library, program or
// headers; packages that only gather others (rocm-hip-sdk) are left out, since
// what they gather changes.
var standIns = []struct {
	name string
	has  *regexp.Regexp
}{
	{"amdsmi", lib("amd_smi")},
	{"comgr", lib("amd_comgr")},
	{"composable-kernel", regexp.MustCompile(`\Ainclude/ck/`)},
	{"hip-runtime-amd", lib("amdhip64")},
	{"hipblas", lib("hipblas")},
	{"hipblaslt", lib("hipblaslt")},
	{"hipcub", regexp.MustCompile(`\Ainclude/hipcub/`)},
	{"hipfft", lib("hipfft")},
	{"hiprand", lib("hiprand")},
	{"hipsolver", lib("hipsolver")},
	{"hipsparse", lib("hipsparse")},
	{"hipsparselt", lib("hipsparselt")},
	{"hsa-rocr", lib("hsa-runtime64")},
	{"miopen-hip", lib("MIOpen")},
	{"rccl", lib("rccl")},
	{"rocalution", lib("rocalution")},
	{"rocblas", lib("rocblas")},
	{"rocfft", lib("rocfft")},
	{"rocm-cmake", regexp.MustCompile(`\Ashare/rocm/cmake/`)},
	{"rocm-core", regexp.MustCompile(`\A\.info/version\z`)},
	{"rocm-device-libs", regexp.MustCompile(`\A(?:lib/llvm/)?amdgcn/bitcode/ocml\.bc\z`)},
	{"rocm-llvm", regexp.MustCompile(`\Alib/llvm/bin/(?:clang|amdclang)\z`)},
	{"rocm-opencl-runtime", lib("amdocl64")},
	{"rocm-smi-lib", lib("rocm_smi64")},
	{"rocminfo", regexp.MustCompile(`\Abin/rocminfo\z`)},
	{"rocprim", regexp.MustCompile(`\Ainclude/rocprim/`)},
	{"rocprofiler-sdk", lib("rocprofiler-sdk")},
	{"rocrand", lib("rocrand")},
	{"rocsolver", lib("rocsolver")},
	{"rocsparse", lib("rocsparse")},
	{"rocthrust", regexp.MustCompile(`\Ainclude/thrust/`)},
	{"roctracer", lib("roctracer64")},
	{"rocwmma", regexp.MustCompile(`\Ainclude/rocwmma/`)},
}

// lib matches a library that programs are linked with.
func lib(name string) *regexp.Regexp {
	return regexp.MustCompile(`\Alib/lib` + regexp.QuoteMeta(name) + `\.so(?:\.|\z)`)
}

// sonameRE takes lib….so and the version behind it apart.
var sonameRE = regexp.MustCompile(`\A(lib[A-Za-z0-9_+-][A-Za-z0-9_.+-]{0,99}\.so)\.[0-9][0-9.]*\z`)

// offers sets what the package provides and conflicts with: the packages that
// it takes the place of, and the libraries that programs are linked with.
// makepkg writes those with their version into the package
// (libamdhip64.so=7-64), so that a night with another soname needs no edit.
func (p *Package) offers(t *tree) {
	for _, s := range standIns {
		if t.any(s.has) && s.name != p.Name {
			p.provides = append(p.provides, s.name+"="+version)
			p.conflicts = append(p.conflicts, s.name)
		}
	}
	arch := hostpkg.Distro{Family: hostpkg.Arch}
	var libs []string
	for _, o := range t.objects {
		m := sonameRE.FindStringSubmatch(o.soname)
		// What a package of the distribution has too is for that to provide.
		if m != nil && path.Dir(o.path) == "lib" && arch.Package(o.soname) == "" && strings.HasPrefix(path.Base(o.path), m[1]) {
			libs = add(libs, m[1])
		}
	}
	slices.Sort(libs)
	p.provides = append(p.provides, libs...)
}

// licensed are parts of ROCm and the terms of their own, as SPDX names them.
// Everything else is LicenseRef-ROCm: what the files under Prefix say.
var licensed = []struct {
	has  *regexp.Regexp
	spdx string
}{
	{regexp.MustCompile(`\Alib/llvm/bin/(?:clang|amdclang)\z`), "Apache-2.0 WITH LLVM-exception"},
	{regexp.MustCompile(`\Abin/rocgdb\z`), "GPL-3.0-or-later"},
	{lib("amdhip64"), "MIT"},
	{lib("hsa-runtime64"), "NCSA"},
}

func (t *tree) licenses() []string {
	var out []string
	for _, l := range licensed {
		if t.any(l.has) {
			out = append(out, l.spdx)
		}
	}
	return append(out, "LicenseRef-ROCm")
}

// term is a place where a tree has licenses, and the name of the link to it.
type term struct{ at, name string }

// terms lists the places where the tree has its licenses; the package links
// them where Arch looks for them.
func (t *tree) terms() []term {
	var out []term
	for _, c := range []struct {
		has *regexp.Regexp
		term
	}{
		{regexp.MustCompile(`(?i)\Ashare/doc/(?:.*/)?(?:licen[sc]e|copying|copyright|notice)[^/]*\z`), term{"share/doc", "doc"}},
		{regexp.MustCompile(`\Ashare/licenses/`), term{"share/licenses", "licenses"}},
		{regexp.MustCompile(`\Alib/llvm/LICENSE\.TXT\z`), term{"lib/llvm/LICENSE.TXT", "llvm-LICENSE.TXT"}},
	} {
		if t.any(c.has) {
			out = append(out, c.term)
		}
	}
	return out
}
