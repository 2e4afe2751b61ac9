package demo

import (
	"bufio"
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// hostPrograms are looked for on PATH, best first: with libraries of their
// own, small, and able to say --version.
func hostPrograms() []string {
	return []string{"grep", "ls", "git", "curl", "tar", "sed", "bash", "cat", "env", "busybox"}
}

// maxHostFile bounds what is copied of this machine, in bytes.
const maxHostFile = 32 << 20

// systemLibrary matches libraries that belong to the C library or the
// compiler: they stay with the machine.
var systemLibrary = regexp.MustCompile(`^(?:ld-|ld64|ld\.so|linux-|libc\.|libc-|libm\.|libmvec|libpthread|libdl\.|librt\.|libresolv|libutil|libnsl|libanl|libgcc_s|libstdc\+\+)`)

// hostProgram is an ELF program of this machine and the libraries that it
// needs, by the names that it knows them by.
type hostProgram struct {
	path string
	libs map[string]string // name -> path
}

// addHostProgram adds a program of this machine as rocm-hello, with its
// libraries where AMD puts those of others.
func (n *night) addHostProgram(ctx context.Context) error {
	p, err := findHostProgram(ctx)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(p.path)
	if err != nil {
		return err
	}
	n.tree.File("bin/rocm-hello", 0o755, data)
	lib := data // for want of a library, the hard links are of the program
	names := make([]string, 0, len(p.libs))
	for name, path := range p.libs {
		if lib, err = os.ReadFile(path); err != nil {
			return err
		}
		n.tree.File("lib/rocm_sysdeps/lib/"+name, 0o755, lib)
		names = append(names, name)
	}
	slices.Sort(names)
	n.tree.File("lib/libfoo.so.1.0.0", 0o755, lib)
	if len(names) > 0 {
		n.tree.Symlink("lib/libhello.so.1", "rocm_sysdeps/lib/"+names[0])
		if lib, err = os.ReadFile(p.libs[names[0]]); err != nil {
			return err
		}
		n.tree.File("lib/libfoo.so.1.0.0", 0o755, lib)
	}
	n.tree.Link("lib/libfoo.so.1", "lib/libfoo.so.1.0.0")
	return nil
}

// findHostProgram returns the first program that has libraries, or the first
// that is a dynamic ELF program at all.
func findHostProgram(ctx context.Context) (*hostProgram, error) {
	var plain *hostProgram
	for _, name := range hostPrograms() {
		p, err := inspectHostProgram(ctx, name)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err != nil {
			continue
		}
		if len(p.libs) > 0 {
			return p, nil
		}
		if plain == nil {
			plain = p
		}
	}
	if plain == nil {
		return nil, fmt.Errorf("find a program for the demo: none of %s is a dynamic ELF program; install a C compiler",
			strings.Join(hostPrograms(), ", "))
	}
	return plain, nil
}

func inspectHostProgram(ctx context.Context, name string) (*hostProgram, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, err
	}
	needed, err := dynamicProgram(path)
	if err != nil {
		return nil, err
	}
	p := &hostProgram{path: path, libs: make(map[string]string)}
	if !slices.ContainsFunc(needed, foreign) {
		return p, nil
	}
	p.libs, err = loaded(ctx, path)
	return p, err
}

func foreign(library string) bool { return !systemLibrary.MatchString(library) }

// dynamicProgram returns what the ELF program at path needs. It is an error if
// path is something else.
func dynamicProgram(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxHostFile {
		return nil, errors.New("no small regular file")
	}
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	isInterp := func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }
	if f.Class != elf.ELFCLASS64 || !slices.ContainsFunc(f.Progs, isInterp) {
		return nil, errors.New("no dynamic 64-bit program")
	}
	if runtime.GOARCH == "amd64" && f.Machine != elf.EM_X86_64 {
		return nil, errors.New("a program for another machine")
	}
	return f.ImportedLibraries()
}

// loaded asks the dynamic loader where the libraries of a program are. A
// loader that does not know the question runs the program, which then says
// its version.
func loaded(ctx context.Context, path string) (map[string]string, error) {
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env = append(os.Environ(), "LD_TRACE_LOADED_OBJECTS=1")
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	libs := make(map[string]string)
	for sc := bufio.NewScanner(bytes.NewReader(out)); sc.Scan(); {
		f := strings.Fields(sc.Text()) // libz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f…)
		if len(f) < 3 || f[1] != "=>" || !filepath.IsAbs(f[2]) || strings.Contains(f[0], "/") || !foreign(f[0]) {
			continue
		}
		if info, err := os.Stat(f[2]); err != nil || info.Size() > maxHostFile {
			return nil, fmt.Errorf("library %s cannot be copied", f[2])
		}
		libs[f[0]] = f[2]
	}
	return libs, nil
}
