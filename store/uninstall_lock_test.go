package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// wipe takes run.lock, proves by a file beside ROOT that nobody else has it, and
// gives it up; wiping all that is in ROOT before, as an uninstall of everything
// does.
func wipe(ctx context.Context, s *Store) (held bool, err error) {
	lock, err := s.LockRun(ctx, "uninstall")
	var locked *LockedError
	if errors.As(err, &locked) || errors.Is(err, fs.ErrNotExist) { // ROOT went away in between
		return false, nil
	}
	if err != nil {
		return false, err
	}
	mutex := s.Root() + ".mutex"
	f, err := os.OpenFile(mutex, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return true, fmt.Errorf("two have the lock: %w", err)
	}
	w := &uninstaller{s: s, o: UninstallOptions{All: true, Ledger: true}, u: &Uninstalled{}}
	err = errors.Join(f.Close(), os.Remove(mutex))
	w.root()
	w.rmroot()
	if rerr := lock.Release(); !errors.Is(rerr, fs.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	return true, err
}

// wipeForever does that until it fails.
func wipeForever(root string) error {
	s, err := Open(root)
	for err == nil {
		_, err = wipe(context.Background(), s)
	}
	return err
}

// An uninstall of everything takes run.lock's own file along: whoever has opened
// it before, and is given it then, has nothing.
func TestUninstallTakesNobodysLockAlong(t *testing.T) {
	s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd, _ := other(t, ctx, "wipe", s.Root())
	times := 0
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); {
		held, err := wipe(ctx, s)
		if err != nil {
			t.Fatal(err)
		}
		if held {
			times++
		}
	}
	if times == 0 {
		t.Error("this process never had it")
	}
	cancel()
	var killed *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &killed) || killed.Exited() {
		t.Errorf("the other process has failed: %v", err)
	}
}

func TestALockOnARemovedFileIsNone(t *testing.T) {
	s := open(t)
	path := s.Root() + ".lock"
	if err := ensureFile(path); err != nil {
		t.Fatal(err)
	}
	first := openLock(path)
	if ok, err := tryLock(first); !ok || err != nil || !inPlace(first) {
		t.Fatal(ok, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	second, err := s.waitLock(t.Context(), path, "link")
	if err != nil || !inPlace(second) || inPlace(first) {
		t.Fatalf("%v", err)
	}
	if err := errors.Join(unlock(first), unlock(second)); err != nil {
		t.Error(err)
	}
}

// Whatever the store makes it knows again: nothing of it is left.
func TestUninstallOfEverythingLeavesNothing(t *testing.T) {
	s, sl, other, path := full(t)
	dir := contents(t, filepath.Dir(path))
	write := func(name string) {
		path := filepath.Join(s.Root(), name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("{damaged"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	slot := "slots/" + sl.Name() + "/"
	for _, name := range []string{stateName, checksName} {
		write(slot + name)
	}
	write(rootName)
	if err := sl.Refuse(t.Context(), night(9), "test"); err != nil { // which keeps the damaged state beside
		t.Fatal(err)
	}
	keepOne(t, s, 1, sl.Name())
	g, err := other.Current()
	if err != nil || g == nil {
		t.Fatal(err)
	}
	if _, _, err := other.Lease(t.Context(), "", os.Getpid()); err != nil {
		t.Fatal(err)
	}
	if lock, err := s.LockRun(t.Context(), "update"); err != nil || lock.Release() != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sl.WriteProvenance("10.2.0a20260101", nil), other.WriteRun("10.2.0a20260101", map[string]int{"schema": 1})); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		rootName + ".broken", "." + rootName + "123", "." + linksName + "7", "." + ledgerName + "8", linksName + ".broken", leasesName + "/" + newLease + "X",
		slot + "." + stateName + "12", slot + "." + checksName + "3", slot + checksName + ".broken", slot + sealsName + "/x" + sealSuffix, slot + sealsName + "/.x" + sealSuffix + "5",
		slot + stagingPrefix + "X/file", slot + stagingPrefix + "X" + lockSuffix, slot + dyingPrefix + "X/file", slot + runsName + "/.x.json4",
		tarballsName + "/nightly/" + keepingPrefix + "X/0000", tarballsName + "/nightly/" + dyingPrefix + "X/0000", "slots/" + dyingSlot + "rc-gfx9-ABC/" + stateName,
	} {
		write(name)
	}
	if err := os.Symlink("generations/x", sl.path(currentPrefix+"X")); err != nil {
		t.Fatal(err)
	}
	var used *InUseError
	if _, err := s.Uninstall(t.Context(), UninstallOptions{All: true, Ledger: true}); !errors.As(err, &used) || len(used.By) != 1 || used.By[0].PID != os.Getpid() {
		t.Errorf("leased: %v", err)
	}
	equal(t, "links", contents(t, filepath.Dir(path)), dir)
	u := uninstall(t, s, UninstallOptions{All: true, Ledger: true, Force: true})
	if _, err := os.Lstat(s.Root()); !errors.Is(err, fs.ErrNotExist) || len(u.Left) != 0 {
		t.Errorf("%v: %q\n%+v", err, contents(t, s.Root()), u.Left)
	}
	equal(t, "links", contents(t, filepath.Dir(path)), []string{"rocm"})
}

// A kept tarball goes with the last of the slots that want it.
func TestUninstallTakesTheTarballOfTwo(t *testing.T) {
	s := open(t)
	one, two := s.Slot("nightly", "gfx1151"), s.Slot("nightly", "gfx1100")
	install(t, one, night(1))
	install(t, two, night(1))
	keepOne(t, s, 1, one.Name())
	keepOne(t, s, 1, two.Name())
	uninstall(t, s, UninstallOptions{Slots: []*Slot{one}})
	isKept(t, s, 1)
	uninstall(t, s, UninstallOptions{Slots: []*Slot{two}})
	if all, err := s.Tarballs(); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

// What a newer program has written is not removed by one that cannot read it.
func TestUninstallRefusesWhatIsNewer(t *testing.T) {
	for _, name := range []string{rootName, linksName, "slots/nightly-gfx1151/" + stateName} {
		s, sl, _, path := full(t)
		if err := os.WriteFile(filepath.Join(s.Root(), name), []byte(`{"schema": 99}`), 0o644); err != nil {
			t.Fatal(err)
		}
		dir := contents(t, filepath.Dir(path))
		for _, o := range []UninstallOptions{{Slots: []*Slot{sl}}, {All: true}} {
			if _, err := s.Uninstall(t.Context(), o); !errors.Is(err, ErrNewer) {
				t.Errorf("%s: %v", name, err)
			}
		}
		equal(t, name+": links", contents(t, filepath.Dir(path)), dir)
		if g, err := os.Stat(sl.CurrentPath()); err != nil || !g.IsDir() {
			t.Errorf("%s: %v", name, err)
		}
	}
}
