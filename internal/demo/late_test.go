package demo

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const libSource = `
static int counter;
static char bss[9000];
int answer(void) { return bss[8999] + counter++ + 42; }
`

const mainSource = `
extern int answer(void);
static char zero[70000];
int main(int argc, char **argv) { return zero[argc * 1000] + answer() + (argv[0] == 0) == 42 ? 46 : 1; }
`

// Programs and libraries as linkers make them run as before once their
// program headers are moved, with and without a mapped reference.
func TestMovedHeadersRun(t *testing.T) {
	cc, err := findCompiler("")
	if err != nil {
		t.Skip(err.Error() + " (Debian: gcc libc6-dev)")
	}
	dir := t.TempDir()
	for name, s := range map[string]string{"lib.c": libSource, "main.c": mainSource} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(name string, args ...string) error {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil && len(out) > 0 {
			t.Logf("%s %v: %s", name, args, out)
		}
		return err
	}
	if err := run(cc, "-shared", "-fPIC", "-o", "liblinked.so", "-Wl,-soname,libanswer.so", "lib.c"); err != nil {
		t.Fatal(err)
	}
	for _, kind := range [][]string{{"-pie", "-fPIE"}, {"-no-pie", "-fno-pie"}, {"-pie", "-fPIE", "-s"}, {"-pie", "-fPIE", "-Wl,-z,max-page-size=0x10000"}} {
		args := append(kind, "-o", "linked", "main.c", "liblinked.so", "-Wl,-rpath,$ORIGIN")
		if err := run(cc, args...); err != nil {
			t.Fatal(err)
		}
		for name, o := range map[string]LateOptions{"plain": {}, "kpack": {KpackRef: KpackRef("bin/x", "../.kpack/x_@GFXARCH@.kpack")}} {
			moveFile(t, dir, "liblinked.so", "libanswer.so", o)
			moveFile(t, dir, "linked", "moved", o)
			err := run("./moved")
			if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 46 { //nolint:errorlint // run returns it bare
				t.Errorf("%v, %s: %v, want exit status 46", kind, name, err)
			}
		}
	}
}

func moveFile(t *testing.T, dir, from, to string, o LateOptions) {
	t.Helper()
	in, err := os.ReadFile(filepath.Join(dir, from))
	if err != nil {
		t.Fatal(err)
	}
	out, err := MoveProgramHeaders(in, o)
	if err != nil {
		t.Fatal(err)
	}
	checkLate(t, in, out, o)
	if err := os.WriteFile(filepath.Join(dir, to), out, 0o755); err != nil {
		t.Fatal(err)
	}
}

// checkLate holds a moved file against what its doc comment says.
func checkLate(t *testing.T, in, out []byte, o LateOptions) {
	t.Helper()
	before, err := elf.NewFile(bytes.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	phoff := f.ByteOrder.Uint64(out[32:])
	shoff := f.ByteOrder.Uint64(out[40:])
	last := f.Progs[len(f.Progs)-1]
	switch {
	case phoff < uint64(len(in)):
		t.Errorf("table at %#x, inside the old file of %#x bytes", phoff, len(in))
	case shoff%2 == 0 || shoff < phoff:
		t.Errorf("section headers at %#x", shoff)
	case last.Type != elf.PT_LOAD || last.Off != phoff || last.Filesz%(lateUnit*phdrSize) != 0 || last.Flags != elf.PF_R:
		t.Errorf("last segment: %+v", last.ProgHeader)
	case last.Filesz <= uint64(len(f.Progs)*phdrSize):
		t.Error("no room behind the table")
	case !bytes.Equal(out[64:64+phdrSize], bytes.Repeat([]byte{0xEE}, phdrSize)):
		t.Error("the old table is alive")
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_PHDR && (p.Off != phoff || p.Vaddr != last.Vaddr || p.Filesz != last.Filesz) {
			t.Errorf("PT_PHDR: %+v", p.ProgHeader)
		}
		if p.Type == elf.PT_INTERP && last.Vaddr-last.Off != firstLoad(before).Vaddr-firstLoad(before).Off {
			t.Errorf("a program's table at %#x, mapped at %#x", last.Off, last.Vaddr)
		}
	}
	if o.KpackRef == nil {
		return
	}
	s := f.Section(".rocm_kpack_ref")
	if s == nil {
		t.Fatal("no section .rocm_kpack_ref")
	}
	if data, err := s.Data(); err != nil || !bytes.Equal(data, o.KpackRef) {
		t.Errorf("section: %q %v", data, err)
	}
}

func firstLoad(f *elf.File) *elf.Prog {
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			return p
		}
	}
	return &elf.Prog{}
}

func TestKpackRefIsMessagePack(t *testing.T) {
	got := KpackRef("lib/librocblas.so.5", "../.kpack/blas_lib_@GFXARCH@.kpack")
	want := "\x82\xabkernel_name\xb3lib/librocblas.so.5\xb2kpack_search_paths\x91\xd9\x22../.kpack/blas_lib_@GFXARCH@.kpack"
	if string(got) != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func FuzzMoveProgramHeaders(f *testing.F) {
	header := codeObject()
	f.Add(header)
	f.Add([]byte("#!/bin/sh\n"))
	small := append(codeObject(), make([]byte, 2*phdrSize+shdrSize)...)
	copy(small[32:], "\x40")             // program headers after the header,
	copy(small[40:], "\xb0")             // then one section header
	copy(small[54:], "\x38\x00\x02\x00") // two program headers
	copy(small[58:], "\x40\x00\x01\x00")
	small[64] = 1 // PT_LOAD
	f.Add(small)
	f.Fuzz(func(t *testing.T, in []byte) {
		out, err := MoveProgramHeaders(in, LateOptions{KpackRef: []byte("ref")})
		if err == nil && len(out) <= len(in) {
			t.Error("nothing was appended")
		}
	})
}
