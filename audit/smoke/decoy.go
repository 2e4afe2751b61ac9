package smoke

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
)

// decoyStatus is what a program ends with that took a library or a program of
// the decoy.
const decoyStatus = 66

// A hostile variable puts the decoy where a real machine has another ROCm.
type hostile struct {
	name string
	dirs []string // below the decoy; joined by colons, and for PATH put before the system's
	why  string
	// but names the checks that the variable is kept from: those of programs that
	// promise to obey it.
	but []string
}

// hostiles are the variables that a tree has to withstand. Those by which a user
// says on purpose where a part is (HIP_DEVICE_LIB_PATH, HSA_TOOLS_LIB) are
// obeyed by every ROCm, and are no test of it.
func hostiles() []hostile {
	return []hostile{
		{"LD_LIBRARY_PATH", []string{"lib", "lib64", "lib/llvm/lib"}, "set for another ROCm in a shell's start-up file; DT_RUNPATH lets it in, DT_RPATH does not; a machine's own linker takes libraries from there by design", []string{"hip-clang", "hip-hipcc"}},
		{"PATH", []string{"bin", "lib/llvm/bin"}, "another ROCm's programs come first", nil},
		{"ROCM_PATH", []string{"."}, "clang looks for device libraries there, hipcc for everything", nil},
		{"ROCM_HOME", []string{"."}, "builds of PyTorch and others look there", nil},
		{"HIP_PATH", []string{"."}, "hipcc and hipconfig look for HIP there", nil},
		{"LLVM_PATH", []string{"lib/llvm"}, "comgr loads the device libraries of that compiler", nil},
		{"HIP_CLANG_PATH", []string{"lib/llvm/bin"}, "the compiler that hipcc runs", []string{"hipcc", "hip-hipcc", "hipconfig"}},
	}
}

// environment is what a check gets to see beside what the cage sets.
func (r *run) environment(name, check string) []string {
	if name != Hostile {
		return nil
	}
	var env []string
	for _, h := range hostiles() {
		if slices.Contains(h.but, check) {
			continue
		}
		value := ""
		for i, d := range h.dirs {
			if i > 0 {
				value += ":"
			}
			value += filepath.Join(r.decoy, d)
		}
		if h.name == "PATH" {
			value += ":/usr/bin:/bin"
		}
		env = append(env, h.name+"="+value)
	}
	return env
}

// decoyLibRE matches the libraries of ROCm and of its compiler. A machine's own
// zlib is not among them: that a program of the machine takes one from
// LD_LIBRARY_PATH says nothing about the tree.
var decoyLibRE = regexp.MustCompile(`^lib(amd|hsa|hip|roc|rccl|MIOpen|oam|LLVM|clang|lldb|mlir|flang|MLIR)[A-Za-z0-9_.+-]*\.so(\.[0-9a-zA-Z.]+)?$`)

// decoyPrograms are the names under which the decoy has programs.
func decoyPrograms() []string {
	return []string{
		"amdclang", "amdclang++", "amdlld", "amdllvm", "clang", "clang++", "clang-offload-bundler", "clang-linker-wrapper",
		"hipcc", "hipconfig", "ld.lld", "lld", "llc", "llvm-link", "offload-arch", "opt", "rocm_agent_enumerator", "rocminfo",
	}
}

// decoyHeaders stop whoever includes them.
func decoyHeaders() []string {
	return []string{"hip/hip_runtime.h", "hip/hip_runtime_api.h", "hip/hip_version.h", "hsa/hsa.h"}
}

// maxDecoys bounds the names that are taken from the tree.
const maxDecoys = 4096

// makeDecoy makes another ROCm in dir: libraries of the names that t has, which
// end whatever loads them, programs that end at once, headers that do not
// compile, device libraries that are none.
func makeDecoy(dir string, t *tree) error {
	for _, sub := range []string{"bin", "lib/llvm/bin", "lib/llvm/lib", "include/hip", "include/hsa", "amdgcn/bitcode", ".info"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return err
		}
	}
	for link, to := range map[string]string{"lib64": "lib", "llvm": "lib/llvm", "lib/llvm/amdgcn": "../../amdgcn"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			return err
		}
	}
	script := fmt.Appendf(nil, "#!/bin/sh\necho 'a program of another ROCm was run' >&2\nexit %d\n", decoyStatus)
	for _, name := range decoyPrograms() {
		for _, sub := range []string{"bin", "lib/llvm/bin"} {
			if err := os.WriteFile(filepath.Join(dir, sub, name), script, 0o755); err != nil {
				return err
			}
		}
	}
	for _, name := range decoyHeaders() {
		if err := os.WriteFile(filepath.Join(dir, "include", name), []byte("#error \"a header of another ROCm was included\"\n"), 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, ".info/version"), []byte("0.0.0\n"), 0o644); err != nil {
		return err
	}
	if err := linkNames(filepath.Join(dir, "amdgcn/bitcode"), []byte("no bitcode\n"), bitcodeNames(t)); err != nil {
		return err
	}
	for sub, from := range map[string][]string{"lib": {"lib", "lib/rocm_sysdeps/lib"}, "lib/llvm/lib": {"lib/llvm/lib"}} {
		var names []string
		for _, d := range from {
			names = append(names, t.names(d, decoyLibRE)...)
		}
		if err := linkNames(filepath.Join(dir, sub), decoyLibrary(), names); err != nil {
			return err
		}
	}
	return show(dir)
}

// show lets everybody read what its owner can, whatever the umask was: a decoy
// that the user of the cage cannot look into would catch nothing.
func show(dir string) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.Type() == fs.ModeSymlink {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		owner := fi.Mode().Perm() & 0o500
		return os.Chmod(name, fi.Mode().Perm()|owner>>3|owner>>6)
	})
}

// bitcodeNames are those that t has, and those that a compiler asks for first.
func bitcodeNames(t *tree) []string {
	names := t.names("lib/llvm/amdgcn/bitcode", regexp.MustCompile(`\.bc$`))
	return append(names, "ocml.bc", "ockl.bc", "opencl.bc", "hip.bc")
}

// linkNames gives one file many names.
func linkNames(dir string, content []byte, names []string) error {
	first := ""
	for i, name := range names {
		if i >= maxDecoys || path.Base(name) != name {
			break
		}
		file := filepath.Join(dir, name)
		var err error
		if first == "" {
			first, err = file, os.WriteFile(file, content, 0o755)
		} else {
			err = os.Link(first, file)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// decoyLibrary returns a shared library for x86-64 that has no symbol and whose
// initialiser (DT_INIT) ends the process. A loader that takes it for one of the
// tree's stops over the symbols that it lacks, or runs the initialiser. Its two
// segments, of code and of data, lie on a page each, as the gABI's figure of a
// program header table has them.
func decoyLibrary() []byte {
	const (
		page                         = 0x1000
		codeAt, symAt, hashAt, strAt = 0x200, 0x240, 0x260, 0x280
	)
	code := []byte{
		0xbf, decoyStatus, 0, 0, 0, // mov $66, %edi
		0xb8, 231, 0, 0, 0, // mov $231 (exit_group), %eax
		0x0f, 0x05, // syscall
	}
	dynamic := []elf.Dyn64{
		{Tag: int64(elf.DT_INIT), Val: codeAt}, {Tag: int64(elf.DT_HASH), Val: hashAt},
		{Tag: int64(elf.DT_STRTAB), Val: strAt}, {Tag: int64(elf.DT_STRSZ), Val: 1},
		{Tag: int64(elf.DT_SYMTAB), Val: symAt}, {Tag: int64(elf.DT_SYMENT), Val: elf.Sym64Size},
		{Tag: int64(elf.DT_NULL)},
	}
	dynSize := uint64(binary.Size(dynamic))
	segments := []elf.Prog64{
		{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Filesz: strAt + 1, Memsz: strAt + 1, Align: page},
		{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_W), Off: page, Vaddr: page, Paddr: page, Filesz: dynSize, Memsz: dynSize, Align: page},
		{Type: uint32(elf.PT_DYNAMIC), Flags: uint32(elf.PF_R | elf.PF_W), Off: page, Vaddr: page, Paddr: page, Filesz: dynSize, Memsz: dynSize, Align: 8},
		{Type: uint32(elf.PT_GNU_STACK), Flags: uint32(elf.PF_R | elf.PF_W), Align: 16},
	}
	header := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: uint16(len(segments)),
	}
	image := make([]byte, page+dynSize)
	put := func(at int, v any) {
		var b bytes.Buffer
		_ = binary.Write(&b, binary.LittleEndian, v) // fixed sizes into memory
		copy(image[at:], b.Bytes())
	}
	put(0, header)
	put(64, segments)
	put(codeAt, code)
	put(hashAt, []uint32{1, 1, 0, 0}) // one bucket, one chain, of the null symbol
	put(page, dynamic)
	return image
}
