package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// filesPerTree is how many files the trees of these tests have.
const filesPerTree = 12

// night returns the n-th of a row of versions.
func night(n int) string { return fmt.Sprintf("10.2.0a%d", 20260100+n) }

// scratch returns an empty directory in memory where there is one: syncfs on
// a disk that others write to takes as long as they have written.
// STORE_TEST_DIR is taken instead, if it is set.
func scratch(t testing.TB) string {
	where := os.Getenv("STORE_TEST_DIR")
	if where == "" {
		where = "/dev/shm"
	}
	dir, err := os.MkdirTemp(where, "store-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := removeTree(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// open returns a store whose clock moves a second at each look.
func open(t testing.TB) *Store {
	t.Helper()
	s, err := Open(filepath.Join(scratch(t), "root"))
	if err != nil {
		t.Fatal(err)
	}
	clock := time.Date(2026, 9, 30, 6, 30, 0, 0, time.UTC)
	s.Now = func() time.Time {
		clock = clock.Add(time.Second)
		return clock
	}
	return s
}

// fill writes a small tree that says which version it is, manifest last.
func fill(dir, version, recipe string) error {
	bin := filepath.Join(dir, "opt/rocm/bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	for i := range filesPerTree {
		if err := os.WriteFile(filepath.Join(bin, fmt.Sprint("f", i)), []byte(version), 0o444); err != nil {
			return err
		}
	}
	f, err := os.Create(filepath.Join(dir, manifest.Name))
	if err != nil {
		return err
	}
	m := &manifest.Manifest{Schema: manifest.Schema, Version: version, Recipe: recipe, Options: []byte("{}"),
		Counts: manifest.Counts{Files: filesPerTree, Bytes: int64(filesPerTree * len(version))}}
	return errors.Join(manifest.Write(f, m), f.Close())
}

// whole returns an error unless the generation is exactly what fill wrote.
func whole(g *Generation) error {
	m, err := g.Manifest()
	if err != nil {
		return err
	}
	if m.Version != g.Version {
		return fmt.Errorf("%s holds %s", g.Name, m.Version)
	}
	for i := range filesPerTree {
		b, err := os.ReadFile(filepath.Join(g.Dir, "opt/rocm/bin", fmt.Sprint("f", i)))
		if err != nil || string(b) != g.Version {
			return fmt.Errorf("%s: file %d holds %q: %v", g.Name, i, b, err)
		}
	}
	return nil
}

// commit installs a version without activating it.
func commit(t testing.TB, sl *Slot, version, recipe string) *Generation {
	t.Helper()
	st, err := sl.Stage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := st.Abort(); err != nil {
			t.Error(err)
		}
	}()
	if err := fill(st.Dir(), version, recipe); err != nil {
		t.Fatal(err)
	}
	g, err := st.Commit(version)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// install installs versions one after the other and activates each.
func install(t testing.TB, sl *Slot, versions ...string) {
	t.Helper()
	for _, v := range versions {
		g := commit(t, sl, v, "")
		if err := sl.Activate(t.Context(), g.Name, "update"); err != nil {
			t.Fatal(err)
		}
	}
}

// active returns the name of the active generation, "" if there is none.
func active(t testing.TB, sl *Slot) string {
	t.Helper()
	g, err := sl.Current()
	if err != nil {
		t.Fatal(err)
	}
	if g == nil {
		return ""
	}
	return g.Name
}

// names returns what is installed.
func names(t testing.TB, sl *Slot) []string {
	t.Helper()
	gens, err := sl.Generations()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, g := range gens {
		out = append(out, g.Name)
	}
	return out
}

// entries lists a directory.
func entries(t testing.TB, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}

func equal(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestEveryPromiseHasATest(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var tests []byte
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		tests = append(tests, b...)
	}
	promises := regexp.MustCompile(`(?m)^//   - (\w+):`).FindAllSubmatch(doc, -1)
	if len(promises) == 0 {
		t.Error("doc.go promises nothing")
	}
	for _, p := range promises {
		if !bytes.Contains(tests, []byte("func Test"+string(p[1])+"(")) {
			t.Errorf("%s has no test", p[1])
		}
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", file} {
		if _, err := Open(bad); err == nil {
			t.Errorf("%q was opened", bad)
		}
	}
	s, err := Open(filepath.Join(dir, "not/there/yet"))
	if err != nil {
		t.Fatal(err)
	}
	sl := s.Slot("nightly", "gfx1151")
	if g, err := sl.Current(); g != nil || err != nil {
		t.Errorf("current: %v, %v", g, err)
	}
	if n := names(t, sl); len(n) != 0 {
		t.Errorf("generations %q", n)
	}
	if _, _, err := sl.Rollback(t.Context()); err == nil {
		t.Error("rolled back where nothing is")
	}
	if sl.Skip(night(1)) {
		t.Error("skips where nothing is")
	}
	if _, err := os.Stat(s.Root()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was created by looking: %v", err)
	}
}

func TestNamesStayInside(t *testing.T) {
	s := open(t)
	for _, bad := range []string{"", ".", "..", "a/b", "../x", "a..b", ".x", "-x", "a b", "a\nb", "a\x00b", "ü", strings.Repeat("a", 201)} {
		sl := s.Slot("nightly", bad)
		_, stageErr := sl.Stage(t.Context())
		_, currentErr := sl.Current()
		for _, err := range []error{stageErr, currentErr, sl.Activate(t.Context(), "x", ""), sl.WriteRun("x", 1), s.Slot(bad, "gfx1").err,
			s.Slot("nightly", "gfx1").WriteRun(bad, 1), s.Slot("nightly", "gfx1").ReadRun(bad, nil)} {
			if !errors.Is(err, ErrName) {
				t.Errorf("%q: %v", bad, err)
			}
		}
		if sl.Dir() != "" || sl.CurrentPath() != "" {
			t.Errorf("%q has a directory", bad)
		}
	}
	if err := s.Slot("my-mirror", "gfx1").err; !errors.Is(err, ErrName) {
		t.Errorf("a channel with a dash: %v", err)
	}
	if sl := s.Slot("nightly", "gfx110X-all"); sl.Dir() != filepath.Join(s.Root(), "slots/nightly-gfx110X-all") {
		t.Errorf("directory %s", sl.Dir())
	}
	if _, err := os.Stat(s.Root()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a bad name created something: %v", err)
	}
}

func TestSpoolDir(t *testing.T) {
	s := open(t)
	const name = "therock-dist-linux-gfx1151-10.2.0a20260930+bkc.20261001.tar.gz"
	if got, want := s.SpoolDir("nightly", name), filepath.Join(s.Root(), "spool/nightly", name); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	seen := map[string]string{}
	for _, bad := range []string{"", ".", "..", "../..", "a/b", "a%2Fb", "%a%2Fb", "-x", "\x00", strings.Repeat("é", 300), strings.Repeat("é", 301)} {
		got := s.SpoolDir("nightly", bad)
		if rel, ok := within(filepath.Join(s.Root(), "spool/nightly"), got); !ok || strings.Contains(rel, "/") || len(rel) > 255 {
			t.Errorf("%q: %s", bad, got)
		}
		if other, ok := seen[got]; ok {
			t.Errorf("%q and %q meet", bad, other)
		}
		seen[got] = bad
	}
}

func TestFindSlot(t *testing.T) {
	s := open(t)
	find := func(name, want string) {
		t.Helper()
		sl, err := s.FindSlot(name)
		var se *SlotError
		switch {
		case want == "" && !errors.As(err, &se):
			t.Errorf("find %q: %v, %v", name, sl, err)
		case want != "" && (err != nil || sl.Name() != want):
			t.Errorf("find %q: %v", name, err)
		}
	}
	find("", "")
	if _, err := s.Slot("nightly", "gfx900").Stage(t.Context()); err != nil {
		t.Fatal(err)
	}
	find("", "nightly-gfx900") // the only one, though unfinished
	install(t, s.Slot("nightly", "gfx110X-all"), night(1))
	find("", "nightly-gfx110X-all")
	install(t, s.Slot("rc", "gfx1151"), night(1))
	install(t, s.Slot("nightly", "gfx1151"), night(1))
	find("", "")
	find("gfx1151", "")
	find("gfx110X-all", "nightly-gfx110X-all")
	find("rc-gfx1151", "rc-gfx1151")
	find("../..", "")
	_, err := s.FindSlot("gfx1")
	if err == nil || !strings.Contains(err.Error(), "nightly-gfx110X-all, nightly-gfx1151, nightly-gfx900, rc-gfx1151") {
		t.Errorf("error does not list what there is: %v", err)
	}
	slots, err := s.Slots()
	if err != nil || len(slots) != 4 || slots[0].Channel() != "nightly" || slots[0].Target() != "gfx110X-all" {
		t.Errorf("slots %v, %v", slots, err)
	}
}

func TestUmaskIsIgnored(t *testing.T) {
	s := open(t)
	withUmask(0o077, func() {
		sl := s.Slot("nightly", "gfx1151")
		install(t, sl, night(1), night(2))
		lock, err := s.LockRun(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(lock.Release(), sl.WriteRun("x", 1), s.AppendPin(pinOf("a", 1))); err != nil {
			t.Fatal(err)
		}
	})
	err := filepath.WalkDir(s.Root(), func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if strings.Contains(p, "/generations/") && strings.Contains(p, "/opt") || e.Name() == manifest.Name {
			return nil // made by the test
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o644)
		switch {
		case e.IsDir():
			want = 0o755
		case e.Type() == fs.ModeSymlink:
			return nil
		}
		if fi.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", p, fi.Mode().Perm(), want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
