package omit_test

import (
	"fmt"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/omit"
)

func ExampleSet_Hit() {
	s, err := omit.New([]string{"kernels", "llvm"}, "gfx1151")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range []string{
		".kpack/blas_lib_gfx1100.kpack",
		".kpack/blas_lib_gfx11-generic.kpack",
		"lib/llvm/lib/libLLVM.so.22.0git",
		"lib/libamdhip64.so.7",
	} {
		rule, sure := s.Hit(path, manifest.Regular)
		fmt.Printf("%-37s %q %v\n", path, rule, sure)
	}
	// Output:
	// .kpack/blas_lib_gfx1100.kpack         "kernels" true
	// .kpack/blas_lib_gfx11-generic.kpack   "" false
	// lib/llvm/lib/libLLVM.so.22.0git       "llvm" false
	// lib/libamdhip64.so.7                  "" false
}
