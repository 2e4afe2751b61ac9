package omit

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// all is a set of every rule.
func all(t testing.TB, target string) *Set {
	t.Helper()
	s, err := New(Names(), target)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What each rule takes, and what looks like it and stays: real names, for gfx1036.
func TestRules(t *testing.T) {
	const stays, unseen, marked = "", "unseen", "marked"
	for rule, paths := range map[string]map[string]string{
		"tests": {
			"bin/test_hip_api":                                       marked,
			"bin/rocblas-test":                                       marked,
			"bin/rocrand-bench":                                      marked,
			"bin/rocblas_gtest.data":                                 unseen,
			"bin/rocblas_gentest.py":                                 unseen,
			"bin/rocblas_common.yaml":                                unseen,
			"bin/rocblas/CTestTestfile.cmake":                        unseen,
			"bin/MIOpen/CTestTestfile.cmake":                         unseen,
			"bin/miopen_gtest":                                       marked,
			"bin/rccl-UnitTests":                                     marked,
			"bin/all_reduce_perf":                                    marked,
			"bin/reduce_scatter_perf":                                marked,
			"clients/matrices/amazon0312.csr":                        marked,
			"clients/samples/example.cpp":                            unseen,
			"share/opencl/ocltst/ocltst":                             marked,
			"share/opencl/ocltst/liboclruntime.so":                   marked,
			"share/amd_smi/tests/amdsmitst":                          marked,
			"share/rdc/rdctst_tests/rdctst":                          marked,
			"share/hip/catch_tests/unit/hipTestMain.so":              marked,
			"share/rocsolver/test/mat.txt":                           unseen,
			"lib/libtest_linking_new_scan.so":                        marked,
			".kpack/blas_test_gfx1036.kpack":                         unseen,
			"bin/hipcc":                                              stays,
			"bin/rocm-smi":                                           stays,
			"bin/rocm_agent_enumerator":                              stays,
			"bin/rocprof-compute":                                    stays,
			"bin/latest":                                             stays,
			"bin/rocblas/library/TensileLibrary_gfx1036.dat":         stays,
			"include/ck_tile/remod.py":                               unseen,
			"include/ck_tile/core.hpp":                               stays,
			"include/rocprim/test/detail.hpp":                        stays,
			"lib/cmake/rocblas/rocblas-config.cmake":                 stays,
			"lib/rocblas/library/Kernels.so-000-gfx1036.hsaco":       stays,
			"lib/python3.11/site-packages/rocpd/libpyrocpd.so":       stays,
			"share/hip/version":                                      stays,
			"share/testing/x":                                        stays,
			"libexec/rocm_smi/rocm_smi.py":                           stays,
			"lib/llvm/lib/clang/22/include/testing_intrinsics.h":     stays,
			"share/rocprofiler-systems/examples/causal.py":           stays,
			".kpack/blas_lib_gfx1036.kpack":                          stays,
			"lib/rocm_sysdeps/lib/librocm_sysdeps_contest_test.so.1": stays,
		},
		"static": {
			"lib/librocsparse.a":          unseen,
			"lib/rocm_sysdeps/lib/libz.a": unseen,
			"lib/libhipthreads.a":         unseen,
			"lib/llvm/lib/clang/22/lib/linux/libclang_rt.asan-x86_64.a":   stays,
			"lib/llvm/lib/clang/22/lib/amdgcn-amd-amdhsa/libompdevice.a":  stays,
			"lib/llvm/lib/libomptarget.devicertl.a":                       stays,
			"lib/llvm/lib/libFortranRuntime.a":                            stays,
			"lib/llvm/lib/x86_64-unknown-linux-gnu/libflang_rt.runtime.a": stays,
			"lib/llvm/lib/amdgcn-amd-amdhsa/libc.a":                       stays,
			"lib/llvm/lib/x86_64-unknown-linux-gnu/libc++.a":              stays,
			"lib/librocrand.la":                                           stays,
			"lib/librocrand.so.1":                                         stays,
			"share/rocm/a":                                                stays,
			"lib/x.app":                                                   stays,
		},
		"docs": {
			"share/doc/rocm/CHANGES":                         unseen,
			"share/doc/rocgdb/gdb.html":                      unseen,
			"share/man/man1/rocgdb.1":                        unseen,
			"share/info/gdb.info":                            unseen,
			"share/html/amd-dbgapi/index.html":               unseen,
			"lib/llvm/share/man/man1/scan-build.1":           unseen,
			"lib/rocm_sysdeps/share/doc/zlib/txtvsbin.txt":   unseen,
			"share/doc/x/libexample.so.1":                    marked,
			"share/doc/rocm-core/LICENSE.md":                 stays,
			"share/doc/libamdhip64-5/copyright":              stays,
			"share/doc/rocgdb/COPYING3":                      stays,
			"share/doc/libamd-comgr-dev/NOTICES.txt":         stays,
			"share/doc/hipdnn/third_party_licenses.txt":      stays,
			"share/doc/rocgdb/licenses/GPL-3":                stays,
			"share/doc/rocm/thirdparty_licenses/zlib/1.txt":  stays,
			"share/doc/x/MIT-LICENSE.txt":                    stays,
			"share/doc/x/AMD_EULA.pdf":                       stays,
			"share/doc/x/UNLICENSE":                          stays,
			"share/doc/x/PATENTS":                            stays,
			"share/doc/x/photocopying.txt":                   unseen,
			"share/documents/x":                              stays,
			"share/rocm/README.md":                           stays,
			"lib/python3.12/site-packages/amdsmi/doc/x.html": stays,
		},
		"kernels": {
			"lib/rocblas/library/gfx1030/Kernels.so-000-gfx1030.hsaco":               unseen,
			"lib/rocblas/library/Kernels.so-000-gfx90a-xnack+.hsaco":                 unseen,
			"lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat":                    unseen,
			"lib/rocblas/library/TensileLibrary_Type_ZZ_Contraction_CU104_gfx90a.co": unseen,
			"lib/rocblas/library/gfx1030/TensileLibrary_Type_HH_fallback.dat":        unseen,
			"lib/hipblaslt/library/gfx942/extop_gfx942.co":                           unseen,
			"lib/hipblaslt/library/TensileLiteLibrary_lazy_gfx942_Mapping.dat":       unseen,
			"lib/hipsparselt/library/Kernels.so-000-gfx950.hsaco":                    unseen,
			"lib/rdc/hsaco/gfx90a/vadd.hsaco":                                        unseen,
			"lib/hipdnn_plugins/engines/arch_content/gfx942/flydsl/a.co":             unseen,
			"lib/hipdnn_plugins/engines/arch_content/gfx1036/flydsl/a.co":            stays,
			"lib/hipdnn_plugins/engines/libhip_kernel_provider.so":                   stays,
			".kpack/blas_lib_gfx1100.kpack":                                          unseen,
			".kpack/blas_lib_gfx942:xnack+.kpack":                                    unseen,
			".kpack/rand_lib_gfx11-generic.kpack":                                    unseen,
			".kpack/rand_lib_gfx10-1-generic.kpack":                                  unseen,
			".kpack/fft_lib_gfx110X-all.kpack":                                       unseen,
			"lib/aotriton.images/amd-gfx11xx/flash/attn_fwd/kernel.aks2":             unseen,
			".kpack/blas_lib_gfx1036.kpack":                                          stays,
			".kpack/blas_lib_gfx1036:xnack-.kpack":                                   stays,
			".kpack/rand_lib_gfx10-3-generic.kpack":                                  stays,
			".kpack/rand_lib_gfx103X-all.kpack":                                      stays,
			".kpack/rand_lib_gfx10-9-generic.kpack":                                  stays, // unknown
			".kpack/rand_lib_amdgcnspirv.kpack":                                      stays,
			".kpack/rand_lib_gfx10.kpack":                                            stays,
			".kpack/rand_lib_gfx120.kpack":                                           stays, // a family, of unknown extent
			".kpack/rand_lib_gfx1036-strict.kpack":                                   stays,
			".kpack/rand_lib_gfxnext.kpack":                                          stays,
			"lib/rocblas/library/gfx1036/Kernels.so-000-gfx1030.hsaco":               stays, // for either
			"lib/rocblas/library/TensileLibrary_Type_4xi8I_HPA_fallback.dat":         stays,
			"lib/rocblas/library/TensileManifest.txt":                                stays,
			"lib/hipblaslt/library/hipblasltExtOpLibrary.dat":                        stays,
			"lib/rocblas/library/TensileLibrary_gfx1030fallback.dat":                 stays, // cannot be read
			"lib/rocfft/rocfft_kernel_cache.db":                                      stays,
			"lib/llvm/amdgcn/bitcode/oclc_isa_version_1030.bc":                       stays,
			"lib/llvm/lib/libomptarget-amdgpu-gfx1030.bc":                            stays,
			"libexec/rocprofiler-compute/soc/gfx90a/0100_system.yaml":                stays,
			"include/hip/amd_detail/amd_hip_gfx1100.h":                               stays,
		},
		"databases": {
			"share/miopen/db/gfx1030_36.HIP.fdb.txt":           unseen,
			"share/miopen/db/gfx1030_36.db.txt":                unseen,
			"share/miopen/db/gfx90878.HIP.fdb.txt":             unseen,
			"share/miopen/db/gfx90a6e.kdb":                     unseen,
			"share/miopen/db/gfx942130.db.txt":                 unseen,
			"share/miopen/db/gfx1030.db":                       unseen,
			"share/miopen/db/gfx906_60.OpenCL.fdb.txt":         unseen,
			"share/miopen/db/gfx1036_2.HIP.fdb.txt":            stays,
			"share/miopen/db/gfx1036.kdb":                      stays,
			"share/miopen/db/gfx103640.db.txt":                 stays,
			"share/miopen/db/gfx908_metadata.tn.model":         stays,
			"share/miopen/db/gfx942_ConvHip_decoder.ktn.model": stays,
			"share/miopen/db/miopen.db":                        stays,
			"share/miopen/perf/gfx1030.db":                     stays,
			"lib/rocfft/gfx1030.db":                            stays,
		},
		"llvm": {
			"lib/llvm/include/llvm/IR/Module.h":                     unseen,
			"lib/llvm/include/clang/AST/Decl.h":                     unseen,
			"lib/llvm/lib/cmake/llvm/LLVMConfig.cmake":              unseen,
			"lib/llvm/lib/libLLVMCore.a":                            unseen,
			"lib/llvm/lib/libclangSema.a":                           unseen,
			"lib/llvm/lib/libFortranParser.a":                       unseen,
			"lib/llvm/bin/clang-tidy":                               marked,
			"lib/llvm/bin/mlir-opt":                                 marked,
			"lib/llvm/bin/lldb-server":                              marked,
			"lib/llvm/bin/FileCheck":                                marked,
			"lib/llvm/bin/llvm-exegesis":                            marked,
			"lib/llvm/lib/libLLVM.so.22.0git":                       marked,
			"lib/llvm/lib/libclang-cpp.so.22.0git":                  marked,
			"lib/llvm/lib/libMLIR.so":                               marked,
			"lib/llvm/lib/LLVMgold.so":                              marked,
			"lib/llvm/lib/libFortranRuntime.a":                      stays,
			"lib/llvm/lib/libclang_rt.builtins-x86_64.a":            stays,
			"lib/llvm/include/flang/omp_lib.mod":                    stays,
			"lib/llvm/include/c++/v1/vector":                        stays,
			"lib/llvm/include/omp.h":                                stays,
			"lib/llvm/lib/libomp.so":                                stays,
			"lib/llvm/lib/libomptarget.rtl.amdgpu.so":               stays,
			"lib/llvm/lib/libompd.so":                               stays,
			"lib/llvm/lib/clang/22/include/__clang_hip_math.h":      stays,
			"lib/llvm/amdgcn/bitcode/ocml.bc":                       stays,
			"lib/llvm/bin/rocm.cfg":                                 stays,
			"lib/llvm/LICENSE.TXT":                                  stays,
			"lib/cmake/AMDDeviceLibs/AMDDeviceLibsConfig.cmake":     stays,
			"lib/libamd_comgr.so.3":                                 stays,
			"include/amd_comgr/amd_comgr.h":                         stays,
			"lib/llvm/lib/x86_64-unknown-linux-gnu/libunwind.so.1":  stays,
			"lib/llvm/lib/cmake/openmp/FindOpenMPTarget.cmake":      stays,
			"lib/llvm/share/gdb/python/ompd/ompdModule.so":          stays,
			"lib/llvm/lib/clang/22/lib/linux/clang_rt.crtbegin.o":   stays,
			"lib/llvm/lib/clang/22/lib/linux/libclang_rt.asan.so":   stays,
			"lib/llvm/lib/x86_64-unknown-linux-gnu/libomptarget.so": stays,
		},
	} {
		s, err := New([]string{rule}, "gfx1036")
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range paths {
			name, sure := s.Hit(path, manifest.Regular)
			got := stays
			if name != "" {
				got = map[bool]string{true: unseen, false: marked}[sure]
			}
			if got != want {
				t.Errorf("%s: %s is %q, want %q", rule, path, got, want)
			}
		}
		if len(paths) == 0 || s.target == "" {
			t.Errorf("%s is not tried", rule)
		}
	}
}

// What the compiler, and CMake with it, starts stays, whatever is left out.
func TestWhatTheCompilerStartsStays(t *testing.T) {
	s := all(t, "gfx1151")
	for _, name := range strings.Fields(`amdclang amdclang++ amdclang-cl amdclang-cpp amdflang amdlld amdllvm amdgpu-arch nvptx-arch offload-arch clang clang++ clang-22 clang-cl
		clang-cpp clang-linker-wrapper clang-nvlink-wrapper clang-offload-bundler clang-offload-packager clang-scan-deps clang-sycl-linker flang flang-new flang-22
		ld.lld ld64.lld lld lld-link wasm-ld llc opt llvm-addr2line llvm-ar llvm-as llvm-cov llvm-cxxfilt llvm-dis llvm-dwarfdump llvm-link llvm-mc llvm-nm llvm-objcopy
		llvm-objdump llvm-offload-binary llvm-profdata llvm-ranlib llvm-readelf llvm-readobj llvm-size llvm-split llvm-spirv llvm-strip llvm-symbolizer amd-llvm-spirv
		clang.cfg clang++.cfg rocm.cfg hipcc a-tool-of-tomorrow`) {
		for _, kind := range []manifest.Kind{manifest.Regular, manifest.Symlink} {
			if rule, _ := s.Hit("lib/llvm/bin/"+name, kind); rule != "" {
				t.Errorf("%s is taken out by %s", name, rule)
			}
		}
	}
}

func TestTargetsOfRules(t *testing.T) {
	for target, ok := range map[string]bool{"gfx1151": true, "gfx90a": true, "": false, "multiarch": false, "gfx110X-all": false, "gfx950-dcgpu": false} {
		for _, rule := range Names() {
			_, err := New([]string{rule}, target)
			if free := rule != "kernels" && rule != "databases"; (err == nil) != (ok || free) {
				t.Errorf("%s for %q: %v", rule, target, err)
			}
		}
	}
	if got := ForTarget([]string{"tests", "kernels", "databases", "kernels"}); !slices.Equal(got, []string{"databases", "kernels"}) {
		t.Error(got)
	}
	if err := Check([]string{"docs", "doc"}); err == nil || !strings.Contains(err.Error(), `"doc"`) || !strings.Contains(err.Error(), "tests") {
		t.Error(err)
	}
	if Canonical(nil) != nil || Canonical([]string{}) != nil {
		t.Error("nothing is something")
	}
}

func TestATarballOfAnotherTargetIsNoticed(t *testing.T) {
	for path, want := range map[string]bool{
		".kpack/a_lib_gfx1030.kpack":        true,
		".kpack/a_lib_gfx1151.kpack":        false,
		".kpack/a_lib_gfx11-generic.kpack":  false,
		".kpack/a_lib_amdgcnspirv.kpack":    false,
		"share/miopen/db/gfx1030_36.db.txt": false, // most targets have none
		"lib/rdc/hsaco/gfx90a/vadd.hsaco":   false,
		"lib/rocblas/library/x_gfx1030.co":  true,
	} {
		s := all(t, "gfx1151")
		s.Hit(path, manifest.Regular)
		s.Hit("share/doc/gfx1151", manifest.Regular)
		if err := s.Mismatch(); (err != nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	// As many names as an archive can have are no burden.
	s := all(t, "gfx1151")
	for i := range 10_000 {
		s.Hit(fmt.Sprintf(".kpack/a_lib_gfx1%03x.kpack", i%4096), manifest.Regular)
	}
	if len(s.others) > maxOthers {
		t.Error(len(s.others))
	}
}

// No library and no directory is dropped unseen, and nothing for the target.
func TestNothingNeededIsDroppedUnseen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		target := rapid.SampledFrom([]string{"gfx1151", "gfx90a", "gfx1036", "gfx942"}).Draw(t, "target")
		s, err := New(Names(), target)
		if err != nil {
			t.Fatal(err)
		}
		part := rapid.OneOf(
			rapid.SampledFrom([]string{"bin", "lib", "llvm", "share", "doc", "tests", "clients", ".kpack", "rocblas", "library", "miopen", "db", "include", "clang", "x_gfx1030.co", "libx.a"}),
			rapid.StringMatching(`[a-z]{1,3}_(gfx(1151|90a|1036|942|1030)|gfx11-generic)[-_.:](so|kpack|xnack\+|hsaco)`),
		)
		parts := rapid.SliceOfN(part, 1, 6).Draw(t, "parts")
		path := strings.Join(parts, "/")
		if rule, _ := s.Hit(path, manifest.Dir); rule != "" {
			t.Fatalf("the directory %s is taken out by %s", path, rule)
		}
		for _, lib := range []string{path + "/libx.so", path + ".so.1.2", path + "/.so"} {
			if rule, sure := s.Hit(lib, manifest.Regular); sure {
				t.Fatalf("%s is dropped unseen by %s", lib, rule)
			}
		}
		if rule, _ := s.Hit(path, manifest.Regular); rule == "kernels" && strings.Contains(path, target) {
			t.Fatalf("%s is taken out for %s", path, target)
		}
	})
}

// docs/omit.md has a section for each rule.
func TestEveryRuleIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/omit.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Names() {
		if !strings.Contains(string(doc), "## "+name+"\n") {
			t.Errorf("docs/omit.md has no section %q", name)
		}
	}
}

func BenchmarkHit(b *testing.B) {
	s := all(b, "gfx1151")
	paths := []string{"lib/rocblas/library/TensileLibrary_Type_HH_Contraction_l_Ailk_Bjlk_Cijk_Dijk_gfx1100.co", "lib/llvm/include/llvm/IR/Module.h", "include/hip/hip_runtime.h", "bin/hipcc"}
	for i := 0; b.Loop(); i++ {
		s.Hit(paths[i%len(paths)], manifest.Regular)
	}
}
