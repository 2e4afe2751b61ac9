package audit

// rocBLAS gives the fixture the library and its kernels, for several GPUs.
func rocBLAS(f *fixture, gpus ...string) {
	f.elf(rocm+"lib/librocblas.so.5", elfSpec{soname: "librocblas.so.5"})
	for _, g := range gpus {
		f.text(rocm+"lib/rocblas/library/"+g+"/Kernels.so-000-"+g+".hsaco", "GPU", 0o644)
		f.text(rocm+"lib/rocblas/library/"+g+"/TensileLibrary_lazy_"+g+".dat", "table", 0o644)
	}
}

func hipBLASLt(f *fixture, gpus ...string) {
	f.elf(rocm+"lib/libhipblaslt.so.1", elfSpec{soname: "libhipblaslt.so.1"})
	for _, g := range gpus {
		f.text(rocm+"lib/hipblaslt/library/TensileLibrary_BB_BB_"+g+".co", "GPU", 0o644)
		f.text(rocm+"lib/hipblaslt/library/TensileLiteLibrary_lazy_"+g+"_Mapping.dat", "table", 0o644)
	}
}

func target(name string) func(o *Options) { return func(o *Options) { o.Target = name } }

const blasDir = rocm + "lib/rocblas/library"

var kernelBreaks = []oneBreak{
	{name: "kernels for the target", do: func(f *fixture) { rocBLAS(f, "gfx1151", "gfx1150") }},
	{name: "kernels for what covers the target", do: func(f *fixture) { rocBLAS(f, "gfx11-generic", "gfx1150") }},
	{name: "kernels with features of the target", do: func(f *fixture) {
		rocBLAS(f, "gfx90a-xnack+")
		f.remove(rocm + ".kpack")
		f.remove(".kpack")
		f.remove(rocm + "lib/libk.so.1")
		bitcode(f, "90a")
	}, with: target("gfx90a")},
	{name: "kernels for others alone", do: func(f *fixture) { rocBLAS(f, "gfx1150", "gfx1100") }, want: "required kernels " + blasDir + " | gfx1151"},
	{name: "no kernels at all", do: func(f *fixture) { rocBLAS(f) }, want: "required kernels " + blasDir + " | gfx1151"},
	{name: "kernels without their table", do: func(f *fixture) {
		rocBLAS(f, "gfx1151", "gfx1150")
		f.remove(blasDir + "/gfx1151/TensileLibrary_lazy_gfx1151.dat")
	}, want: "required kernels " + blasDir + " | gfx1151"},
	{name: "empty kernels", do: func(f *fixture) {
		rocBLAS(f, "gfx1151", "gfx1150")
		f.text(blasDir+"/gfx1151/Kernels.so-000-gfx1151.hsaco", "", 0o644)
	}, want: "required kernels " + blasDir + " | gfx1151"},
	{name: "the table of the target among others of it", do: func(f *fixture) {
		rocBLAS(f, "gfx1151", "gfx1150")
		f.text(blasDir+"/gfx1151/TensileLibrary_Type_HH_fallback.dat", "x", 0o644)
		f.remove(blasDir + "/gfx1151/TensileLibrary_lazy_gfx1151.dat")
	}, want: "required kernels " + blasDir + " | gfx1151"},
	{name: "the table of hipBLASLt", do: func(f *fixture) {
		hipBLASLt(f, "gfx1151", "gfx1150")
		f.remove(rocm + "lib/hipblaslt/library/TensileLiteLibrary_lazy_gfx1151_Mapping.dat")
	}, want: "warning kernels " + rocm + "lib/hipblaslt/library | gfx1151"},
	{name: "kernels of hipBLASLt for others", do: func(f *fixture) { hipBLASLt(f, "gfx1150") }, want: "required kernels " + rocm + "lib/hipblaslt/library | gfx1151"},
	{name: "a target that AMD builds without hipBLASLt", do: func(f *fixture) {
		hipBLASLt(f, "gfx1100")
		f.text(rocm+".kpack/k_lib_gfx1036.kpack", archive, 0o644)
		bitcode(f, "1036")
	}, with: target("gfx1036")},
	{name: "a target that nobody knows", do: func(f *fixture) {
		hipBLASLt(f, "gfx1100")
		f.text(rocm+".kpack/k_lib_gfx1399.kpack", archive, 0o644)
		bitcode(f, "1399")
	}, with: target("gfx1399"), want: "warning kernels " + rocm + "lib/hipblaslt/library | gfx1399"},
	{name: "a family, which is no target", do: func(f *fixture) { rocBLAS(f, "gfx900") }, with: target("gfx115X-all")},
	{name: "kernels that were left out", do: func(f *fixture) { rocBLAS(f, "gfx1150") }, with: func(o *Options) {
		o.Omitted = []string{blasDir + "/gfx1151/Kernels.so-000-gfx1151.hsaco"}
	}, want: "warning kernels " + blasDir + " | gfx1151"},
	{name: "databases of MIOpen", do: func(f *fixture) {
		f.elf(rocm+"lib/libMIOpen.so.1", elfSpec{soname: "libMIOpen.so.1"})
		f.text(rocm+"share/miopen/db/gfx906_60.HIP.fdb.txt", "x", 0o644)
		f.text(rocm+".kpack/k_lib_gfx942.kpack", archive, 0o644)
		bitcode(f, "942")
	}, with: target("gfx942"), want: "warning kernels " + rocm + "share/miopen/db | gfx942"},
	{name: "an archive of the target", do: func(f *fixture) {
		f.text(rocm+".kpack/k_lib_gfx1150.kpack", archive, 0o644)
		f.remove(rocm + ".kpack/k_lib_gfx1151.kpack")
	}, want: "warning kpack " + rocm + "lib/libk.so.1 | ../.kpack/k_lib_@GFXARCH@.kpack"},
	{name: "an archive that every target has", do: func(f *fixture) {
		f.elf(rocm+"lib/libr.so.1", elfSpec{soname: "libr.so.1", ref: refTo("../.kpack/rand_lib_@GFXARCH@.kpack")})
		f.text(rocm+".kpack/rand_lib_gfx1150.kpack", archive, 0o644)
	}, want: "required kpack " + rocm + "lib/libr.so.1 | ../.kpack/rand_lib_@GFXARCH@.kpack"},
	{name: "the directory of all archives", do: func(f *fixture) { f.remove(rocm + ".kpack") }, want: "fatal kpack " + rocm + ".kpack | .kpack"},
	{name: "device libraries by their other name", do: func(f *fixture) {
		for _, name := range []string{"ocml", "ockl", "oclc_isa_version_1151"} {
			f.remove(rocm + "lib/llvm/amdgcn/bitcode/" + name + ".bc")
			f.text(rocm+"lib/llvm/amdgcn/bitcode/"+name+".amdgcn.bc", "BC", 0o644)
		}
	}},
	{name: "a GPU that is taken for another", do: func(f *fixture) {
		rocBLAS(f, "gfx1150")
		f.text("manifest.json", `{"schema":1,"version":"10.2.0a20260930","options":{"target":"gfx1151","env":{"HSA_OVERRIDE_GFX_VERSION":"11.5.0"}}}`, 0o644)
		f.text(rocm+".kpack/k_lib_gfx1150.kpack", archive, 0o644)
	}},
	{name: "features of a target", do: func(f *fixture) { rocBLAS(f, "gfx1100") }, with: target("gfx1151:xnack-"), want: "required kernels " + blasDir + " | gfx1151"},
	{name: "all archives", do: func(f *fixture) { f.remove(rocm + ".kpack/k_lib_gfx1151.kpack") }, want: "fatal kpack " + rocm + ".kpack | .kpack"},
	{name: "one archive", do: func(f *fixture) {
		f.remove(rocm + ".kpack/k_lib_gfx1151.kpack")
		f.text(rocm+".kpack/other_lib_gfx1151.kpack", archive, 0o644)
	}, want: "fatal kpack " + rocm + "lib/libk.so.1 | ../.kpack/k_lib_@GFXARCH@.kpack"},
	{name: "an empty archive", do: func(f *fixture) { f.text(rocm+".kpack/k_lib_gfx1151.kpack", "", 0o644) }, want: "fatal kpack " + rocm + ".kpack/k_lib_gfx1151.kpack"},
	{name: "a cut archive", do: func(f *fixture) { f.text(rocm+".kpack/k_lib_gfx1151.kpack", archive[:16], 0o644) }, want: "fatal kpack " + rocm + ".kpack/k_lib_gfx1151.kpack"},
	{name: "an archive that is none", do: func(f *fixture) { f.text(rocm+".kpack/k_lib_gfx1151.kpack", "<html>not found</html>", 0o644) }, want: "fatal kpack " + rocm + ".kpack/k_lib_gfx1151.kpack"},
	{name: "the device libraries", do: func(f *fixture) {
		f.remove(rocm + "lib/llvm/amdgcn/bitcode")
		f.text(rocm+"lib/llvm/amdgcn/bitcode/README", "x", 0o644)
	}, want: "required device-libraries " + rocm + "lib/llvm/amdgcn/bitcode | *.bc"},
	{name: "the device library of the target", do: func(f *fixture) { f.remove(rocm + "lib/llvm/amdgcn/bitcode/oclc_isa_version_1151.bc") },
		want: "required device-libraries " + rocm + "lib/llvm/amdgcn/bitcode | oclc_isa_version_1151.bc"},
	{name: "an empty device library", do: func(f *fixture) { f.text(rocm+"lib/llvm/amdgcn/bitcode/ocml.bc", "", 0o644) },
		want: "required device-libraries " + rocm + "lib/llvm/amdgcn/bitcode | ocml.bc"},
	{name: "device libraries beside clang's headers", do: func(f *fixture) {
		for _, name := range []string{"ocml", "ockl", "oclc_isa_version_1151"} {
			f.text(rocm+"lib/llvm/lib/clang/23/lib/amdgcn/bitcode/"+name+".bc", "BC", 0o644)
		}
		f.remove(rocm + "lib/llvm/amdgcn/bitcode/ocml.bc")
	}},
}

func bitcode(f *fixture, isa string) {
	f.text(rocm+"lib/llvm/amdgcn/bitcode/oclc_isa_version_"+isa+".bc", "BC", 0o644)
}
