package diff

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/omit"
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

// targetsOf lists the targets that a file of GPU code names, each once.
func targetsOf(p, library string) []string {
	if rest, ok := strings.CutPrefix(p, bitcodeDir+"oclc_isa_version_"); ok {
		return []string{"gfx" + strings.TrimSuffix(rest, ".bc")}
	}
	if library != "MIOpen" {
		return omit.NamedGPUs(p)
	}
	if gpu := omit.FirstGPU(path.Base(p)); gpu != "" {
		return []string{gpu}
	}
	return nil
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
