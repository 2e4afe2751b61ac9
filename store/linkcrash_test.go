package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// linkForever takes a link over and gives it back, makes and removes another, and
// makes and removes a host file, as fast as it can. It only ends by an error.
func linkForever(root string) error {
	s, err := Open(root)
	if err != nil {
		return err
	}
	ctx := context.Background()
	sl := s.Slot("nightly", "gfx1151")
	dir := filepath.Join(filepath.Dir(root), "links")
	host := []HostFile{{HostFish, filepath.Join(dir, "made/by/us.fish"), "manifest.json"}}
	fmt.Println("ready")
	for {
		if err := s.FinishLinks(ctx); err != nil {
			return err
		}
		for _, o := range []LinkOptions{{Path: dir + "/rocm", By: LinkByVerb, TakeOver: true}, {Path: dir + "/new", By: LinkByVerb}} {
			if _, err := s.MakeLink(ctx, sl, o); err != nil {
				return err
			}
		}
		for _, want := range [][]HostFile{host, nil} {
			changes, err := s.SetHost(ctx, sl, want)
			for _, c := range changes {
				if c.Err != nil {
					return c.Err
				}
			}
			if err != nil {
				return err
			}
		}
		for _, path := range []string{dir + "/rocm", dir + "/new"} {
			if _, err := s.DropLink(ctx, path); err != nil {
				return err
			}
		}
	}
}

// A process that makes, takes over and removes links is killed at random
// instants. The link that was there, or ours, is there at each of them, and
// undoing all ends where it began.
func TestInterruptedLinksAreFinishedAfterAKill(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	s := open(t)
	sl := s.Slot("nightly", "gfx1151")
	install(t, sl, night(1))
	dir := filepath.Join(filepath.Dir(s.Root()), "links")
	const amd = "/opt/rocm-6.4.0"
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(amd, dir+"/rocm"); err != nil {
		t.Fatal(err)
	}
	for range kills(25) {
		ctx, cancel := context.WithCancel(t.Context())
		cmd, _ := other(t, ctx, "link", s.Root())
		timer := time.AfterFunc(time.Duration(rng.Int64N(int64(20*time.Millisecond))), cancel)
		for ctx.Err() == nil {
			if text := textOf(t, dir+"/rocm"); text != amd && text != sl.CurrentPath() {
				t.Errorf("the link is %q", text)
				break
			}
		}
		if err := cmd.Wait(); cmd.ProcessState.Exited() {
			t.Fatalf("it ended by itself: %v", err)
		}
		timer.Stop()
		cancel()
		if t.Failed() {
			return
		}
	}
	if err := s.FinishLinks(t.Context()); err != nil {
		t.Fatal(err)
	}
	uninstall(t, s, UninstallOptions{All: true})
	if all := contents(t, dir); len(all) != 1 || textOf(t, dir+"/rocm") != amd {
		t.Errorf("%v, %q", all, textOf(t, dir+"/rocm"))
	}
}
