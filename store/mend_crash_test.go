package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// crashed are the files that mendForever damages.
var crashed = []string{"opt/rocm/bin/tool", "opt/rocm/lib/liba.so", "opt/rocm/share/doc/x", "etc/env.sh"}

// mendForever damages the first generation and mends it from the second, again and
// again. It only ends by an error.
func mendForever(root string) error {
	s, err := Open(root)
	if err != nil {
		return err
	}
	ctx := context.Background()
	gens, err := s.VerifyTargets("", "")
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for {
		for _, name := range crashed {
			if err := damageAtOnce(root, filepath.Join(gens[0].Dir, name), filepath.Join(gens[1].Dir, name)); err != nil {
				return err
			}
		}
		if err := errors.Join(os.Remove(filepath.Join(gens[0].Dir, "opt/rocm/empty")), os.RemoveAll(filepath.Join(gens[0].Dir, "opt/rocm/link"))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		all, err := s.Verify(ctx, gens[:1], VerifyOptions{})
		if err != nil {
			return err
		}
		if err := mendOnce(ctx, s, all[0]); err != nil {
			return err
		}
	}
}

// damageAtOnce puts a damaged copy of good in the place of name by a rename.
func damageAtOnce(root, name, good string) error {
	data, err := os.ReadFile(good)
	if err != nil {
		return err
	}
	temp := filepath.Join(root, "damaged")
	return errors.Join(os.RemoveAll(temp), os.WriteFile(temp, flipped(data), 0o600), os.Rename(temp, name))
}

func mendOnce(ctx context.Context, s *Store, v *Verification) error {
	m, err := s.Mend(ctx, v)
	if err != nil {
		return err
	}
	err = m.FromStore(ctx)
	if err == nil {
		_, err = m.Apply(ctx)
	}
	return errors.Join(err, m.Close())
}

// TestMendCanBeKilled kills a process that mends, at random instants: each file is
// damaged as it was, or whole, and the next repair ends what that one began.
// STORE_TEST_KILLS makes it longer.
func TestMendCanBeKilled(t *testing.T) {
	t.Parallel()
	s := open(t)
	g, donor := twoAlike(t, s, treeToDamage())
	before := snapshot(t, donor.Dir)
	for range kills(15) {
		ctx, cancel := context.WithCancel(t.Context())
		cmd, _ := other(t, ctx, "mend", s.Root())
		timer := time.AfterFunc(time.Duration(rand.Int64N(int64(60*time.Millisecond))), cancel)
		err := cmd.Wait()
		timer.Stop()
		cancel()
		if cmd.ProcessState.Exited() {
			t.Fatalf("it ended by itself: %v", err)
		}
		for _, name := range crashed {
			good, err := os.ReadFile(filepath.Join(donor.Dir, name))
			must(t, err)
			got, err := os.ReadFile(filepath.Join(g.Dir, name))
			if err != nil || !bytes.Equal(got, good) && !bytes.Equal(got, flipped(good)) {
				t.Fatalf("%s is neither damaged as it was nor whole: %v", name, err)
			}
		}
		must(t, os.Remove(filepath.Join(g.Dir, crashed[0]))) // so that there is something to mend
		v := verify(t, s, g, VerifyOptions{})
		if len(v.Extra) > 0 {
			t.Fatalf("left in the generation: %q", v.Extra)
		}
		must(t, mendOnce(t.Context(), s, v))
		if v := verify(t, s, g, VerifyOptions{}); !v.OK() {
			t.Fatal(brief(v))
		}
		must(t, asListed(g.Dir))
		equal(t, "what is left", entries(t, s.Slot("nightly", "gfx1151").Dir()), []string{"generations", "seals", "state.json", "switch.lock"})
	}
	if snapshot(t, donor.Dir) != before {
		t.Error("the other generation was changed")
	}
}
