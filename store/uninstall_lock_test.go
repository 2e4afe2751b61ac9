package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
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
