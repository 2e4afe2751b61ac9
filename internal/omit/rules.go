package omit

import (
	"regexp"
	"slices"
)

// kernels is the rule without which a tree of several GPUs would not be too
// large for one.
const kernels = "kernels"

// rule says what can be left out under one name.
type rule struct {
	name string
	// takeOut and leaveIn are patterns of paths in the ROCm tree; the second
	// wins, and so does except.
	takeOut, leaveIn []string
	except           func(parts []string) bool
	// of, if set, names the GPUs that a path is for: it is taken out if the
	// target is none of them, and stays if there are none.
	of func(parts []string) []string
	// programs says that programs for this processor are among what is taken.
	programs bool
}

// rules are all there are. Sources: the artifact descriptors of TheRock, which
// say of each file whether it is a test, documentation or for developers; the
// handlers of rocm-kpack, which tell kernels by their names; the packagers who
// prune by hand.
var rules = []rule{
	{
		// Tests, benchmarks and what they read. The tarballs have few since
		// they have siblings with -tests in the name, which have all.
		name:     "tests",
		programs: true,
		takeOut: []string{
			"clients/**",
			"tests/**",
			"**/CTestTestfile.cmake",
			"include/ck_tile/remod.py",
			".kpack/*_test_gfx*.kpack",

			"bin/test_*", "bin/*_test", "bin/*-test", "bin/*_tests", "bin/*-tests", "bin/*-test.*",
			"bin/*_gtest", "bin/*_gtest.*", "bin/*_gentest.py", "bin/*_rtest.*", "bin/*-UnitTests", "bin/*_UnitTests",
			"bin/*-bench", "bin/*-bench-*", "bin/benchmark_*", "bin/hipblaslt-sequence*", "bin/hipblaslt-api-overhead*",
			"bin/hipblas_*.yaml", "bin/hipblaslt_*.yaml", "bin/rocblas_*.yaml", "bin/hipsparselt_*.yaml",
			"bin/kfdtest*", "bin/rocrtst*", "bin/rdctst*", "bin/hipdnn_integration_tests",
			"bin/*_gather_perf", "bin/*_reduce_perf", "bin/*_scatter_perf", "bin/alltoall*_perf", "bin/broadcast_perf",
			"bin/gather_perf", "bin/hypercube_perf", "bin/reduce_perf", "bin/scatter_perf", "bin/sendrecv_perf",
			"bin/hipblas/**", "bin/hipblaslt/**", "bin/hipcub/**", "bin/hipfft/**", "bin/hiprand/**", "bin/hipRAND/**",
			"bin/hipsolver/**", "bin/hipsparse/**", "bin/hipsparselt/**", "bin/hiptensor/**", "bin/hip_kernel_provider/**",
			"bin/hipdnn_integration_tests_ctest/**", "bin/MIOpen/**", "bin/origami/**", "bin/rocblas/**", "bin/rocfft/**",
			"bin/rocprim/**", "bin/rocRAND/**", "bin/rocroller/**", "bin/rocsolver/**", "bin/rocsparse/**", "bin/rocthrust/**",

			"lib/libtest_linking_*", "lib/integration-test-bundles/**", "lib/rocrtst/**",
			"libexec/*/test/**", "libexec/*/tests/**", "libexec/hipblaslt/tensilelite/**",
			"share/*/test/**", "share/*/tests/**", "share/*/rdctst_tests/**", "share/hipblaslt/tensilelite/**",
			"share/hipblaslt/performance/**", "share/hip/catch/**", "share/hip/catch_tests/**", "share/opencl/ocltst/**",
			"share/rocprofiler-sdk-tests/**", "share/rocrtst/**",
		},
		// The layout of Windows has kernels where that of Linux has tests.
		leaveIn: []string{"bin/*/library/**"},
	},
	{
		// Archives for static linking. Those that a compiler links by itself stay.
		name:    "static",
		takeOut: []string{"**/*.a"},
		leaveIn: compilerRuntime,
	},
	{
		// What people read. The terms of use stay.
		name:    "docs",
		takeOut: []string{"**/share/doc/**", "**/share/man/**", "**/share/info/**", "**/share/html/**", "**/share/gtk-doc/**"},
		except:  isTerms,
	},
	{
		// GPU code and the tables that go with it, of GPUs that are not the
		// target. The bitcode with which the compiler builds for others stays:
		// it is small, and what is built here may run elsewhere.
		name: kernels,
		takeOut: []string{
			"**/.kpack/*.kpack",
			"**/rocblas/library/**", "**/hipblaslt/library/**", "**/hipsparselt/library/**",
			"**/aotriton/kernels/**", "**/aotriton.images/**",
			"**/engines/arch_content/**",
			"lib/**/*.hsaco", "lib/**/*.co",
		},
		of: kernelGPUs,
	},
	{
		// What MIOpen has measured and compiled ahead on GPUs that are not the
		// target. Its models (*.model) stay: it reads those of one GPU on others.
		name:    "databases",
		takeOut: []string{"**/miopen/db/*"},
		of:      databaseGPUs,
	},
	{
		// What is there to develop LLVM itself and tools with it. What hipcc,
		// amdclang, amdflang, comgr and the debugger use stays: drivers,
		// linker, binary utilities, device libraries, runtimes of OpenMP and
		// Fortran, the headers of the compiler.
		name:     "llvm",
		programs: true,
		takeOut:  llvm,
		leaveIn:  append(compilerRuntime, "lib/llvm/include/flang/**"),
	},
}

// compilerRuntime are the archives that clang and flang link without being told:
// compiler-rt, the device side of OpenMP and libc, the Fortran runtime.
var compilerRuntime = []string{
	"**/lib/clang/**", "**/libclang_rt.*", "**/libomptarget*.a", "**/libompdevice.a", "**/libflang_rt.*",
	"**/libFortranRuntime.a", "**/libFortranDecimal.a", "**/libFortran_main.a", "**/libFortranFloat128Math.a",
	"**/libc++*.a", "**/libunwind.a", "**/libm-amdgcn*.a", "**/libc-amdgcn*.a", "**/libcgpu*.a", "**/libmgpu*.a",
	"lib/llvm/lib/amdgcn-amd-amdhsa/**", "**/crt*.a",
}

// terms matches the names of files, and of directories of such, that say under
// which terms a part may be used: NOTICE, MIT-LICENSE.txt, third_party_licenses.
var terms = regexp.MustCompile(`(?i)(^|[^a-z])(un)?(licen[sc]e|copying|copyright|notice|eula|disclaimer|patents|third.?party)`)

func isTerms(parts []string) bool { return slices.ContainsFunc(parts, terms.MatchString) }
