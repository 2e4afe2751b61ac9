package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// entry is a file of a tree that these tests make.
type entry struct {
	text string
	same string // path of the first name
	link string // target, of a symlink
	mode os.FileMode
}

// treeOf is some files of content that differs, each of 9 to 20 KiB.
func treeOf(names ...string) map[string]entry {
	m := map[string]entry{}
	for i, name := range names {
		m["opt/rocm/"+name] = entry{text: strings.Repeat(name+"\n", 9<<10/(len(name)+1)+i*17)}
	}
	return m
}

// with is a tree with some more files, or others in their place.
func with(tree, more map[string]entry) map[string]entry {
	out := maps.Clone(tree)
	maps.Copy(out, more)
	return out
}

// dayOf is the time of the files of the n-th night.
func dayOf(n int) time.Time { return time.Date(2026, 1, 1, 11, 0, 0, 0, time.UTC).AddDate(0, 0, n) }

// build writes a tree and its lists as repack does: every time is the night's.
func build(dir string, n int, tree map[string]entry) error {
	dirs := map[string]bool{}
	var files []manifest.File
	names := slices.Sorted(maps.Keys(tree))
	slices.SortStableFunc(names, func(a, b string) int { return strings.Compare(tree[a].same, tree[b].same) })
	for _, name := range names {
		e := tree[name]
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		for d := path.Dir(name); d != "."; d = path.Dir(d) {
			dirs[d] = true
		}
		if e.link != "" {
			if err := os.Symlink(e.link, full); err != nil {
				return err
			}
			files = append(files, manifest.File{Path: name, Kind: manifest.Symlink, Link: e.link})
			continue
		}
		if e.same != "" {
			if err := os.Link(filepath.Join(dir, e.same), full); err != nil {
				return err
			}
			e.text, e.mode = tree[e.same].text, tree[e.same].mode
		} else if err := os.WriteFile(full, []byte(e.text), 0o600); err != nil {
			return err
		}
		if e.mode == 0 {
			e.mode = 0o444
		}
		if err := errors.Join(os.Chmod(full, e.mode), os.Chtimes(full, dayOf(n), dayOf(n))); err != nil {
			return err
		}
		sum := sha256.Sum256([]byte(e.text))
		files = append(files, manifest.File{Path: name, Kind: manifest.Regular, Mode: manifest.Mode(e.mode), Size: int64(len(e.text)),
			MTime: dayOf(n).Unix(), SHA256: hex.EncodeToString(sum[:]), Same: e.same})
	}
	for d := range dirs {
		files = append(files, manifest.File{Path: d, Kind: manifest.Dir, Mode: 0o755, MTime: dayOf(n).Unix()})
	}
	manifest.Sort(files)
	var list, about bytes.Buffer
	m := &manifest.Manifest{Schema: manifest.Schema, Version: night(n), Recipe: "recipe of " + night(n), Options: []byte("{}"), Counts: manifest.Count(ofTree(files))}
	err := errors.Join(manifest.WriteFiles(&list, files), manifest.Write(&about, m))
	for name, text := range map[string][]byte{manifest.FilesName: list.Bytes(), manifest.Name: about.Bytes()} {
		full := filepath.Join(dir, name)
		err = errors.Join(err, os.WriteFile(full, text, 0o444), os.Chtimes(full, dayOf(n), dayOf(n)))
	}
	for d := range dirs {
		err = errors.Join(err, os.Chtimes(filepath.Join(dir, d), dayOf(n), dayOf(n)))
	}
	return errors.Join(err, os.Chtimes(dir, dayOf(n), dayOf(n)))
}

// ofTree are the files that a manifest counts.
func ofTree(files []manifest.File) []manifest.File {
	return slices.DeleteFunc(slices.Clone(files), func(f manifest.File) bool { return !inTree(f.Path) })
}

// asListed returns an error unless a prefix is exactly what its files.jsonl
// says, times and inodes included.
func asListed(dir string) error {
	f, err := os.Open(filepath.Join(dir, manifest.FilesName))
	if err != nil {
		return err
	}
	defer f.Close()
	files, err := manifest.ReadFiles(f)
	if err != nil {
		return err
	}
	known := map[string]bool{".": true, manifest.Name: true, manifest.FilesName: true}
	seen := map[inode]string{}
	for _, f := range files {
		known[f.Path] = true
		full := filepath.Join(dir, f.Path)
		fi, err := os.Lstat(full)
		if err != nil {
			return err
		}
		if f.Kind == manifest.Symlink {
			if to, err := os.Readlink(full); err != nil || to != f.Link {
				return fmt.Errorf("%s leads to %q: %v", f.Path, to, err)
			}
			continue
		}
		if fi.Mode().Perm() != os.FileMode(f.Mode) || !fi.ModTime().Equal(time.Unix(f.MTime, 0)) {
			return fmt.Errorf("%s has mode %v and time %v, not %v and %v", f.Path, fi.Mode(), fi.ModTime().UTC(), f.Mode, time.Unix(f.MTime, 0).UTC())
		}
		if f.Kind != manifest.Regular {
			continue
		}
		data, err := os.ReadFile(full)
		sum := sha256.Sum256(data)
		if err != nil || hex.EncodeToString(sum[:]) != f.SHA256 || int64(len(data)) != f.Size {
			return fmt.Errorf("%s has other bytes: %v", f.Path, err)
		}
		id := inode{statOf(fi).Dev, statOf(fi).Ino}
		if first := seen[id]; first != f.Same {
			return fmt.Errorf("%s is the same as %q, not as %q", f.Path, first, f.Same)
		}
		if f.Same == "" {
			seen[id] = f.Path
		}
	}
	return filepath.WalkDir(dir, func(p string, _ os.DirEntry, err error) error {
		if rel, rerr := filepath.Rel(dir, p); err != nil || rerr != nil || !known[rel] {
			return fmt.Errorf("%s is there and not listed: %v", p, err)
		}
		return nil
	})
}

// nights is a store with one generation and a second one on its way.
type nights struct {
	t     testing.TB
	s     *Store
	first *Generation
	st    *Staging

	donors []Generation // nil: what the staging finds
}

func newNights(t testing.TB, s *Store, older, newer map[string]entry) *nights {
	t.Helper()
	n := &nights{t: t, s: s}
	n.st = n.stage("gfx1151", 1, older)
	n.first = n.commit(1)
	n.st = n.stage("gfx1151", 2, newer)
	return n
}

func (n *nights) stage(target string, night int, tree map[string]entry) *Staging {
	n.t.Helper()
	st, err := n.s.Slot("nightly", target).Stage(n.t.Context())
	if err == nil {
		err = build(st.Dir(), night, tree)
	}
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		if err := st.Abort(); err != nil {
			n.t.Error(err)
		}
	})
	return st
}

func (n *nights) commit(number int) *Generation {
	n.t.Helper()
	g, err := n.st.Commit(night(number))
	if err != nil {
		n.t.Fatal(err)
	}
	return g
}

// reuse shares what it can, and tests that both sides are whole.
func (n *nights) reuse(dedup string, change ...func(*means, *ReuseOptions)) *Reused {
	n.t.Helper()
	by, o := linuxMeans, ReuseOptions{Dedup: dedup}
	for _, c := range change {
		c(&by, &o)
	}
	donors := n.donors
	if donors == nil {
		var err error
		if donors, err = n.st.Donors(); err != nil {
			n.t.Fatal(err)
		}
	}
	res, err := n.st.reuse(n.t.Context(), donors, o, by)
	if err != nil {
		n.t.Fatal(err)
	}
	if err := asListed(n.st.Dir()); err != nil {
		n.t.Errorf("what was staged is not whole: %v", err)
	}
	return res
}

// inodeOf identifies a file.
func inodeOf(t testing.TB, name string) inode {
	t.Helper()
	fi, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	return inode{statOf(fi).Dev, statOf(fi).Ino}
}

func TestReuseSecondNightCostsTheChangedBytes(t *testing.T) {
	older := with(treeOf("bin/tool", "lib/libbig.so", "lib/libsame.so", "share/doc", "was/here"), map[string]entry{
		"opt/rocm/lib/libsame.so.1": {same: "opt/rocm/lib/libsame.so"}, "opt/rocm/empty": {}, "opt/rocm/bin/x": {text: "#!/bin/sh\n", mode: 0o555},
		"opt/rocm/lib/z": {text: strings.Repeat("z", 1<<20)},
	})
	newer := with(older, map[string]entry{"opt/rocm/share/doc": {text: strings.Repeat("new", 8<<10)}, "opt/rocm/is/here": older["opt/rocm/was/here"]})
	delete(newer, "opt/rocm/was/here")
	s := open(t)
	n := newNights(t, s, older, newer)
	res := n.reuse("")
	second := n.commit(2)
	if err := errors.Join(asListed(n.first.Dir), asListed(second.Dir)); err != nil {
		t.Error(err)
	}
	want := Reused{Files: 6, HardLinked: 6, From: []ReusedFrom{{"nightly-gfx1151", night(1), 6, res.Bytes}}, Read: res.Bytes, Bytes: res.Bytes, Seconds: res.Seconds}
	if fmt.Sprintf("%+v", *res) != fmt.Sprintf("%+v", want) || res.Bytes < 1<<20 {
		t.Errorf("%+v, want %+v", *res, want)
	}
	for a, b := range map[string]string{"lib/z": "lib/z", "was/here": "is/here", "lib/libsame.so.1": "lib/libsame.so"} {
		if inodeOf(t, filepath.Join(n.first.Dir, "opt/rocm", a)) != inodeOf(t, filepath.Join(second.Dir, "opt/rocm", b)) {
			t.Errorf("%s is not shared", b)
		}
	}
	u, err := s.Usage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The new file, the two lists and the directories.
	first, own := u.Generations[n.first.Dir], u.Generations[second.Dir].Own
	if least := int64(24 << 10); own < least || own > least+64<<10 || first.Disk < 1<<20 || u.Total != first.Disk+own || u.Slots["nightly-gfx1151"] != u.Total {
		t.Errorf("the second night costs %d bytes of %d: %+v", own, first.Disk, u)
	}
	c, err := Compare(t.Context(), n.first.Dir, second.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if c.Same.Files != 6 || c.Moved.Files != 1 || c.Changed.Files != 1 || c.Added.Files != 0 || c.Removed.Files != 1 || c.HardLinked.Files != 6 || c.Unshared.Files != 0 || c.TimeOnly.Files != 1 || c.Other != 2 {
		t.Errorf("%+v", c)
	}
}

// With off and with reflink nothing of the tree changes where there are none.
func TestReuseKeepsTheTarballsTimes(t *testing.T) {
	for _, dedup := range []string{DedupOff, DedupReflink} {
		tree := treeOf("a", "b")
		n := newNights(t, open(t), tree, tree)
		list, err := os.ReadFile(filepath.Join(n.st.Dir(), manifest.FilesName))
		if err != nil {
			t.Fatal(err)
		}
		none := func(by *means, _ *ReuseOptions) { by.dedupe = refuseRange(errNoReflinks) }
		res := n.reuse(dedup, none)
		now, err := os.ReadFile(filepath.Join(n.st.Dir(), manifest.FilesName))
		if err != nil || !bytes.Equal(list, now) || res.Files != 0 || (dedup == DedupReflink) != (res.Left[whyNoReflink] == 2) {
			t.Errorf("%s: %+v, %v", dedup, res, err)
		}
	}
}

func TestReuseRefusesWhatItDoesNotKnow(t *testing.T) {
	n := newNights(t, open(t), treeOf("a"), treeOf("a"))
	if _, err := n.st.Reuse(t.Context(), nil, ReuseOptions{Dedup: "magic"}); err == nil || !strings.Contains(err.Error(), "magic") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := n.st.Reuse(ctx, []Generation{*n.first}, ReuseOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := asListed(n.st.Dir()); err != nil {
		t.Error(err)
	}
	n.commit(2)
	if _, err := n.st.Reuse(t.Context(), []Generation{*n.first}, ReuseOptions{}); err == nil {
		t.Error("an ended staging was changed")
	}
}

// The newest donor comes first, whatever its slot; one that lacks a file is
// followed by the next.
func TestReuseTriesEveryDonor(t *testing.T) {
	s := open(t)
	n := &nights{t: t, s: s}
	all := treeOf("a", "b", "c")
	for i, target := range []string{"gfx1151", "gfx1100", "gfx1151"} {
		n.st = n.stage(target, i+1, treeOf([]string{"a", "b", "c"}[:3-i]...))
		n.commit(i + 1)
	}
	n.st = n.stage("gfx1151", 4, all)
	res := n.reuse("")
	var from []string
	for _, f := range res.From {
		from = append(from, f.Slot+" "+f.Generation)
	}
	slices.Sort(from)
	equal(t, "donors", from, []string{"nightly-gfx1100 " + night(2), "nightly-gfx1151 " + night(1), "nightly-gfx1151 " + night(3)})
	if res.Files != 3 {
		t.Errorf("%+v", res)
	}
}

// An inode takes the place of one inode: files that were apart stay apart.
func TestReuseDoesNotJoinWhatIsApart(t *testing.T) {
	same := entry{text: strings.Repeat("x", 9000)}
	older := map[string]entry{"a": same}
	newer := map[string]entry{"a": same, "b": same, "c": same}
	n := newNights(t, open(t), older, newer)
	if res := n.reuse(""); res.Files != 1 || res.Left[whyTaken] != 2 {
		t.Errorf("%+v", res)
	}
	// Not even where the list of the older one hides that two are one.
	n = newNights(t, open(t), map[string]entry{"a": same, "b": {same: "a"}}, map[string]entry{"a": same, "b": same})
	list := filepath.Join(n.first.Dir, manifest.FilesName)
	text, err := os.ReadFile(list)
	if err == nil {
		err = force(list, func() error { return os.WriteFile(list, bytes.ReplaceAll(text, []byte(`,"same":"a"`), nil), 0) })
	}
	if err != nil {
		t.Fatal(err)
	}
	if res := n.reuse(""); res.Files != 1 || res.Left[whyTaken] != 1 {
		t.Errorf("%+v", res)
	}
	// Nor does it take apart what is one.
	n = newNights(t, open(t), newer, map[string]entry{"a": same, "b": {same: "a"}, "c": {same: "a"}})
	if res := n.reuse(""); res.Files != 1 || res.HardLinked != 1 {
		t.Errorf("%+v", res)
	}
}

// What has its time on record elsewhere, what is newer, and what is the
// prefix's own is left.
func TestReuseLeavesWhatDependsOnTime(t *testing.T) {
	tree := with(treeOf("a.py", "b.py", "own"), map[string]entry{"opt/rocm/__pycache__/a.cpython-311.pyc": {text: strings.Repeat("c", 5000)}})
	n := newNights(t, open(t), tree, tree)
	res := n.reuse("", func(_ *means, o *ReuseOptions) { o.Own = func(p string) bool { return p == "opt/rocm/own" } })
	if res.Files != 2 || res.Left[whySource] != 1 || len(res.Left) != 1 {
		t.Errorf("%+v", res)
	}
	// Nor is what its owner can write to shared.
	loose := map[string]entry{"opt/rocm/a": {text: "text", mode: 0o644}}
	n = newNights(t, open(t), loose, loose)
	if res := n.reuse(""); res.Files != 0 || len(res.Left) != 0 {
		t.Errorf("%+v", res)
	}
	n = newNights(t, open(t), treeOf("a"), treeOf("a"))
	later := dayOf(3)
	if err := os.Chtimes(filepath.Join(n.first.Dir, "opt/rocm/a"), later, later); err != nil {
		t.Fatal(err)
	}
	if res := n.reuse(""); res.Files != 0 || res.Left[whyTime] != 1 {
		t.Errorf("%+v", res)
	}
}
