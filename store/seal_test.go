package store

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A seal is made by Commit, and by a full Verify where it was lost; it goes with
// the generation. Whatever is in its place instead is as good as none.
func TestSealsCanBeLost(t *testing.T) {
	s := open(t)
	g, other := twoAlike(t, s, treeToDamage())
	path := sealPath(g)
	good, err := os.ReadFile(path)
	must(t, err)
	stale, err := os.ReadFile(sealPath(other))
	must(t, err)
	for name, text := range map[string][]byte{
		"absent": nil, "empty": {}, "cut off": good[:len(good)/2], "flipped": flipped(bytes.Clone(good)),
		"another's": stale, "long": append(bytes.Clone(good), "1 2 3\n"...), "nonsense": []byte("{}\n"),
	} {
		must(t, os.RemoveAll(path))
		if name != "absent" {
			must(t, os.WriteFile(path, text, 0o644))
		}
		v := verify(t, s, g, VerifyOptions{Fast: true})
		if !v.OK() || v.Method != MethodManifest || v.Seal != SealNone {
			t.Errorf("%s, fast: %+v", name, brief(v))
		}
		if now, _ := os.ReadFile(path); !bytes.Equal(now, text) {
			t.Errorf("%s: what was not read was sealed", name)
		}
		if v := verify(t, s, g, VerifyOptions{}); !v.OK() || v.Method != MethodFull || v.Seal != SealFresh {
			t.Errorf("%s, full: %+v", name, brief(v))
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, good) {
			t.Errorf("%s: it was not made anew as it was: %v", name, err)
		}
	}
	must(t, os.Remove(path), os.Symlink("/dev/zero", path))
	if v := verify(t, s, g, VerifyOptions{}); !v.OK() || v.Seal != SealFresh {
		t.Errorf("a link: %+v", brief(v))
	}
	must(t, s.Slot("nightly", "gfx1151").Remove(t.Context(), g.Name))
	if left := entries(t, filepath.Dir(path)); len(left) != 1 || left[0] != filepath.Base(sealPath(other)) {
		t.Errorf("left: %q", left)
	}
}

// A seal of a newer program is not written over, and not believed.
func TestSealOfANewerProgramStays(t *testing.T) {
	s := open(t)
	g := oneNight(t, s, treeToDamage())
	b, err := os.ReadFile(sealPath(g))
	must(t, err)
	b = bytes.Replace(b, []byte(`"schema":1`), []byte(`"schema":9`), 1)
	must(t, os.WriteFile(sealPath(g), b, 0o644))
	v := verify(t, s, g, VerifyOptions{})
	now, err := os.ReadFile(sealPath(g))
	if !v.OK() || v.Seal != SealUnwritable || err != nil || !bytes.Equal(now, b) {
		t.Errorf("%+v, %v", brief(v), err)
	}
}

// Without a seal that knows better, lists that contradict each other are damage.
func TestVerifyWithoutASealComparesTheLists(t *testing.T) {
	s := open(t)
	g := oneNight(t, s, treeToDamage())
	must(t, os.Remove(sealPath(g)))
	overwrite(t, g.Dir+"/files.jsonl", func(b []byte) []byte {
		lines := strings.SplitAfter(string(b), "\n")
		for i, line := range lines {
			if strings.Contains(line, "opt/rocm/empty") {
				lines[i] = ""
			}
		}
		return []byte(strings.Join(lines, ""))
	})
	v := verify(t, s, g, VerifyOptions{})
	equal(t, "damage", told(v), []string{"files.jsonl list"})
	if v.Seal != SealNone {
		t.Errorf("it was sealed: %+v", brief(v))
	}
	if _, err := os.Lstat(sealPath(g)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it was sealed: %v", err)
	}
}

// What a kill left of a seal that was being written goes, and so does the seal of a
// generation that is gone: a kill came before it.
func TestHalvesOfSealsGo(t *testing.T) {
	s := open(t)
	g, other := twoAlike(t, s, treeToDamage())
	half := filepath.Join(filepath.Dir(sealPath(g)), "."+filepath.Base(sealPath(g))+"123")
	sl, stale := s.Slot("nightly", "gfx1151"), filepath.Join(filepath.Dir(half), "10.1.0.seal")
	must(t, os.WriteFile(half, nil, 0o600), os.WriteFile(stale, nil, 0o644))
	if _, err := sl.Prune(t.Context(), Keep{Last: 9}); err != nil { // which removes nothing
		t.Fatal(err)
	}
	equal(t, "pruned", entries(t, filepath.Dir(half)), slices.Sorted(slices.Values([]string{filepath.Base(sealPath(g)), filepath.Base(sealPath(other))})))
	must(t, sl.Remove(t.Context(), g.Name))
	equal(t, "left", entries(t, filepath.Dir(half)), []string{filepath.Base(sealPath(other))})
}

// A verify whose half of a seal was taken for a dead one's makes it once more.
func TestSealThatWasSweptIsWrittenAgain(t *testing.T) {
	s := open(t)
	g := oneNight(t, s, treeToDamage())
	must(t, os.Remove(sealPath(g)))
	real, times := s.disk.replace, 0
	s.disk.replace = func(path string, data []byte) error {
		if times++; times == 1 {
			return &os.LinkError{Op: "rename", Old: "." + path, New: path, Err: fs.ErrNotExist}
		}
		return real(path, data)
	}
	if v := verify(t, s, g, VerifyOptions{}); v.Seal != SealFresh || times != 2 {
		t.Errorf("%+v after %d writes", brief(v), times)
	}
	if _, err := os.Stat(sealPath(g)); err != nil {
		t.Error(err)
	}
}

// What a kill left of the records in ROOT goes with the next run, or link.
func TestHalvesOfRecordsOfTheRootGo(t *testing.T) {
	s := open(t)
	oneNight(t, s, treeToDamage())
	must(t, os.WriteFile(filepath.Join(s.root, ".store.json123"), nil, 0o600), os.WriteFile(filepath.Join(s.root, ".links.json123"), nil, 0o600))
	lock, err := s.LockRun(t.Context(), "test")
	must(t, err)
	must(t, lock.Release(), s.withLinks(t.Context(), func(*linkBook) error { return nil }))
	for _, name := range entries(t, s.root) {
		if name[0] == '.' {
			t.Errorf("%s is left", name)
		}
	}
}

// FuzzSeal holds that any bytes are either no seal, or one that reads back as it
// was written.
func FuzzSeal(f *testing.F) {
	good, err := (&seal{dir: 7, lists: [3][32]byte{{1}, {2}, {}}, stamps: []stamp{{1, 2e9, 3}, {}, {1 << 63, -1, 0}}}).encode("10.2.0a20260930")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"schema":2}` + "\n"))
	f.Add(bytes.Repeat([]byte("a"), 70))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, se, err := parseSeal(b)
		if err != nil {
			// The digest at the end keeps most of what is tried from the parser.
			_, se, err = parseSeal(sealed(b))
		}
		if err != nil {
			return
		}
		again, err := se.encode(h.Generation)
		if err != nil {
			t.Fatal(err)
		}
		if _, back, err := parseSeal(again); err != nil || !back.equal(se) {
			t.Fatalf("%v: %+v, %+v", err, se, back)
		}
	})
}
