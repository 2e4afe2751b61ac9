package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// listed makes a prefix that is a list and nothing else.
func listed(t *testing.T, files ...manifest.File) string {
	t.Helper()
	dir := t.TempDir()
	manifest.Sort(files)
	var b strings.Builder
	if err := manifest.WriteFiles(&b, files); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, manifest.FilesName), b.String())
	return dir
}

func TestCompare(t *testing.T) {
	sum := func(c string) string { return strings.Repeat(c, 64) }
	file := func(path, c string, size, mtime int64) manifest.File {
		return manifest.File{Path: path, Kind: manifest.Regular, Mode: 0o444, Size: size, MTime: mtime, SHA256: sum(c)}
	}
	edited := func(f manifest.File, before string, rules ...string) manifest.File {
		f.Before, f.Edits = sum(before), rules
		return f
	}
	exec := func(f manifest.File) manifest.File {
		f.Mode = 0o555
		return f
	}
	twin := file("same2", "a", 10, 1)
	twin.Same = "same"
	a := listed(t, file("same", "a", 10, 1), twin, file("time", "b", 20, 1), file("old/place", "c", 30, 1), file("mode", "d", 40, 1),
		edited(file("edits", "e", 50, 1), "f", "run-path"), file("edits2", "0", 5, 1), file("content", "1", 60, 1), file("gone", "2", 70, 1),
		manifest.File{Path: "dir", Kind: manifest.Dir, Mode: 0o755}, manifest.File{Path: "link", Kind: manifest.Symlink, Link: "x"}, file("becomes", "3", 1, 1))
	b := listed(t, file("same", "a", 10, 1), twin, file("time", "b", 20, 2), file("new/place", "c", 30, 2), exec(file("mode", "d", 40, 2)),
		edited(file("edits", "6", 51, 2), "f", "run-path", "interpreter"), edited(file("edits2", "7", 6, 2), "0", "run-path"), file("content", "8", 61, 2),
		file("fresh", "9", 80, 2), manifest.File{Path: "dir", Kind: manifest.Dir, Mode: 0o755}, manifest.File{Path: "link", Kind: manifest.Symlink, Link: "y"},
		manifest.File{Path: "becomes", Kind: manifest.Symlink, Link: "z"})
	c, err := Compare(t.Context(), a, b)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]struct {
		t    Tally
		want Tally
	}{
		"same": {c.Same, Tally{2, 30}}, "time only": {c.TimeOnly, Tally{1, 20}}, "moved": {c.Moved, Tally{1, 30}}, "changed": {c.Changed, Tally{4, 40 + 51 + 6 + 61}},
		"mode only": {c.ModeOnly, Tally{1, 40}}, "edits only": {c.EditsOnly, Tally{2, 57}}, "run-path": {c.Rules["run-path"], Tally{2, 57}},
		"interpreter": {c.Rules["interpreter"], Tally{1, 51}}, "added": {c.Added, Tally{1, 80}}, "removed": {c.Removed, Tally{2, 100}}, "A": {c.A.Tally, Tally{9, 286}},
	} {
		if got.t != got.want {
			t.Errorf("%s: %+v, want %+v", name, got.t, got.want)
		}
	}
	if c.Missing != 3 || c.Other != 2 || len(c.Largest) != 5 || c.Largest[0] != (Change{"fresh", 80, 0, "added"}) || c.Largest[1] != (Change{"content", 61, 60, "content"}) {
		t.Errorf("%+v", c)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Compare(ctx, a, b); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// Holes are on no disk: sharing them would save nothing.
func TestCompareLeavesHolesOut(t *testing.T) {
	const size = 4 << 20
	holes := manifest.File{Path: "holes", Kind: manifest.Regular, Mode: 0o444, Size: size, SHA256: strings.Repeat("a", 64)}
	a, b := listed(t, holes), listed(t, holes)
	for _, dir := range []string{a, b} {
		write(t, filepath.Join(dir, "holes"), "not all of it")
		if err := os.Truncate(filepath.Join(dir, "holes"), size); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Compare(t.Context(), a, b)
	if err != nil || c.Unshared.Files != 1 || c.Unshared.Bytes == 0 || c.Unshared.Bytes > size/2 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestCompareKeepsTheLargest(t *testing.T) {
	var files []manifest.File
	for i := range 500 {
		files = append(files, manifest.File{Path: fmt.Sprintf("f%03d", i), Kind: manifest.Regular, Mode: 0o444, Size: int64(1 + i*7%500), SHA256: fmt.Sprintf("%064x", i)})
	}
	c, err := Compare(t.Context(), listed(t), listed(t, files...))
	if err != nil || len(c.Largest) != maxLargest || c.Largest[0].Bytes != 500 || c.Largest[maxLargest-1].Bytes != 500-maxLargest+1 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestCompareSaysWhatIsNoPrefix(t *testing.T) {
	whole := listed(t)
	for name, dir := range map[string]string{"none": t.TempDir(), "absent": filepath.Join(t.TempDir(), "x"), "lies": listed(t, manifest.File{Path: "../x", Kind: manifest.Regular})} {
		if _, err := Compare(t.Context(), whole, dir); err == nil || !strings.Contains(err.Error(), dir) && name != "absent" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Compare(t.Context(), t.TempDir(), whole); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "no files.jsonl") {
		t.Errorf("%v", err)
	}
}

func TestGenerationByName(t *testing.T) {
	s := open(t)
	sl := s.Slot("nightly", "gfx1151")
	install(t, sl, night(1), night(2))
	for _, name := range []string{night(1), night(2), night(2) + "-r1"} {
		g, err := sl.Generation(name)
		if err != nil || !strings.HasPrefix(name, g.Name) || g.Active != (g.Name == night(2)) {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
	}
	var missing *GenerationError
	if _, err := sl.Generation("9"); !errors.As(err, &missing) || len(missing.Have) != 2 {
		t.Errorf("%v", err)
	}
	if _, err := s.Slot("nightly", "nothing").Generation("9"); err == nil {
		t.Error("nothing was found in a slot that is not there")
	}
}

// Usage counts what two generations share once, and says what each frees.
func TestUsage(t *testing.T) {
	u := &Usage{Slots: map[string]int64{}, Generations: map[string]GenerationUsage{}}
	ino := func(n uint64, size int64) piece { return piece{id: inode{1, n}, size: size} }
	at := func(start, end uint64) piece { return piece{ext: extent{start, end}, size: int64(end - start)} }
	u.sum([]*tree{
		{slot: "s", dir: "a", alone: 1000, shared: []piece{ino(1, 10), ino(2, 20), at(0, 100), at(50, 60)}},
		{slot: "s", dir: "b", alone: 2000, shared: []piece{ino(1, 10), at(40, 140)}},
		{slot: "r", dir: "c", alone: 3000, shared: []piece{ino(1, 10)}},
	})
	want := &Usage{Total: 6000 + 30 + 140, Slots: map[string]int64{"s": 3000 + 30 + 140, "r": 3010},
		Generations: map[string]GenerationUsage{"a": {1000 + 30 + 100, 1000 + 20 + 40}, "b": {2000 + 10 + 100, 2000 + 40}, "c": {3010, 3000}}}
	if fmt.Sprint(u) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", u, want)
	}
	s := open(t)
	if u, err := s.Usage(t.Context()); err != nil || u.Total != 0 {
		t.Errorf("an empty store: %+v, %v", u, err)
	}
	install(t, s.Slot("nightly", "gfx1151"), night(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Usage(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
