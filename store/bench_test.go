package store

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// bigNights is a slot of two generations of 30,000 files each, on the file
// system of $TMPDIR, or in $STORE_BENCH_ROOT, where it stays and is used again.
func bigNights(b *testing.B) *Slot {
	b.Helper()
	s, err := Open(cmp.Or(os.Getenv("STORE_BENCH_ROOT"), filepath.Join(b.TempDir(), "root")))
	if err != nil {
		b.Fatal(err)
	}
	sl := s.Slot("nightly", "gfx1151")
	if gens, err := sl.Generations(); err == nil && len(gens) == 2 {
		return sl
	}
	for n := range 2 {
		st, err := sl.Stage(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		for i := range 300 {
			dir := filepath.Join(st.Dir(), fmt.Sprint("d", i))
			if err := os.Mkdir(dir, 0o755); err != nil {
				b.Fatal(err)
			}
			for j := range 100 {
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("f", j)), []byte("x"), 0o444); err != nil {
					b.Fatal(err)
				}
			}
		}
		if _, err := st.Commit(night(n)); err != nil {
			b.Fatal(err)
		}
		if err := sl.Activate(b.Context(), night(n), "bench"); err != nil {
			b.Fatal(err)
		}
	}
	return sl
}

// BenchmarkActivate switches between two generations.
func BenchmarkActivate(b *testing.B) {
	sl := bigNights(b)
	n := 0
	for b.Loop() {
		n++
		if err := sl.Activate(b.Context(), night(n%2), "bench"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRollback goes back and forth.
func BenchmarkRollback(b *testing.B) {
	sl := bigNights(b)
	for b.Loop() {
		if _, _, err := sl.Rollback(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkShellSwitch is what people write in a script, and what does not make
// it durable, nor record it.
func BenchmarkShellSwitch(b *testing.B) {
	sl := bigNights(b)
	n := 0
	for b.Loop() {
		n++
		cmd := exec.Command("sh", "-c", `ln -sfn "generations/$1" .shell && mv -T .shell current`, "sh", night(n%2))
		cmd.Dir = sl.Dir()
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
	}
}
