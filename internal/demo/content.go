package demo

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
)

// stage is where AMD's builder assembles a tree. Its name stays behind in
// run paths, links and text files.
const stage = "/__w/rockrel/rockrel/build/stage"

// addContent adds everything but the ELF programs: what a tree of AMD's holds
// beside them, and each kind of file that has broken an installer.
func (n *night) addContent() {
	n.addIdentity()
	n.addKernels()
	n.addCompiler()
	n.addScripts()
	n.addText()
	n.addLinks()
	n.addOddities()
}

// addIdentity adds the three places that know which release this is. Only the
// manifest has the full version: .info/version stops at the third number.
func (n *night) addIdentity() {
	v := n.name.Version
	n.text(".info/version", 0o644, v.Base()+"\n")
	n.text("share/therock/therock_manifest.json", 0o644, fmt.Sprintf(`{
  "the_rock_commit": "%x",
  "submodules": [],
  "rocm_package_version": "%s",
  "rocm_version": "%s",
  "flags": {
    "KPACK_SPLIT_ARTIFACTS": true
  }
}
`, commitOf(v.String()), v, v.Base()))
	n.text("share/therock/dist_info.json", 0o644,
		fmt.Sprintf("{\"dist_amdgpu_targets\": \"%s\"}\n", strings.Join(n.gpus, ";")))
	n.text("bin/rocm-version", 0o755, `#!/bin/sh
# Prints the version of the ROCm that this file is in.
while IFS='"' read -r _ key _ value _; do
	case $key in rocm_package_version) echo "$value"; exit 0 ;; esac
done <"${0%/*}/../share/therock/therock_manifest.json"
exit 1
`)
}

// commitOf stands for the commit that a version was built from.
func commitOf(version string) []byte {
	sum := sha256.Sum256([]byte(version))
	return sum[:20]
}

// addKernels adds GPU code: archives in the hidden directory that globs
// forget, and a code object that is ELF but not for this processor.
func (n *night) addKernels() {
	for _, gpu := range n.gpus {
		seed := sha256.Sum256([]byte(gpu + n.name.Version.String()))
		code := append(codeObject(), noise(seed, 1<<20)...)
		n.tree.File(".kpack/demo_lib_"+gpu+".kpack", 0o644, Kpack("demo", gpu, kernelName, code))
		// The same in every night, as most of a night is.
		same := append(codeObject(), noise(sha256.Sum256([]byte(gpu)), 300_000)...)
		n.tree.File("lib/rocblas/library/"+gpu+"/Kernels_"+gpu+".hsaco", 0o755, same)
		n.tree.File("lib/hipblaslt/library/"+gpu+"/"+tensileName(gpu), 0o644, noise(seed, 4096))
	}
}

// kernelName is the library that the archive's kernels belong to.
const kernelName = "lib/libdemo_blas.so.1.0"

// tensileName is a file name of the length that hipBLASLt's have: too long for
// the name field of a tar header.
func tensileName(gpu string) string {
	return "TensileLibrary_BB_BB_HA_Bias_SAB_SCD_SAV_UA_Type_BB_HPA_Contraction_l_Ailk_Bjlk_Cijk_Dijk_" +
		"Activation_true_UseScaleAlphaVec_true_UseBias_true_fallback_" + gpu + ".dat"
}

// codeObject returns the header of an ELF file for AMD's GPUs (EM_AMDGPU).
func codeObject() []byte {
	h := make([]byte, 64)
	copy(h, "\x7fELF\x02\x01\x01\x40\x04") // 64-bit, little-endian, HSA, ABI version 4
	binary.LittleEndian.PutUint16(h[16:], 3)
	binary.LittleEndian.PutUint16(h[18:], 224)
	binary.LittleEndian.PutUint32(h[20:], 1)
	binary.LittleEndian.PutUint16(h[52:], 64)
	return h
}

// noise returns n bytes that do not compress, the same for the same seed.
func noise(seed [32]byte, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8(seed).Read(b) // documented never to fail
	return b
}

// addCompiler adds the layout of the compiler: names that are links into
// lib/llvm/bin, configuration files that are found by the program's own
// directory, device libraries. The link amdgcn at the root is missing, as it
// was until February 2026; llvm is there.
func (n *night) addCompiler() {
	n.text("lib/llvm/bin/amdllvm", 0o755, `#!/bin/sh
# Stands for the compiler driver: finds its own directory by its name.
echo "${0##*/} of ROCm, device libraries in ${0%/*}/../amdgcn/bitcode"
`)
	for _, name := range []string{"amdclang", "amdclang++", "amdlld"} {
		n.tree.Symlink("lib/llvm/bin/"+name, "amdllvm")
		n.tree.Symlink("bin/"+name, "../lib/llvm/bin/"+name)
	}
	n.text("lib/llvm/bin/rocm.cfg", 0o644, "$-Wl,--enable-new-dtags\n--rocm-path='<CFGDIR>/../../..'\n-frtlib-add-rpath")
	n.text("lib/llvm/bin/clang.cfg", 0o644, "@rocm.cfg\n")
	names := []string{"ocml", "ockl", "oclc_abi_version_600"}
	// As in the real one, the compiler builds for more than the release is for.
	for _, isa := range strings.Fields("900 906 908 90a 942 950 1010 1030 1031 1032 1034 1035 1036 1100 1101 1102 1103 1150 1151 1152 1153 1200 1201 1250") {
		names = append(names, "oclc_isa_version_"+isa)
	}
	for _, name := range names {
		bitcode := append([]byte("BC\xc0\xde"), noise(sha256.Sum256([]byte(name)), 512)...)
		n.tree.File("lib/llvm/amdgcn/bitcode/"+name+".bc", 0o644, bitcode)
	}
	n.tree.Symlink("llvm", "lib/llvm")
}

// addScripts adds interpreters that no machine but the builder has.
func (n *night) addScripts() {
	n.text("share/rocprofiler-systems/examples/trace.py", 0o755,
		"#!/opt/python/cp312-cp312/bin/python3.12\nprint('traced')\n")
	n.text("bin/rocm-where", 0o755, "#!/usr/bin/env sh\nprintf '%s\\n' \"$#\" \"$@\"\n")
	// A set-user-ID bit that nobody asked for.
	n.text("libexec/rocm/helper", 0o4755, "#!/bin/sh\necho helper\n")
}

// addText adds text with the builder's directories in it.
func (n *night) addText() {
	n.text("lib/rocm_sysdeps/lib/pkgconfig/zlib.pc", 0o644, `prefix=/__w/rockrel/rockrel/build/third-party/sysdeps/linux/zlib/build/stage/lib/rocm_sysdeps
exec_prefix=${prefix}
libdir=${exec_prefix}/lib
includedir=${prefix}/include

Name: zlib
Description: a file that names the builder's directory
Version: 1.3.1
Libs: -L${libdir} -lz
Cflags: -I${includedir}
`)
	n.text("lib/cmake/hello/hello-config.cmake", 0o644, `get_filename_component(_root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(hello_LIBRARY "`+stage+`/lib/libfoo.so.1")
set(hello_INCLUDE_DIR "${_root}/include")
`)
	n.text("include/hello/hello.h", 0o644, "const char *hello_greeting(void);\nconst char *hello_version(void);\n")
	n.text("share/doc/rocm/CHANGES", 0o644, "This is "+n.name.Version.String()+".\n")
	license := "Made by rocm-nightly to show itself. Use it as you like.\n"
	n.text("share/doc/rocm-core/LICENSE.md", 0o644, license)
	n.text("share/doc/hello/LICENSE", 0o644, license)
	n.text("lib/llvm/LICENSE.TXT", 0o644, license)
}

// addLinks adds two absolute links: one that leads into the builder's tree to
// a file that is in this one too, one that leads nowhere.
func (n *night) addLinks() {
	n.tree.Symlink("lib/libfoo.so", stage+"/lib/libfoo.so.1")
	n.tree.Symlink("share/doc/rocm/sources", "/therock/src/rocm-systems")
}

// addOddities adds what is rare and legal.
func (n *night) addOddities() {
	n.tree.Dir("lib", 0o775)
	n.tree.Dir("share/rocm/empty", 0o755)
	n.text("share/rocm/empty.txt", 0o644, "")
	n.text("share/rocm/read-only.json", 0o444, "{\"read\": \"only\"}\n")
	n.text("share/rocm/writable-by-all.txt", 0o666, "anybody may write here\n")
	n.text("share/rocm/a name, größer und mit Leerzeichen.txt", 0o644, "legal\n")
	n.tree.File("share/rocm/zeros.bin", 0o644, bytes.Repeat([]byte{0}, 256<<10))
	deep := "libexec/" + strings.Repeat("a-directory-below-a-directory/", 9) + "deep.txt" // 286 bytes
	n.text(deep, 0o644, "deep\n")
}

func (n *night) text(name string, mode int64, s string) { n.tree.File(name, mode, []byte(s)) }
