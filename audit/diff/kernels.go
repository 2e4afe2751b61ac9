package diff

import (
	"cmp"
	"context"
	"path"
	"regexp"
	"slices"
	"strings"
)

// kernelDirs are where libraries keep GPU code, or what was measured for it.
var kernelDirs = []struct{ dir, library string }{
	{"lib/rocblas/library/", "rocBLAS"},
	{"lib/hipblaslt/library/", "hipBLASLt"},
	{"lib/hipsparselt/library/", "hipSPARSELt"},
	{"share/miopen/db/", "MIOpen"},
	{".kpack/", "kpack"},
	{bitcodeDir, "device library"},
}

// bitcodeDir holds what the compiler links into every program for a GPU.
const bitcodeDir = "lib/llvm/amdgcn/bitcode/"

// kernelLibrary is the library whose GPU code a file is, "" for none.
func kernelLibrary(p string) string {
	for _, k := range kernelDirs {
		if !strings.HasPrefix(p, k.dir) {
			continue
		}
		if k.library == "kpack" {
			// Each archive is of one library: blas_lib_gfx1100.kpack.
			if of, _, ok := strings.Cut(path.Base(p), "_gfx"); ok {
				return "kpack " + of
			}
		}
		return k.library
	}
	return ""
}

var (
	// targetRE finds targets in a part of a path: Kernels.so-000-gfx90a-xnack+.hsaco,
	// blas_lib_gfx9-4-generic.kpack.
	targetRE = regexp.MustCompile(`gfx[0-9]+(?:-[0-9]+)?-generic|gfx[0-9a-f]+[xX]*`)
	// databaseRE finds the target of a database of MIOpen, whose number of
	// compute units follows in hex where it is above 64: gfx90a6e.
	databaseRE = regexp.MustCompile(`\Agfx(?:[6-9][0-9a-f]{2}|[1-5][0-9a-f]{3})`)
)

// targetsOf lists the targets that a file of GPU code names, each once.
func targetsOf(p, library string) []string {
	var found []string
	if rest, ok := strings.CutPrefix(p, bitcodeDir+"oclc_isa_version_"); ok {
		return []string{"gfx" + strings.TrimSuffix(rest, ".bc")}
	}
	if library == "MIOpen" {
		if t := databaseRE.FindString(path.Base(p)); t != "" {
			found = append(found, t)
		}
		return found
	}
	for _, t := range targetRE.FindAllString(p, 8) {
		if !slices.Contains(found, t) {
			found = append(found, t)
		}
	}
	return found
}

// kernels counts GPU code by library and target.
func (c *comparer) kernels(context.Context) error {
	type key struct{ library, target string }
	sums := map[key]*Kernels{}
	count := func(s *side, tally func(*Kernels) *Tally) {
		for i := range s.files {
			f := &s.files[i]
			library := kernelLibrary(f.Path)
			if library == "" || !f.regular() || f.Size == 0 {
				continue
			}
			for _, target := range targetsOf(f.Path, library) {
				k := key{library, target}
				if sums[k] == nil {
					sums[k] = &Kernels{Library: library, Target: target}
				}
				tally(sums[k]).add(f.Size)
			}
		}
	}
	count(c.a, func(k *Kernels) *Tally { return &k.A })
	count(c.b, func(k *Kernels) *Tally { return &k.B })
	for _, k := range sums {
		if k.Library == "device library" && k.A == k.B {
			continue // some for every target there is
		}
		c.r.Kernels = append(c.r.Kernels, *k)
	}
	slices.SortFunc(c.r.Kernels, func(x, y Kernels) int {
		return cmp.Or(strings.Compare(x.Library, y.Library), strings.Compare(x.Target, y.Target))
	})
	c.r.Kernels = cut(c.r.Kernels, c.limit)
	return nil
}
