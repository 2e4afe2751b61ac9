package omit_test

import (
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/omit"
)

// FuzzHit asks about whatever a tarball may name: one answer for one name, by a
// rule that there is, and what names no GPU is not taken for another one's.
func FuzzHit(f *testing.F) {
	for _, name := range []string{
		".kpack/blas_lib_gfx1151.kpack", "lib/rocblas/library/Kernels.so-000-gfx90a-xnack+.hsaco",
		"share/miopen/db/gfx90a6e.kdb", "share/miopen/db/gfx1030_36.db.txt", "lib/llvm/lib/libLLVM.so.22",
		"lib/libx.a", "bin/test_x", "share/doc/x", "gfx", "/", "", "lib//library/gfx11-generic.co/gfx\xff",
	} {
		f.Add(name, "gfx1151")
	}
	f.Fuzz(func(t *testing.T, name, target string) {
		if !gfx.IsTarget(target) {
			return
		}
		all, err := omit.New(omit.Names(), target)
		if err != nil {
			t.Fatal(err)
		}
		rule, sure := all.Hit(name, manifest.Regular)
		if again, as := all.Hit(name, manifest.Regular); again != rule || as != sure {
			t.Errorf("%q is hit by %q (%v), then by %q (%v)", name, rule, sure, again, as)
		}
		if rule == "" && sure {
			t.Errorf("%q is sure to be left out, by no rule", name)
		}
		if rule != "" && omit.Check([]string{rule}) != nil {
			t.Errorf("%q is hit by %q, which is no rule", name, rule)
		}
		if got, _ := all.Hit(name, manifest.Dir); got != "" {
			t.Errorf("directory %q is hit by %q", name, got)
		}
		others, err := omit.New(omit.ForTarget(omit.Names()), target)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := others.Hit(name, manifest.Regular); got != "" && !strings.Contains(name, "gfx") {
			t.Errorf("%q names no GPU, and %q takes it for another one's", name, got)
		}
	})
}
