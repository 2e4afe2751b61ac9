package store

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// BenchmarkInUse looks at 500 processes and three generations of 30,000 files
// each. glance is what prune does under the lock; probe is what an ordinary user
// needs for each generation where there are processes of others.
func BenchmarkInUse(b *testing.B) {
	const processes, files = 500, 30_000
	sl := reachable(b)
	install(b, sl, night(1), night(2), night(3))
	gens, err := sl.Generations()
	if err != nil {
		b.Fatal(err)
	}
	for _, g := range gens {
		for i := range files {
			dir := filepath.Join(g.Dir, fmt.Sprintf("share/d%d", i/100))
			if err := os.MkdirAll(dir, 0o755); err != nil {
				b.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o444); err != nil {
				b.Fatal(err)
			}
		}
	}
	for range processes {
		cmd := exec.Command("sleep", "1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		defer func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}()
	}
	b.Run("index", func(b *testing.B) {
		for b.Loop() {
			if _, err := sl.store.lookout(b.Context(), gens); err != nil {
				b.Fatal(err)
			}
		}
	})
	l, err := sl.store.lookout(b.Context(), gens)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("look", func(b *testing.B) {
		for b.Loop() {
			if _, err := l.look(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("glance", func(b *testing.B) {
		for b.Loop() {
			if _, err := l.glance(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("probe", func(b *testing.B) {
		for b.Loop() {
			if open, _ := l.indexes[0].probe(b.Context(), 0, true); open {
				b.Fatal("it is open")
			}
		}
	})
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			if _, err := sl.store.InUse(b.Context(), gens); err != nil {
				b.Fatal(err)
			}
		}
	})
}
