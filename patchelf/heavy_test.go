//go:build heavy

package patchelf

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestGoPrograms: Go's own linker puts the section headers behind the program
// headers, where they make way; with cgo the C compiler's linker does the work.
func TestGoPrograms(t *testing.T) {
	pure := "package main\nimport \"os\"\nfunc main() { os.Exit(46) }\n"
	mixed := "package main\n// int answer(void) { return 46; }\nimport \"C\"\nimport \"os\"\nfunc main() { os.Exit(int(C.answer())) }\n"
	for name, c := range map[string]struct {
		source, cgo string
		args        []string
	}{
		"pie":          {pure, "0", []string{"-buildmode=pie"}},
		"cgo":          {mixed, "1", nil},
		"cgo pie":      {mixed, "1", []string{"-buildmode=pie"}},
		"cgo internal": {mixed, "1", []string{"-ldflags=-linkmode=internal"}},
		"stripped":     {mixed, "1", []string{"-ldflags=-s -w"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			source, path := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
			if err := os.WriteFile(source, []byte(c.source), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("go", append(append([]string{"build", "-o", path}, c.args...), source)...)
			cmd.Env = append(os.Environ(), "CGO_ENABLED="+c.cgo, "GO111MODULE=off")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			languageEdits(t, path)
		})
	}
}

// TestRustProgram edits what rustc links.
func TestRustProgram(t *testing.T) {
	if exec.Command("rustc", "--version").Run() != nil {
		t.Skip("rustc is missing (Debian: rustc)")
	}
	dir := t.TempDir()
	source := put(t, "main.rs", []byte("fn main() { let r = std::panic::catch_unwind(|| { if std::env::args().count() > 0 { panic!() } }); std::process::exit(if r.is_err() { 46 } else { 1 }); }\n"))
	for name, args := range map[string][]string{"pie": nil, "fixed": {"-C", "relocation-model=static"}, "optimised": {"-O", "-C", "strip=symbols"}} {
		path := filepath.Join(dir, name)
		if out, err := exec.Command("rustc", append(args, "-o", path, source)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		t.Run(name, func(t *testing.T) { languageEdits(t, path) })
	}
}

// TestMusl edits programs and libraries of the musl C library, whose loader
// finds the program headers of a library in another way.
func TestMusl(t *testing.T) {
	if _, err := exec.LookPath("musl-gcc"); err != nil {
		t.Skip("musl-gcc is missing (Debian: musl-tools)")
	}
	dir := t.TempDir()
	build := func(out, source string, args ...string) {
		c := put(t, out+".c", []byte(source))
		if out, err := exec.Command("musl-gcc", append([]string{"-o", filepath.Join(dir, out), c}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	build("libdep.so", depSource, "-shared", "-fPIC", "-Wl,-soname,libdep.so")
	for name, args := range map[string][]string{"pie": {"-pie", "-fPIE"}, "fixed": {"-no-pie"}, "old": {"-pie", "-fPIE", "-Wl,-z,noseparate-code", "-Wl,--hash-style=sysv"}} {
		build(name, progSource, append(args, "-L"+dir, "-ldep")...)
		path := filepath.Join(dir, name)
		t.Run(name, func(t *testing.T) {
			for _, e := range []Edit{{RunPath: ptr(longPath + ":" + dir), Tag: RPath}, {RunPath: ptr(dir), Tag: RunPath}, {RunPath: ptr(longPath + ":" + longPath + ":" + dir)}} {
				res := mustEdit(t, path, e)
				if code, out := runs(t, path, false); code != 46 {
					t.Fatalf("%s: exit %d: %s", res.How, code, out)
				}
				clean(t, path)
			}
			languageEdits(t, path, Edit{RunPath: ptr(dir)})
		})
	}
}

// languageEdits edits a program that exits with 46.
func languageEdits(t *testing.T, path string, last ...Edit) {
	t.Helper()
	long, short := interpreters(t)
	edits := []Edit{{RunPath: ptr(longPath), Tag: RPath}, {RunPath: ptr("/x")}, {RunPath: ptr(longPath + longPath), Tag: RunPath}, {AddNeeded: []string{"libdl.so.2"}, DebugTag: true},
		{Interp: long}, {Interp: short}, {RunPath: ptr(""), RemoveNeeded: []string{"libdl.so.2"}}}
	if len(last) > 0 {
		edits = []Edit{{RunPath: ptr("")}, last[0]}
	}
	for i, e := range edits {
		before, _ := os.ReadFile(path)
		res := mustEdit(t, path, e)
		after, _ := os.ReadFile(path)
		for _, broken := range held(before, after, e) {
			t.Errorf("%s: %s", res.How, broken)
		}
		if code, out := runs(t, path, false); code != 46 && (len(last) == 0 || i > 0) {
			t.Fatalf("%s: exit %d: %s", res.How, code, out)
		}
		clean(t, path)
		again := mustEdit(t, path, e)
		if now, _ := os.ReadFile(path); again.Changed || !bytes.Equal(now, after) {
			t.Errorf("%s: again: %+v", res.How, again)
		}
	}
}
