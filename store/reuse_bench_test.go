package store

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkReuse is a night of small files, all of which an older one has.
func BenchmarkReuse(b *testing.B) {
	const files = 20_000
	tree := make(map[string]entry, files)
	for i := range files {
		name := fmt.Sprintf("opt/rocm/share/d%03d/e/f/g%d", i%200, i)
		tree[name] = entry{text: strings.Repeat(name, 100)}
	}
	n := newNights(b, open(b), tree, tree)
	donors := []Generation{*n.first}
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		st := n.stage(fmt.Sprint("gfx", 9000+i), 2, tree)
		b.StartTimer()
		res, err := st.Reuse(b.Context(), donors, ReuseOptions{})
		if err != nil || res.Files != files {
			b.Fatalf("%+v, %v", res, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/files, "µs/file")
}
