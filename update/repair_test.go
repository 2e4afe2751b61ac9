package update

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// repaired repairs everything there is, and returns what is so afterwards.
func (w *world) repaired(change ...func(*Options)) ([]*store.Verification, []*Repaired) {
	w.t.Helper()
	o := w.o
	for _, c := range change {
		c(&o)
	}
	gens, err := o.Store.VerifyTargets("", "")
	if err != nil {
		w.t.Fatal(err)
	}
	all, repairs, err := Repair(context.Background(), o, gens, store.VerifyOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return all, repairs
}

// inGeneration is a path in a generation.
func (w *world) inGeneration(version, path string) string {
	return filepath.Join(w.root, "slots/nightly-gfx1151/generations", version, path)
}

// damageSome damages files of each sort that a prefix has, and returns their paths:
// one as AMD made it, one whose run path was edited, a script, a wrapper, the
// environment.
func (w *world) damageSome(version string) []string {
	w.t.Helper()
	f, err := os.Open(w.inGeneration(version, manifest.FilesName))
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	files, err := manifest.ReadFiles(f)
	if err != nil {
		w.t.Fatal(err)
	}
	sorts := map[string]string{}
	for _, f := range files {
		if f.Kind != manifest.Regular || f.Size == 0 || f.Same != "" {
			continue
		}
		switch tree := strings.HasPrefix(f.Path, "opt/rocm/"); {
		case tree && f.Before == "":
			sorts["plain"] = f.Path
		case tree && f.ELF != nil:
			sorts["edited"] = f.Path
		case tree:
			sorts["script"] = f.Path
		case strings.HasPrefix(f.Path, "bin/"):
			sorts["wrapper"] = f.Path
		case f.Path == "etc/env.sh":
			sorts["environment"] = f.Path
		}
	}
	if len(sorts) != 5 {
		w.t.Fatalf("only %v", sorts)
	}
	var paths []string
	for _, path := range sorts {
		w.damage(w.inGeneration(version, path))
		paths = append(paths, path)
	}
	return paths
}

// damage puts other bytes into a file.
func (w *world) damage(path string) {
	w.t.Helper()
	fi, err := os.Stat(path)
	if err != nil {
		w.t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, data, 0o600), os.Chmod(path, fi.Mode()), os.Chtimes(path, fi.ModTime(), fi.ModTime())); err != nil {
		w.t.Fatal(err)
	}
}

// snapshot is every file of a directory, with its content.
func (w *world) snapshot(dir string) map[string]string {
	w.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
		fi, lerr := os.Lstat(p)
		if err = errors.Join(err, lerr); err != nil {
			return err
		}
		text := fi.Mode().String()
		if !e.IsDir() || p != dir {
			text += fi.ModTime().String()
		}
		if fi.Mode().IsRegular() {
			b, rerr := os.ReadFile(p)
			text, err = text+string(b), rerr
		}
		all[p] = text
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// Every sort of file is mended from AMD's tarball while it is in use, also where
// repack has made or edited it, and nothing is left behind.
func TestRepairFromTheIndex(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260929", 1)
	w.run()
	dir := w.inGeneration("10.2.0a20260929", "")
	before := w.snapshot(dir)
	paths := w.damageSome("10.2.0a20260929")
	all, repairs := w.repaired()
	if len(all) != 1 || !all[0].OK() || len(repairs) != 1 {
		t.Fatalf("%+v", all[0].Damage)
	}
	re := repairs[0]
	if re.Mended != len(paths) || len(re.From) != 1 || re.From[0].Source != "AMD's index" || re.From[0].Files != len(paths) || len(re.Notes) != 0 {
		t.Errorf("%+v", re)
	}
	now := w.snapshot(dir)
	for p, was := range before {
		if now[p] != was {
			t.Errorf("%s is not as it was", p)
		}
	}
	if len(now) != len(before) {
		t.Errorf("%d entries, there were %d", len(now), len(before))
	}
	if left, _ := filepath.Glob(filepath.Join(w.root, "slots/nightly-gfx1151/.*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if left, _ := filepath.Glob(filepath.Join(w.root, "spool/*/*")); len(left) > 0 {
		t.Errorf("the download is left: %v", left)
	}
	if all, repairs := w.repaired(); !all[0].OK() || len(repairs) != 0 {
		t.Errorf("%+v %+v", all[0].Damage, repairs)
	}
	if out := w.run(); out.Exit != 0 || out.Changed {
		t.Errorf("%+v", out)
	}
}

// What another night has too needs no network; where an inode is shared, it is
// damaged in both, and one download mends both.
func TestRepairFromASibling(t *testing.T) {
	for _, dedup := range []string{store.DedupOff, store.DedupHardLink} {
		t.Run(dedup, func(t *testing.T) {
			w := newWorld(t)
			w.o.Installs[0].Repack.Dedup = dedup
			w.publish("10.2.0a20260929", 2)
			w.run()
			w.publish("10.2.0a20260930", 1)
			w.run()
			path := w.sharedBy("10.2.0a20260929", "10.2.0a20260930")
			w.damage(w.inGeneration("10.2.0a20260929", path))
			asked := w.tarballs.Load()
			all, repairs := w.repaired()
			if !all[0].OK() || !all[1].OK() {
				t.Fatalf("%+v %+v %+v", all[0].Damage, all[1].Damage, repairs)
			}
			downloads := w.tarballs.Load() - asked
			if dedup == store.DedupOff && (downloads != 0 || len(repairs) != 1 || repairs[0].From[0].Source != "nightly-gfx1151/10.2.0a20260930") {
				t.Errorf("%d requests, %+v", downloads, repairs[0])
			}
			if dedup == store.DedupHardLink && (downloads == 0 || len(repairs) != 2 || repairs[0].From[0].Source != "AMD's index" || repairs[1].From[0].Source != "nightly-gfx1151/10.2.0a20260929") {
				t.Errorf("%d requests, %+v", downloads, repairs)
			}
		})
	}
}

// sharedBy finds a file that two nights have, of the largest.
func (w *world) sharedBy(a, b string) string {
	w.t.Helper()
	found, size := "", int64(0)
	lists := map[string]string{}
	for _, version := range []string{a, b} {
		f, err := os.Open(w.inGeneration(version, manifest.FilesName))
		if err != nil {
			w.t.Fatal(err)
		}
		defer f.Close()
		files, err := manifest.ReadFiles(f)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, f := range files {
			if f.SHA256 == "" || f.Same != "" {
				continue
			}
			if lists[f.Path] == f.SHA256 && f.Size > size {
				found, size = f.Path, f.Size
			}
			lists[f.Path] = f.SHA256
		}
	}
	if found == "" {
		w.t.Fatal("they share nothing")
	}
	return found
}

// A whole download that is here serves when AMD's copy is gone; what nobody has is
// named, and what needs no bytes is mended all the same.
func TestRepairWithoutTheIndex(t *testing.T) {
	w := newWorld(t)
	tarball := w.publish("10.2.0a20260929", 1)
	w.run()
	data, err := os.ReadFile(tarball)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(tarball); err != nil {
		t.Fatal(err)
	}
	w.publish("10.2.0a20260928", 2) // the index goes on
	paths := w.damageSome("10.2.0a20260929")
	if err := os.Chmod(w.inGeneration("10.2.0a20260929", "etc/env.fish"), 0o666); err != nil {
		t.Fatal(err)
	}
	asked := w.tarballs.Load()
	all, repairs := w.repaired()
	if w.tarballs.Load() != asked {
		t.Error("a tarball that is not listed was asked for")
	}
	notes := strings.Join(repairs[0].Notes, "\n")
	if len(all[0].Damage) != len(paths) || repairs[0].Mended != 1 || !strings.Contains(notes, "is not listed any more") || !strings.Contains(notes, paths[0]+" cannot be repaired: no good copy of it was found") {
		t.Errorf("%+v %+v", all[0].Damage, repairs[0])
	}
	spool := w.o.Store.SpoolDir("nightly", filepath.Base(tarball))
	half := len(data) / 2
	if err := errors.Join(os.MkdirAll(spool, 0o755), os.WriteFile(spool+"/0000", data[:half], 0o644)); err != nil {
		t.Fatal(err)
	}
	if all, _ := w.repaired(); all[0].OK() {
		t.Error("half of a download was enough")
	}
	if err := os.WriteFile(spool+"/0001", data[half:], 0o644); err != nil {
		t.Fatal(err)
	}
	all, repairs = w.repaired()
	if !all[0].OK() || repairs[0].From[0].Source != "the download that is here" {
		t.Errorf("%+v %+v", all[0].Damage, repairs[0])
	}
	if _, err := os.Stat(spool + "/0001"); err != nil {
		t.Errorf("the download was taken away: %v", err)
	}
}

// Other bytes under the name are refused, of the same length or not.
func TestRepairRefusesOtherBytes(t *testing.T) {
	for name, change := range map[string]func([]byte) []byte{
		"another length": func(b []byte) []byte {
			return append(b, 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0)
		},
		"the same length": func(b []byte) []byte { b[4] ^= 1; return b }, // gzip's time
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tarball := w.publish("10.2.0a20260929", 1)
			w.run()
			data, err := os.ReadFile(tarball)
			if err == nil {
				err = os.WriteFile(tarball, change(data), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			path := w.damageSome("10.2.0a20260929")[0]
			bad, err := os.ReadFile(w.inGeneration("10.2.0a20260929", path))
			if err != nil {
				t.Fatal(err)
			}
			asked := w.bodies.Load()
			all, repairs := w.repaired()
			if n := w.bodies.Load() - asked; n > 1 {
				t.Errorf("it was downloaded %d times", n)
			}
			now, err := os.ReadFile(w.inGeneration("10.2.0a20260929", path))
			if all[0].OK() || repairs[0].Mended != 0 || err != nil || !bytes.Equal(now, bad) || !strings.Contains(strings.Join(repairs[0].Notes, " "), "AMD's index is of no use") {
				t.Errorf("%+v, %v", repairs[0], err)
			}
			if left, _ := filepath.Glob(filepath.Join(w.root, "spool/*/*/0*")); len(left) > 0 {
				t.Errorf("the wrong bytes are left: %v", left)
			}
		})
	}
}

// Where the rules have changed since, what comes out otherwise is named, and what
// does not is mended.
func TestRepairOfAnOlderRuleset(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260929", 1)
	w.run()
	w.damageSome("10.2.0a20260929")
	rewrite := func(name string, change func(string) string) {
		t.Helper()
		path := w.inGeneration("10.2.0a20260929", name)
		data, err := os.ReadFile(path)
		if err == nil {
			err = errors.Join(os.Remove(path), os.WriteFile(path, []byte(change(string(data))), 0o444))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	rewrite(manifest.Name, func(s string) string {
		return regexp.MustCompile(`"ruleset": \d+`).ReplaceAllString(s, `"ruleset": 1`)
	})
	rewrite(manifest.FilesName, func(s string) string { // as rules of old have made it
		return regexp.MustCompile(`("path":"etc/env.sh".*"sha256":")[0-9a-f]{4}`).ReplaceAllString(s, `${1}0000`)
	})
	if err := os.RemoveAll(filepath.Join(w.root, "slots/nightly-gfx1151/seals")); err != nil {
		t.Fatal(err)
	}
	all, repairs := w.repaired()
	if len(all[0].Damage) != 1 || all[0].Damage[0].Path != "etc/env.sh" || repairs[0].Mended != 4 {
		t.Errorf("%+v %+v", all[0].Damage, repairs[0])
	}
	if notes := strings.Join(repairs[0].Notes, "\n"); !strings.Contains(notes, "etc/env.sh cannot be repaired: its rules have changed since") {
		t.Error(notes)
	}
}

// files.jsonl itself is mended where it comes out as it was, and then what it
// lists.
func TestRepairOfTheList(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260929", 1)
	w.run()
	w.damage(w.inGeneration("10.2.0a20260929", manifest.FilesName))
	if err := os.Remove(w.inGeneration("10.2.0a20260929", "etc/env.sh")); err != nil {
		t.Fatal(err)
	}
	all, repairs := w.repaired()
	if !all[0].OK() {
		t.Errorf("%+v %+v", all[0].Damage, repairs[0])
	}
	w.damage(w.inGeneration("10.2.0a20260929", manifest.Name))
	all, repairs = w.repaired()
	if len(all[0].Damage) != 1 || !strings.Contains(strings.Join(repairs[0].Notes, "\n"), "manifest.json is damaged itself") {
		t.Errorf("%+v %+v", all[0].Damage, repairs[0])
	}
}

// A repair waits for nobody, and nobody who goes back waits for it.
func TestRepairAndOthers(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260929", 2)
	w.run()
	w.publish("10.2.0a20260930", 1)
	w.run()
	w.damageSome("10.2.0a20260930")
	lock, err := w.o.Store.LockRun(context.Background(), "update")
	if err != nil {
		t.Fatal(err)
	}
	var held *store.LockedError
	if _, _, err := Repair(context.Background(), w.o, nil, store.VerifyOptions{}); !errors.As(err, &held) || held.Holder.What != "update" {
		t.Errorf("%v", err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	back := false
	all, repairs := w.repaired(func(o *Options) {
		o.Event = func(e Event) {
			if e.Stage != "unpack" || back {
				return
			}
			back = true
			if _, to, err := w.o.Store.Slot("nightly", "gfx1151").Rollback(context.Background()); err != nil || to.Name != "10.2.0a20260929" {
				t.Errorf("%v, %v", to, err)
			}
		}
	})
	if !back || !all[1].OK() || w.active() != "10.2.0a20260929" {
		t.Errorf("%v %+v %+v", back, all[1].Damage, repairs[0])
	}
	// One that is interrupted leaves nothing behind.
	w.damageSome("10.2.0a20260930")
	gens, err := w.o.Store.VerifyTargets("", "10.2.0a20260930")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	o := w.o
	o.Event = func(e Event) {
		if e.Stage == "unpack" {
			cancel()
		}
	}
	if _, _, err := Repair(ctx, o, gens, store.VerifyOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(w.root, "slots/nightly-gfx1151/.staging*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
