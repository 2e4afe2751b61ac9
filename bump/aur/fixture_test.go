package aur

import (
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/bump/pinfile"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

const night = "10.2.0a20260930"

func pin(v string) pinfile.Pin {
	name := "therock-dist-linux-gfx1151-" + v + ".tar.gz"
	return pinfile.Pin{
		Version: v, Family: "gfx1151", Target: "gfx1151", Channel: "nightly", Name: name,
		URL: "https://nightly.repo.amd.com/rocm/core/tarball/" + name, Hex: strings.Repeat("0a", 32),
	}
}

// elf is a dynamic file for the host.
func elf(path, soname string, needed ...string) manifest.File {
	return manifest.File{Path: "opt/rocm/" + path, Kind: manifest.Regular, ELF: &manifest.ELF{
		Class: 64, Machine: "x86_64", Type: "dyn", Dynamic: true, Soname: soname, Needed: needed,
	}}
}

func file(path string) manifest.File {
	return manifest.File{Path: "opt/rocm/" + path, Kind: manifest.Regular}
}

func link(path, to string) manifest.File {
	return manifest.File{Path: "opt/rocm/" + path, Kind: manifest.Symlink, Link: to}
}

// rocm is a tree with one of each thing that a package is made of.
func rocm() []manifest.File {
	gpu := elf("lib/kernels.hsaco", "")
	gpu.ELF.Machine = "amdgpu"
	gpu.ELF.Needed = []string{"libnever.so.1"}
	return []manifest.File{
		{Path: "bin/rocminfo", Kind: manifest.Regular}, // a wrapper of the prefix, not of the tree
		file(".info/version"),
		elf("bin/rocminfo", "", "libhsa-runtime64.so.1", "libc.so.6"),
		elf("bin/rocgdb-py3.11", "", "libpython3.11.so.1.0", "libncursesw.so.6", "libc.so.6"),
		elf("bin/rocgdb-py3.12", "", "libpython3.12.so.1.0", "libncursesw.so.6"),
		file("bin/rocgdb"),
		elf("lib/libamdhip64.so.7.2.5", "libamdhip64.so.7", "libamd_comgr.so.3", "libnuma.so.1", "libstdc++.so.6"),
		link("lib/libamdhip64.so.7", "libamdhip64.so.7.2.5"),
		link("lib/libamdhip64.so", "libamdhip64.so.7"),
		elf("lib/libamd_comgr.so.3.0", "libamd_comgr.so.3", "librocm_sysdeps_z.so.1", "libm.so.6"),
		elf("lib/libhsa-runtime64.so.1.18", "libhsa-runtime64.so.1", "libatomic.so.1", "libc.so.6"),
		elf("lib/libOpenCL.so.1.2", "libOpenCL.so.1", "libc.so.6"),
		elf("lib/libunversioned.so", "libunversioned.so", "libc.so.6"),
		elf("lib/rocm_sysdeps/lib/librocm_sysdeps_z.so.1", "librocm_sysdeps_z.so.1", "libc.so.6"),
		elf("lib/rocprofiler-systems/libplugin.so", "", "libpapi.so.7.0", "libmpi.so.40"),
		elf("lib/llvm/bin/clang-23", "", "libzstd.so.1", "libLLVM.so.23"),
		link("lib/llvm/bin/clang", "clang-23"),
		elf("lib/llvm/lib/libLLVM.so.23", "libLLVM.so.23", "libz.so.1"),
		file("lib/llvm/LICENSE.TXT"),
		file("share/doc/hip/LICENSE.txt"),
		file("libexec/amdsmi_cli/amdsmi_cli.py"),
		gpu,
	}
}

func made(t testing.TB, in Input) *Package {
	t.Helper()
	p, err := Make(in)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
