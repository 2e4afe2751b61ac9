package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// nightOf is a file name of AMD's.
func nightOf(family string) string { return "therock-dist-linux-" + family + "-10.2.0a20260101.tar.gz" }

// full is a store with two slots, their links, host files, downloads and a
// ledger, and things of somebody else among them.
func full(t testing.TB) (s *Store, sl, other *Slot, path string) {
	t.Helper()
	s, sl, path = linked(t)
	withEtc(t, sl)
	other = s.Slot("rc", "gfx1100")
	install(t, other, night(1), night(2))
	files, _ := HostPlaces{Etc: filepath.Join(filepath.Dir(path), "etc")}.Files([]string{HostLDConfig})
	_, err := s.SetHost(t.Context(), sl, files)
	err = errors.Join(err, os.Symlink("/opt/rocm-6", path), s.Link(path+"-other", other), s.AppendPin(pinOf("a", 1)),
		sl.WriteRun("10.2.0a20260101", map[string]string{"url": "https://x/" + nightOf("gfx115X-all")}))
	if _, merr := s.MakeLink(t.Context(), sl, LinkOptions{Path: path, By: LinkByVerb, TakeOver: true}); err != nil || merr != nil {
		t.Fatal(err, merr)
	}
	for _, dir := range []string{s.SpoolDir("nightly", nightOf("gfx1151")), s.SpoolDir("nightly", nightOf("gfx115X-all")), s.SpoolDir("nightly", nightOf("gfx1100")), s.SpoolDir("rc", nightOf("gfx1100"))} {
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "0000"), nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return s, sl, other, path
}

func uninstall(t testing.TB, s *Store, o UninstallOptions) *Uninstalled {
	t.Helper()
	u, err := s.Uninstall(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestUninstallTakesWhatIsItsOwn(t *testing.T) {
	s, sl, other, path := full(t)
	root, dir := contents(t, s.Root()), contents(t, filepath.Dir(path))
	plan := uninstall(t, s, UninstallOptions{Slots: []*Slot{sl}, DryRun: true})
	equal(t, "root after a dry run", contents(t, s.Root()), root)
	equal(t, "links after a dry run", contents(t, filepath.Dir(path)), dir)

	u := uninstall(t, s, UninstallOptions{Slots: []*Slot{sl}})
	equal(t, "plan", plan.Removed, u.Removed)
	if len(u.Links) != 2 || len(plan.Links) != 2 || len(u.Left) != 0 || !u.LDConfig || !plan.LDConfig {
		t.Errorf("%+v\n%+v", plan, u)
	}
	for i := range u.Links {
		if u.Links[i] != plan.Links[i] {
			t.Errorf("planned %+v, done %+v", plan.Links[i], u.Links[i])
		}
	}
	equal(t, "links", contents(t, filepath.Dir(path)), []string{"rocm", "rocm-other"})
	if textOf(t, path) != "/opt/rocm-6" || textOf(t, path+"-other") != other.CurrentPath() {
		t.Error("the links are wrong")
	}
	equal(t, "spool", contents(t, filepath.Join(s.Root(), "spool")), []string{"nightly", "nightly/" + nightOf("gfx1100"), "nightly/" + nightOf("gfx1100") + "/0000", "rc", "rc/" + nightOf("gfx1100"), "rc/" + nightOf("gfx1100") + "/0000"})
	equal(t, "slots", entries(t, filepath.Join(s.Root(), "slots")), []string{"rc-gfx1100"})
	if g, err := other.Current(); err != nil || g == nil || whole(g) != nil {
		t.Errorf("%v, %v", g, err)
	}
	if _, err := s.LockRun(t.Context(), "update"); err != nil {
		t.Errorf("the lock was not given up: %v", err)
	}
}

func TestUninstallAll(t *testing.T) {
	s, _, _, path := full(t)
	for _, name := range serviceFiles {
		if err := s.WriteService(name, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.Root(), "."+LooksFile+"123"), nil, 0o644); err != nil {
		t.Fatal(err) // of a process that was killed
	}
	u := uninstall(t, s, UninstallOptions{All: true})
	equal(t, "root", contents(t, s.Root()), []string{"ledger.jsonl"})
	if len(u.Left) != 1 || !strings.HasSuffix(u.Left[0].Path, "ledger.jsonl") {
		t.Errorf("%+v", u.Left)
	}
	equal(t, "links", contents(t, filepath.Dir(path)), []string{"rocm"})
	u = uninstall(t, s, UninstallOptions{All: true, Ledger: true})
	if _, err := os.Lstat(s.Root()); !errors.Is(err, os.ErrNotExist) || len(u.Left) != 0 {
		t.Errorf("%v, %+v", err, u)
	}
	if u := uninstall(t, s, UninstallOptions{All: true}); len(u.Removed)+len(u.Links) != 0 {
		t.Errorf("%+v", u)
	}
}

// What is not ours is left under its name, wherever it is.
func TestUninstallLeavesWhatIsNotOurs(t *testing.T) {
	s, sl, _, path := full(t)
	outside := scratch(t)
	foreign := []string{"notes", "slots/nightly-gfx1151/notes.json", "slots/nightly-gfx1151/my.lock", "slots/mine.txt", "slots/nightly-gfx1151/notes.txt", "slots/nightly-gfx1151/keep", "slots/nightly-gfx1151/generations/readme", "spool/nightly/file"}
	for _, name := range foreign {
		if err := os.WriteFile(filepath.Join(s.Root(), name), []byte("mine"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(outside+"/precious", nil, 0o644), os.Symlink(outside, filepath.Join(s.Root(), "tarballs")), os.Symlink(outside, sl.path("runs", "out")),
		os.Symlink(outside, filepath.Join(s.SpoolDir("nightly", nightOf("gfx1151")), "0001")), os.Symlink(outside, filepath.Join(s.Root(), "slots", "rc-gfx1101"))); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(path), os.Symlink("/mine", path)); err != nil {
		t.Fatal(err)
	}
	plan := uninstall(t, s, UninstallOptions{All: true, Ledger: true, DryRun: true})
	u := uninstall(t, s, UninstallOptions{All: true, Ledger: true})
	var left, planned []string
	for _, l := range u.Left {
		left = append(left, l.Path)
	}
	for _, l := range plan.Left {
		planned = append(planned, l.Path)
	}
	for _, name := range append(foreign, "tarballs", "slots/rc-gfx1101") {
		if !slices.Contains(left, filepath.Join(s.Root(), name)) {
			t.Errorf("%s is not named: %v", name, left)
		}
		if _, err := os.Lstat(filepath.Join(s.Root(), name)); err != nil {
			t.Error(err)
		}
	}
	if !slices.Contains(left, path) || textOf(t, path) != "/mine" {
		t.Errorf("%v", left)
	}
	for _, name := range left {
		if !slices.Contains(planned, name) {
			t.Errorf("the plan did not name %s: %v", name, planned)
		}
	}
	equal(t, "outside", entries(t, outside), []string{"precious"})
	if gens := entries(t, filepath.Join(s.Root(), "slots/nightly-gfx1151/generations")); len(gens) != 1 {
		t.Errorf("%v", gens)
	}
	// Again: nothing more goes, and nothing of ours is left.
	again := uninstall(t, s, UninstallOptions{All: true, Ledger: true})
	if len(again.Removed) != 1 { // the slot that holds somebody's files
		t.Errorf("%+v", again)
	}
}

// Killed after any of its steps, the next run or uninstall ends it; a slot that
// has its name is whole.
func TestInterruptedUninstallIsFinished(t *testing.T) {
	for _, step := range []string{"dying", "half deleted", "with foreign"} {
		s, sl, _, _ := full(t)
		if step == "with foreign" {
			if err := os.WriteFile(sl.path("mine.txt"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		dying := filepath.Join(s.Root(), "slots", dyingSlot+sl.Name()+"-"+random())
		gen := filepath.Join(dying, "generations", names(t, sl)[0])
		if err := os.Rename(sl.path(), dying); err != nil {
			t.Fatal(err)
		}
		if step == "half deleted" {
			if err := errors.Join(os.Remove(filepath.Join(dying, "current")), makeWritable(gen), os.RemoveAll(gen)); err != nil {
				t.Fatal(err)
			}
		}
		if slots, err := s.Slots(); err != nil || len(slots) != 1 {
			t.Errorf("%s: %v, %v", step, slots, err)
		}
		if err := s.FinishUninstall(); err != nil {
			t.Error(err)
		}
		want := []string{"rc-gfx1100"}
		if step == "with foreign" {
			want = []string{"nightly-gfx1151", "rc-gfx1100"}
			equal(t, "what is left", contents(t, sl.path()), []string{"mine.txt"})
		}
		equal(t, step, entries(t, filepath.Join(s.Root(), "slots")), want)
		uninstall(t, s, UninstallOptions{All: true})
		if len(onRecord(t, s)) != 0 {
			t.Errorf("%+v", onRecord(t, s))
		}
	}
}

func TestUninstallIsRefused(t *testing.T) {
	s, sl, _, path := full(t)
	if lock, err := s.LockRun(t.Context(), "update"); err != nil || lock.Release() != nil { // every run leaves run.lock and store.json
		t.Fatal(err)
	}
	before, dir := contents(t, s.Root()), contents(t, filepath.Dir(path))
	use := func(_ context.Context, gens []Generation) (map[string]Uses, error) {
		return map[string]Uses{gens[0].Dir: {By: []Use{{42, "python3", "maps"}, {42, "python3", "fd"}}, Unseen: 3}}, nil
	}
	var used *InUseError
	if _, err := s.Uninstall(t.Context(), UninstallOptions{Slots: []*Slot{sl}, InUse: use}); !errors.As(err, &used) || len(used.By) != 1 || !strings.Contains(err.Error(), "python3 (pid 42, maps)") {
		t.Errorf("%v", err)
	}
	lock, err := s.LockRun(t.Context(), "update")
	if err != nil {
		t.Fatal(err)
	}
	var locked *LockedError
	if _, err := s.Uninstall(t.Context(), UninstallOptions{Slots: []*Slot{sl}}); !errors.As(err, &locked) || locked.Holder.What != "update" {
		t.Errorf("%v", err)
	}
	if _, err := s.Uninstall(t.Context(), UninstallOptions{Slots: []*Slot{s.Slot("..", "x")}, DryRun: true}); err == nil {
		t.Error("a slot that is none")
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	equal(t, "root", contents(t, s.Root()), before)
	equal(t, "links", contents(t, filepath.Dir(path)), dir)
	// A download that is under way is left, and said.
	spool := s.SpoolDir("nightly", nightOf("gfx1151"))
	d, err := os.Open(spool)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	u := uninstall(t, s, UninstallOptions{Slots: []*Slot{sl}, InUse: use, Force: true})
	if len(u.Left) != 1 || u.Left[0].Path != spool || u.Unseen != 3 {
		t.Errorf("%+v", u)
	}
}

// The directory of slots may be elsewhere, by a link of the administrator's.
func TestUninstallWhereSlotsIsALink(t *testing.T) {
	s, sl, _, path := full(t)
	elsewhere := filepath.Join(scratch(t), "slots")
	slots := filepath.Join(s.Root(), "slots")
	if err := errors.Join(os.Rename(slots, elsewhere), os.Symlink(elsewhere, slots), os.WriteFile(filepath.Dir(elsewhere)+"/precious", nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	if ls, err := s.LinkStatus(path); err != nil || ls.State != LinkOurs || ls.Dangling {
		t.Errorf("%+v, %v", ls, err)
	}
	uninstall(t, s, UninstallOptions{Slots: []*Slot{sl}})
	equal(t, "slots", entries(t, elsewhere), []string{"rc-gfx1100"})
	u := uninstall(t, s, UninstallOptions{All: true, Ledger: true})
	if len(u.Left) != 1 || u.Left[0].Path != slots {
		t.Errorf("%+v", u)
	}
	equal(t, "elsewhere", entries(t, filepath.Dir(elsewhere)), []string{"precious", "slots"})
}

func TestMountsBelow(t *testing.T) {
	all, err := mountsOf("/proc/self/mountinfo")
	if err != nil || all.firstBelow("/proc") == nil {
		t.Errorf("/proc is no mount point: %v", err)
	}
	if m := all.firstBelow(t.TempDir()); m != nil {
		t.Errorf("%s is mounted in a new directory", m.point)
	}
	blank, err := readMounts(strings.NewReader(`36 35 98:0 /mnt1 /mnt/a\040b\134c/d rw,noatime master:1 - ext3 /dev/root rw` + "\n"))
	if err != nil || blank.firstBelow(`/mnt/a b\c`) == nil || blank.firstBelow("/mnt/a") != nil {
		t.Errorf("%+v, %v", blank, err)
	}
}
