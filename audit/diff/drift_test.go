package diff

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// A prefix that was edited by hand is compared as it is, not as its list has it.
func TestEditedSinceInstalled(t *testing.T) {
	lib := compile(t, "int one(void) { return 1; } int two(void) { return 2; }", "", "-Wl,-soname,libfoo.so.1")
	less := compile(t, "int one(void) { return 1; }", "", "-Wl,-soname,libfoo.so.1")
	tr := tree{"lib/libfoo.so.1": lib, "lib/llvm/bin/rocm.cfg": "-O1\n", "bin/tool": "#!/bin/sh\n", "lib/rocblas/library/K_gfx1100.co": "k", "lib/rocblas/library/K_gfx1201.co": "k"}
	a, b := tr.prefix(t), tr.prefix(t)
	in := func(p string) string { return filepath.Join(b, rocmDir, p) }
	if r := compare(t, a, b); len(r.Risks)+len(r.Notes) != 0 {
		t.Fatalf("nothing was edited: %+v %q", r.Risks, r.Notes)
	}
	write(t, in("lib/libfoo.so.1"), less)
	write(t, in("lib/llvm/bin/rocm.cfg"), "-O2\n") // of the same size
	write(t, in("share/new"), "new")
	if err := errors.Join(os.Remove(in("bin/tool")), os.Remove(in("lib/rocblas/library/K_gfx1201.co"))); err != nil {
		t.Fatal(err)
	}
	r := compare(t, a, b)
	var kinds []string
	for _, k := range r.Risks {
		kinds = append(kinds, k.Kind)
	}
	if want := []string{RiskKernels, RiskSymbols, RiskPrograms, RiskConfig}; !slices.Equal(kinds, want) {
		t.Errorf("%+v", r.Risks)
	}
	if r.Files.Added.Files != 1 || r.Files.Removed.Files != 2 || r.Files.Changed.Files != 2 {
		t.Errorf("%+v", r.Files)
	}
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "as they are now: 5, such as opt/rocm/bin/tool") {
		t.Errorf("%q", r.Notes)
	}
	// The lists themselves, asked for by name, are believed.
	r, err := Compare(t.Context(), Source{Dir: a, List: manifest.FilesName}, Source{Dir: b, List: manifest.FilesName}, Options{})
	if err != nil || len(r.Risks)+r.Files.Changed.Files != 0 {
		t.Errorf("%v %+v", err, r)
	}
}

// A copy has other times, and the same content.
func TestCopyWithOtherTimes(t *testing.T) {
	tr := tree{"lib/a.h": "a", "bin/tool": "#!/bin/sh\n"}
	a, b := tr.prefix(t), tr.prefix(t)
	if err := os.Chtimes(filepath.Join(b, rocmDir, "lib/a.h"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if r := compare(t, a, b); r.Files.Same.Files != 2 || len(r.Notes) != 0 {
		t.Errorf("%+v %q", r.Files, r.Notes)
	}
}

// What stands in a directory that may not be read is believed to be there.
func TestClosedDirectory(t *testing.T) {
	if os.Getuid() == 0 {
		s := &side{}
		s.Name = "A"
		w := &walker{side: s, listed: &listing{by: map[string]*file{}}}
		w.unread("opt/rocm/lib", os.ErrPermission)
		if !slices.Equal(w.closed, []string{"opt/rocm/lib"}) {
			t.Errorf("%q", w.closed)
		}
		return
	}
	tr := tree{"lib/a.h": "a", "bin/tool": "#!/bin/sh\n"}
	a, b := tr.prefix(t), tr.prefix(t)
	dir := filepath.Join(b, rocmDir, "lib")
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(dir, 0o755) })
	if r := compare(t, a, b); r.Files.Same.Files != 2 || r.Files.Removed.Files != 0 {
		t.Errorf("%+v %q", r.Files, r.Notes)
	}
}

// Prefixes at different places have their own paths in rocm.cfg: no risk.
func TestOwnPathInConfig(t *testing.T) {
	x := `{"path":"opt/rocm/bin/x","kind":"file","mode":"0555","size":9,"sha256":"aa"}`
	cfg := `{"path":"opt/rocm/lib/llvm/bin/rocm.cfg","kind":"file","mode":"0444","size":9,"sha256":"DIGEST","before":"dd","edits":["compiler-path"]}`
	a, b := listed(t, emptyManifest, x, strings.Replace(cfg, "DIGEST", "a1", 1)), listed(t, emptyManifest, x, strings.Replace(cfg, "DIGEST", "b1", 1))
	r := compare(t, a, b)
	if len(r.Risks) != 0 || len(r.Config) != 1 || r.Config[0].Why != whyEdits {
		t.Errorf("%+v %+v", r.Risks, r.Config)
	}
}

// Who makes a prefix writable in order to edit it changes no file by that.
func TestMadeWritable(t *testing.T) {
	tr := tree{"include/a.h": "a", "bin/tool": "#!/bin/sh\n"}
	a, b := tr.prefix(t), tr.prefix(t)
	for dir, mode := range map[string]os.FileMode{a: 0o444, b: 0o644} {
		if err := os.Chmod(filepath.Join(dir, rocmDir, "include/a.h"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if r := compare(t, a, b); r.Files.Mode != 0 || r.Files.Same.Files != 2 {
		t.Errorf("%+v", r.Files)
	}
	if err := os.Chmod(filepath.Join(b, rocmDir, "include/a.h"), 0o666); err != nil {
		t.Fatal(err)
	}
	if r := compare(t, a, b); r.Files.Mode != 1 {
		t.Errorf("%+v", r.Files)
	}
}
