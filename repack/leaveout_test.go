package repack

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// Whatever there is of names, links and needs: what is left is on disk, what is
// not is not, and nothing that is left needs what is not.
func TestLeaveOutKeepsTheTreeWhole(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		m, err := newMaker(dir, Options{Omit: []string{"tests", "docs"}, Layout: LayoutTree}.withDefaults())
		if err != nil {
			rt.Fatal(err)
		}
		defer m.root.Close()
		grow(rt, m)
		before := slices.Clone(m.files)
		if err := m.leaveOut(context.Background()); err != nil {
			rt.Fatal(err)
		}
		checkWhole(rt, m, before)
	})
}

// grow draws a tree, on disk and as unpack and readFacts give it.
func grow(t *rapid.T, m *maker) {
	dirs := []string{"clients", "clients/in", "lib", "share", "share/x", "share/x/tests"}
	names := []string{"liba.so", "libb.so", "libc.so", "test_a", "x.txt"}
	for _, d := range dirs {
		if err := m.root.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
		m.files = append(m.files, manifest.File{Path: d, Kind: manifest.Dir, Mode: 0o755})
	}
	var firsts []manifest.File
	taken := map[string]bool{}
	for range rapid.IntRange(1, 12).Draw(t, "n") {
		p := rapid.SampledFrom(dirs).Draw(t, "dir") + "/" + rapid.SampledFrom(names).Draw(t, "name")
		if taken[p] {
			continue
		}
		taken[p] = true
		f := manifest.File{Path: p, Kind: manifest.Regular, Mode: 0o444, Size: 1, SHA256: "x"}
		var err error
		switch kind := rapid.IntRange(0, 4).Draw(t, "kind"); {
		case kind == 0:
			to := rapid.SampledFrom(m.files).Draw(t, "to").Path
			f = manifest.File{Path: p, Kind: manifest.Symlink, Link: strings.Repeat("../", strings.Count(p, "/")) + to}
			err = m.root.Symlink(f.Link, p)
		case kind == 1 && len(firsts) > 0:
			f = rapid.SampledFrom(firsts).Draw(t, "first")
			f.Same, f.Path = f.Path, p
			err = m.root.Link(f.Same, p)
		default:
			if kind > 2 {
				f.ELF = &manifest.ELF{Class: 64, Machine: "x86_64", Type: "dyn", Dynamic: true, Needed: rapid.SliceOfN(rapid.SampledFrom(names), 0, 2).Draw(t, "needed")}
			}
			firsts = append(firsts, f)
			err = m.root.WriteFile(p, []byte("x"), 0o444)
		}
		if err != nil {
			t.Fatal(err)
		}
		m.files = append(m.files, f)
	}
	manifest.Sort(m.files)
}

func checkWhole(t *rapid.T, m *maker, before []manifest.File) {
	left := map[string]manifest.File{}
	onDisk := map[string]bool{}
	fs.WalkDir(m.root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if p != "." {
			onDisk[p] = true
		}
		return err
	})
	for _, f := range m.files {
		left[f.Path] = f
	}
	if !maps.EqualFunc(left, onDisk, func(manifest.File, bool) bool { return true }) {
		t.Fatalf("listed %v, on disk %v", slices.Sorted(maps.Keys(left)), slices.Sorted(maps.Keys(onDisk)))
	}
	gone := map[string]bool{}
	for _, o := range m.omitted {
		if _, in := left[o.Path]; in != (o.Needs != "") {
			t.Fatalf("%+v", o)
		}
		gone[o.Path] = o.Needs == ""
	}
	for _, f := range before {
		if _, in := left[f.Path]; !in && !gone[f.Path] {
			t.Fatalf("%s is lost", f.Path)
		}
	}
	for _, f := range m.files {
		if first, in := left[f.Same]; f.Same != "" && (!in || first.Same != "") {
			t.Fatalf("%s is the same as %q", f.Path, f.Same)
		}
		if f.Kind == manifest.Symlink {
			if _, err := m.root.Stat(f.Path); errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("%s leads nowhere, to %s", f.Path, f.Link)
			}
		}
		if f.ELF == nil {
			continue
		}
		for _, name := range f.ELF.Needed {
			for _, b := range before {
				if filepath.Base(b.Path) == name && gone[b.Path] && b.Kind == manifest.Regular {
					t.Fatalf("%s needs %s, and %s was left out", f.Path, name, b.Path)
				}
			}
		}
	}
}
