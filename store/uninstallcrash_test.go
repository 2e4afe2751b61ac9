package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// uninstallForever installs a night with a link and a download, and uninstalls
// it, as fast as it can. It only ends by an error.
func uninstallForever(root string) error {
	s, err := Open(root)
	if err != nil {
		return err
	}
	ctx := context.Background()
	sl := s.Slot("nightly", "gfx1151")
	fmt.Println("ready")
	for n := 0; ; n++ {
		if err := s.FinishUninstall(); err != nil {
			return err
		}
		err := installOne(ctx, sl, night(n%2))
		if errors.Is(err, ErrExists) { // of a turn that was killed before it was active
			_, _, err = sl.Use(ctx, night(n%2))
		}
		if err != nil {
			return err
		}
		if err := s.Link(filepath.Join(filepath.Dir(root), "rocm"), sl); err != nil {
			return err
		}
		if err := os.MkdirAll(s.SpoolDir("nightly", nightOf("gfx1151")), 0o755); err != nil {
			return err
		}
		o := UninstallOptions{Slots: []*Slot{sl}}
		if n%3 == 2 {
			o = UninstallOptions{All: true}
		}
		u, err := s.Uninstall(ctx, o)
		if err != nil {
			return err
		}
		if len(u.Left) > 0 {
			return fmt.Errorf("left %v", u.Left)
		}
	}
}

// Killed at random instants: what has its name is whole, and nothing is left
// once the next one has come to its end.
func TestInterruptedUninstallIsFinishedAfterAKill(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	s := open(t)
	sl := s.Slot("nightly", "gfx1151")
	for range kills(25) {
		ctx, cancel := context.WithCancel(t.Context())
		cmd, _ := other(t, ctx, "uninstall", s.Root())
		timer := time.AfterFunc(time.Duration(rng.Int64N(int64(30*time.Millisecond))), cancel)
		if err := cmd.Wait(); cmd.ProcessState.Exited() {
			t.Fatalf("it ended by itself: %v", err)
		}
		timer.Stop()
		cancel()
		look(t, sl)
		if t.Failed() {
			return
		}
	}
	u := uninstall(t, s, UninstallOptions{All: true})
	if _, err := os.Lstat(s.Root()); !os.IsNotExist(err) || len(u.Left) > 0 {
		t.Errorf("%v, %+v", err, u.Left)
	}
	equal(t, "beside the store", entries(t, filepath.Dir(s.Root())), nil)
}
