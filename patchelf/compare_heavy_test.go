//go:build heavy

package patchelf

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestReadsTheWholeMachine compares File with readelf and debug/elf on every
// ELF file of this machine, and counts what is read. PATCHELF_READ_ROOTS names
// other directories (colon-separated).
func TestReadsTheWholeMachine(t *testing.T) {
	roots := "/usr:/opt"
	if home, err := os.UserHomeDir(); err == nil {
		roots += ":" + filepath.Join(home, ".rustup") + ":" + filepath.Join(home, "go/pkg")
	}
	if s := os.Getenv("PATCHELF_READ_ROOTS"); s != "" {
		roots = s
	}
	var sum tally
	for _, root := range strings.Split(roots, ":") {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				sum.look(t, path)
			}
			return nil
		})
	}
	t.Logf("%+v", sum)
	if sum.Files < 100 {
		t.Error("there are too few ELF files here to tell")
	}
}

type tally struct {
	Files, Malformed, Dynamic, Static, StaticPIE, Companion, Objects, ByGo, ByReadelf int
	Most                                                                              int // bytes read of one file
	Time                                                                              time.Duration
}

func (s *tally) look(t *testing.T, path string) {
	file, err := os.Open(path)
	if err != nil {
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return
	}
	r := &counted{f: file}
	start := time.Now()
	f, err := Parse(r, info.Size())
	if errors.Is(err, ErrNotELF) {
		return
	}
	s.Time += time.Since(start)
	s.Files++
	s.Most = max(s.Most, r.n)
	var format *FormatError
	if errors.As(err, &format) {
		s.Malformed++
		_, theirs := saidByReadelf(path)
		t.Logf("%s: %v (readelf: %v)", path, err, theirs)
		return
	}
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	s.Dynamic, s.Static, s.StaticPIE = s.Dynamic+b2i(f.Dynamic), s.Static+b2i(f.Static()), s.StaticPIE+b2i(f.StaticPIE())
	s.Companion, s.Objects = s.Companion+b2i(f.Companion()), s.Objects+b2i(len(f.phdrs) == 0)
	if f.StaticPIE() {
		t.Logf("static-pie: %s", path)
	}
	if f.Companion() && !strings.Contains(path, "debug") {
		t.Errorf("%s: it is no separate debug file by its name", path)
	}
	if f.Companion() || len(f.phdrs) == 0 {
		return
	}
	differs, byGo, byReadelf := compare(f, path)
	if differs != "" {
		t.Errorf("%s: %s", path, differs)
	}
	s.ByGo, s.ByReadelf = s.ByGo+b2i(byGo), s.ByReadelf+b2i(byReadelf)
}

// TestShapesOfRustAndGo: compilers with linkers, or ways with them, of their
// own.
func TestShapesOfRustAndGo(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		tool, source, name string
		args               []string
		want               shape
	}{
		{"rustc", "fn main() {}", "a.rs", nil, shapeProgram},
		{"rustc", "fn main() {}", "b.rs", []string{"-Ctarget-feature=+crt-static"}, shapeStaticPIE},
		{"rustc", "#[no_mangle] pub extern \"C\" fn f() {}", "c.rs", []string{"--crate-type=cdylib"}, shapeLibrary},
		{"go", "package main\nfunc main() {}\n", "a.go", []string{"build"}, shapeStatic},
		{"go", "package main\nfunc main() {}\n", "b.go", []string{"build", "-buildmode=pie"}, shapeProgram},
	} {
		if _, err := exec.LookPath(c.tool); err != nil {
			t.Logf("%s is missing (Debian: rustc, golang-go)", c.tool)
			continue
		}
		source, path := filepath.Join(dir, c.name), filepath.Join(dir, c.name+".out")
		if err := os.WriteFile(source, []byte(c.source), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(c.tool, append(c.args, "-o", path, source)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GO111MODULE=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", c.name, err, out)
			continue
		}
		wantShape(t, path, c.want)
	}
}
