package diff

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// listed writes the lines of a files.jsonl and a manifest.json into a new
// directory that holds no tree.
func listed(t testing.TB, mani string, lines ...string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, manifest.FilesName), strings.Join(lines, "\n")+"\n")
	write(t, filepath.Join(dir, manifest.Name), mani)
	return dir
}

const emptyManifest = `{"schema": 1, "version": "10.2.0a20260930", "recipe": "sha256:00"}`

// Two lists alone tell which files differ; what only contents tell is noted.
func TestListsAlone(t *testing.T) {
	elf := `"elf":{"class":64,"machine":"x86_64","type":"dyn","dynamic":true,"soname":"libfoo.so.1"}`
	a := listed(t, emptyManifest,
		`{"path":"opt/rocm/lib/libfoo.so.1","kind":"file","mode":"0555","size":9,"sha256":"aa",`+elf+`}`,
		`{"path":"opt/rocm/include/a.h","kind":"file","mode":"0444","size":5,"sha256":"bb"}`,
		`{"path":"opt/rocm/include/same.h","kind":"file","mode":"0444","size":5,"sha256":"ee","before":"dd"}`,
		`{"path":"bin/tool","kind":"file","mode":"0555","size":5,"sha256":"cc"}`)
	b := listed(t, strings.Replace(emptyManifest, "}", `, "omitted": {"kernels": {"files": 1, "bytes": 2}}}`, 1),
		`{"path":"opt/rocm/lib/libfoo.so.1","kind":"file","mode":"0555","size":9,"sha256":"ab",`+elf+`}`,
		`{"path":"opt/rocm/include/a.h","kind":"file","mode":"0444","size":6,"sha256":"bc"}`,
		`{"path":"opt/rocm/include/same.h","kind":"file","mode":"0444","size":5,"sha256":"ff","before":"dd"}`,
		`{"path":"bin/tool","kind":"file","mode":"0555","size":5,"sha256":"cd"}`)
	r := compare(t, a, b)
	if r.Files.Changed.Files != 2 || r.Files.Edits.Files != 1 || *r.Wrapping != (Wrapping{Changed: 1}) || len(r.Risks) != 0 {
		t.Errorf("%+v", r)
	}
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "libfoo.so.1") || !slices.Equal(r.B.Omitted, []string{"kernels"}) {
		t.Errorf("%q", r.Notes)
	}
}

// What is left out on purpose is said to be.
func TestLeftOutOnPurpose(t *testing.T) {
	k := `{"path":"opt/rocm/lib/rocblas/library/K_gfx1100.co","kind":"file","mode":"0444","size":9,"sha256":"aa"}`
	x := `{"path":"opt/rocm/bin/x","kind":"file","mode":"0555","size":9,"sha256":"aa"}`
	r := compare(t, listed(t, emptyManifest, k, x), listed(t, strings.Replace(emptyManifest, "}", `, "omitted": {"kernels": {}}}`, 1), x))
	if len(r.Risks) != 1 || !strings.Contains(r.Risks[0].Detail, "left out on purpose") {
		t.Errorf("%+v", r.Risks)
	}
}

func TestNoTree(t *testing.T) {
	good := tree{"bin/x": "x"}.on(t)
	for _, c := range []struct {
		dir  string
		want error
		says string
	}{
		{t.TempDir(), ErrNotTree, "files.jsonl"},
		{filepath.Join(t.TempDir(), "none"), os.ErrNotExist, ""},
		{listed(t, emptyManifest), ErrNotTree, ""},
		{listed(t, emptyManifest, `{"path":"../etc/passwd","kind":"file"}`), nil, "is no path"},
		{listed(t, emptyManifest, `{"path":"/etc/passwd","kind":"file"}`), nil, "is no path"},
		{listed(t, emptyManifest, `{`), nil, "line 1"},
		{listed(t, `{"schema": 99}`, `{"path":"bin/x","kind":"file"}`), manifest.ErrNewer, ""},
		{listed(t, `[]`, `{"path":"bin/x","kind":"file"}`), nil, manifest.Name},
	} {
		_, err := Compare(context.Background(), Source{Dir: good}, Source{Dir: c.dir}, Options{})
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.dir, err)
		}
	}
	_, err := Compare(context.Background(), Source{Dir: good, List: "none.jsonl"}, Source{Dir: good}, Options{})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a list that was asked for is missing: %v", err)
	}
}

// Links that lead out, pipes, and lists that lie cost a note, and read nothing
// outside of the tree.
func TestHostileTree(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "#!/the/secret\n")
	a := tree{"bin/x": "#!/bin/sh\n", "bin/pipe": "#!/bin/sh\n", "share/loop": "-> loop", "lib/out": "-> " + filepath.Dir(secret)}
	b := a.prefix(t)
	for _, name := range []string{"bin/x", "bin/pipe"} {
		if err := os.Remove(filepath.Join(b, rocmDir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(secret, filepath.Join(b, rocmDir, "bin/x")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(b, rocmDir, "bin/pipe"), 0o755); err != nil {
		t.Fatal(err)
	}
	// The digests of the list are others, so that the contents are looked at.
	name := filepath.Join(b, manifest.FilesName)
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(strings.ReplaceAll(string(raw), `"sha256":"`, `"sha256":"0`)), 0o644); err != nil {
		t.Fatal(err)
	}
	r := compare(t, a.on(t), b)
	if strings.Contains(fmt.Sprintf("%+v", r), "/the/secret") || len(r.Notes) == 0 {
		t.Errorf("%+v", r)
	}
	if r.Files.Kind != 2 {
		t.Errorf("%+v", r.Files)
	}
	// The same without lists: a pipe is of another kind.
	if err := errors.Join(os.Remove(name), os.Remove(filepath.Join(b, manifest.Name))); err != nil {
		t.Fatal(err)
	}
	if r = compare(t, a.on(t), b); r.Files.Kind != 2 || strings.Contains(fmt.Sprintf("%+v", r), "/the/secret") {
		t.Errorf("%+v", r)
	}
}

// Wrappers and hooks of prefixes without lists are compared by their content.
func TestWrapping(t *testing.T) {
	a := tree{"opt/rocm/bin/x": "x", "bin/x": "one", "bin/y": "y", "etc/env.sh": "e", "share": "-> opt/rocm/share"}
	b := tree{"opt/rocm/bin/x": "x", "bin/x": "two", "bin/z": "z", "etc/env.sh": "e", "share": "-> opt/rocm/other"}
	if r := compare(t, a.on(t), b.on(t)); *r.Wrapping != (Wrapping{Added: 1, Removed: 1, Changed: 2}) || len(r.Changed) != 0 {
		t.Errorf("%+v", r)
	}
	if r := compare(t, a.on(t), a.on(t)); *r.Wrapping != (Wrapping{}) {
		t.Errorf("%+v", r)
	}
}

func TestHardLinks(t *testing.T) {
	a := tree{"lib/a": strings.Repeat("a", 1000)}.on(t)
	if err := os.Link(filepath.Join(a, "lib/a"), filepath.Join(a, "lib/b")); err != nil {
		t.Fatal(err)
	}
	r := compare(t, a, tree{"lib/a": strings.Repeat("a", 1000), "lib/b": strings.Repeat("a", 1000)}.on(t))
	if r.A.Bytes != 1000 || r.B.Bytes != 2000 || r.Files.Same.Files != 2 || r.Files.Delta != 1000 {
		t.Errorf("%+v", r)
	}
}

// The same trees give the same report, however many work on it.
func TestReportIsTheSame(t *testing.T) {
	a, b := base(t), base(t).with(tree{"bin/tool": "", "lib/llvm/bin/clang.cfg": "x\n", "include/foo.h": "", "include/new.h": "n"})
	delete(b, "lib/libfoo.so.1.2")
	dirA, dirB := a.on(t), b.on(t)
	first := compare(t, dirA, dirB)
	for range 5 {
		r, err := Compare(context.Background(), Source{Name: "A", Dir: dirA}, Source{Name: "B", Dir: dirB}, Options{Jobs: 8})
		if err != nil || !reflect.DeepEqual(r, first) {
			t.Fatalf("%v\n%+v\n%+v", err, r, first)
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir := tree{"bin/x": "x"}.on(t)
	if _, err := Compare(ctx, Source{Dir: dir}, Source{Dir: dir}, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
