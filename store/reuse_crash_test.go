package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// crashTree is the n-th night of the crash test: most of it is equal from
// night to night.
func crashTree(n int) map[string]entry {
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("lib/f%d", i))
	}
	return with(treeOf(names...), map[string]entry{
		"opt/rocm/lib/twin": {same: "opt/rocm/lib/f0"}, "opt/rocm/version": {text: strings.Repeat(night(n), 500)},
	})
}

// reuseForever installs one night after the other, sharing what it can, and
// prunes those before. It only ends by an error.
func reuseForever(root string) error {
	s, err := Open(root)
	if err != nil {
		return err
	}
	ctx := context.Background()
	sl := s.Slot("nightly", "gfx1151")
	fmt.Println("ready")
	for n := 2; ; n++ {
		err := func() error {
			st, err := sl.Stage(ctx)
			if err != nil {
				return err
			}
			if err := build(st.Dir(), n, crashTree(n)); err != nil {
				return err
			}
			donors, err := st.Donors()
			if err != nil {
				return err
			}
			if res, err := st.Reuse(ctx, donors, ReuseOptions{}); err != nil || res.Files < 40 {
				return fmt.Errorf("%+v, %w", res, err)
			}
			if n%3 == 0 {
				return st.Abort()
			}
			if _, err = st.Commit(night(n)); errors.Is(err, ErrExists) { // of a process before
				err = nil
			}
			return errors.Join(err, st.Abort())
		}()
		if err == nil {
			_, err = sl.Prune(ctx, Keep{Last: 3})
		}
		if err != nil {
			return err
		}
	}
}

// TestReuseLeavesNothingAfterAKill kills a process that shares files, at random
// instants: the donors, what is active and every generation stay whole, and
// what was staged is debris that the next run removes. STORE_TEST_KILLS makes it
// longer.
func TestReuseLeavesNothingAfterAKill(t *testing.T) {
	t.Parallel()
	s := open(t)
	sl := s.Slot("nightly", "gfx1151")
	n := &nights{t: t, s: s}
	n.st = n.stage("gfx1151", 1, crashTree(1))
	first := n.commit(1)
	if err := sl.Activate(t.Context(), first.Name, "update"); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, first.Dir)
	for range kills(20) {
		ctx, cancel := context.WithCancel(t.Context())
		cmd, _ := other(t, ctx, "reuse", s.Root())
		timer := time.AfterFunc(time.Duration(rand.Int64N(int64(60*time.Millisecond))), cancel)
		err := cmd.Wait()
		timer.Stop()
		cancel()
		if cmd.ProcessState.Exited() {
			t.Fatalf("it ended by itself: %v", err)
		}
		gens, err := sl.Generations()
		if err != nil || active(t, sl) != first.Name || snapshot(t, first.Dir) != before {
			t.Fatalf("what is active was changed: %v", err)
		}
		for _, g := range gens {
			if err := asListed(g.Dir); err != nil {
				t.Fatalf("%s: %v", g.Name, err)
			}
		}
		st, err := sl.Stage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Abort(); err != nil {
			t.Fatal(err)
		}
		equal(t, "what is left", entries(t, sl.Dir()), []string{"current", "generations", "seals", "state.json", "switch.lock"})
	}
}

// A generation that goes takes nothing with it that others share, not even the
// mode of a file: only directories are made writable on the way.
func TestPruneLeavesSharedFilesAlone(t *testing.T) {
	s := open(t)
	n := newNights(t, s, treeOf("lib/a", "lib/b"), treeOf("lib/a", "lib/b", "c"))
	if res := n.reuse(""); res.HardLinked != 2 {
		t.Fatalf("%+v", res)
	}
	second := n.commit(2)
	for _, g := range []*Generation{n.first, second} {
		for _, dir := range []string{"opt/rocm/lib", "opt/rocm", "opt", "."} {
			if err := os.Chmod(filepath.Join(g.Dir, dir), 0o555); err != nil {
				t.Fatal(err)
			}
		}
	}
	if os.Getuid() == 0 {
		err := filepath.WalkDir(filepath.Dir(s.Root()), func(p string, _ os.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(p, 65534, 65534))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	before := snapshot(t, second.Dir)
	asNobody(t, func() {
		if err := s.Slot("nightly", "gfx1151").Remove(t.Context(), n.first.Name); err != nil {
			t.Error(err)
		}
	})
	if _, err := os.Lstat(n.first.Dir); err == nil {
		t.Error("it is still there")
	}
	if snapshot(t, second.Dir) != before {
		t.Error("what it shared was changed")
	}
	u, err := s.Usage(t.Context())
	if err != nil || u.Generations[second.Dir].Own != u.Total || u.Total == 0 {
		t.Errorf("%+v, %v", u, err)
	}
}

// FuzzReuse reads whatever a donor may list: only paths in the donor come of
// it, for files that are wanted.
func FuzzReuse(f *testing.F) {
	tree := treeOf("a", "b")
	s := open(f)
	n := newNights(f, s, tree, tree)
	r := &reuser{o: ReuseOptions{Own: func(string) bool { return false }}}
	root, err := os.OpenRoot(n.st.Dir())
	if err != nil {
		f.Fatal(err)
	}
	defer root.Close()
	r.root = root
	if err := r.list(); err != nil || len(r.todo) != 2 {
		f.Fatal(err)
	}
	file := filepath.Join(n.first.Dir, manifest.FilesName)
	list, err := os.ReadFile(file)
	if err != nil {
		f.Fatal(err)
	}
	donor, err := os.OpenRoot(n.first.Dir)
	if err != nil {
		f.Fatal(err)
	}
	defer donor.Close()
	f.Add(list)
	f.Add([]byte(strings.ReplaceAll(string(list), "opt/rocm/a", "../../../../etc/passwd")))
	f.Add([]byte(strings.ReplaceAll(string(list), `"mode":"0444"`, `"mode":"4777"`)))
	f.Fuzz(func(t *testing.T, list []byte) {
		if err := errors.Join(os.Remove(file), os.WriteFile(file, list, 0o444)); err != nil {
			t.Fatal(err)
		}
		batch, err := r.match(t.Context(), donor)
		if err == nil && len(batch) > len(r.todo) {
			t.Errorf("%d files for %d", len(batch), len(r.todo))
		}
		for _, w := range batch {
			if !filepath.IsLocal(w.donor) {
				t.Errorf("%q leads out", w.donor)
			}
		}
		if _, err := Compare(t.Context(), n.first.Dir, n.st.Dir()); err != nil && !strings.Contains(err.Error(), manifest.FilesName) {
			t.Error(err)
		}
	})
}
