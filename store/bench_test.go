package store

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkActivate switches between two generations of 30,000 files each, on
// the file system of $TMPDIR.
func BenchmarkActivate(b *testing.B) {
	s, err := Open(filepath.Join(b.TempDir(), "root"))
	if err != nil {
		b.Fatal(err)
	}
	sl := s.Slot("nightly", "gfx1151")
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
	}
	n := 0
	for b.Loop() {
		n++
		if err := sl.Activate(b.Context(), night(n%2), "bench"); err != nil {
			b.Fatal(err)
		}
	}
}
