//go:build !race

// The race detector allocates for itself, so that nothing can be measured with it.

package unpack

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
)

// smallFiles is an archive of n empty files, as trees of headers and tables
// come close to.
func smallFiles(t testing.TB, n int) []byte {
	t.Helper()
	entries := make([]entry, n)
	for i := range entries {
		entries[i] = entry{name: fmt.Sprintf("./share/directory-%03d/file-%06d.txt", i/256, i)}
	}
	return archive(t, entries...)
}

// memory returns the bytes in use and those allocated since the beginning.
func memory() (use, total int64) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), int64(m.TotalAlloc)
}

// perEntry unpacks an archive of n entries and returns how many bytes for each
// are in use near its end, have been allocated until there, and are kept.
func perEntry(t testing.TB, tarball []byte, n int) (live, total, kept int64) {
	t.Helper()
	root, _ := openRoot(t)
	var use, all [2]int64
	last := n / 64 * 64
	before, _ := memory()
	res, err := Tree(t.Context(), bytes.NewReader(tarball), root, Options{Event: func(e Event) {
		switch e.Entries {
		case 64:
			use[0], all[0] = memory()
		case last:
			use[1], all[1] = memory()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	after, _ := memory()
	runtime.KeepAlive(res)
	seen := int64(last - 64)
	return (use[1] - use[0]) / seen, (all[1] - all[0]) / seen, (after - before) / int64(n)
}

// Most of what is allocated for an entry is archive/tar's and os.Root's, and
// is garbage at once; the limit on it stands just above.
func TestMemoryOfAnEntry(t *testing.T) {
	const n = 2048
	if live, total, kept := perEntry(t, smallFiles(t, n), n); live > 600 || kept > 600 || total > 1700 {
		t.Errorf("for an entry %d bytes in use, %d allocated, %d kept", live, total, kept)
	}
}

func BenchmarkSmallFiles(b *testing.B) {
	const n = 4096
	tarball := smallFiles(b, n)
	b.ReportAllocs()
	var live, total, kept int64
	for b.Loop() {
		live, total, kept = perEntry(b, tarball, n)
	}
	b.ReportMetric(float64(live), "live-B/entry")
	b.ReportMetric(float64(total), "total-B/entry")
	b.ReportMetric(float64(kept), "kept-B/entry")
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
}
