package diff

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// lists are two nights of a prefix with 30,000 files, of which one in a hundred
// differs.
func lists(b *testing.B) (first, second string) {
	b.Helper()
	const files = 30_000
	var dirs [2]string
	for night := range dirs {
		var all []manifest.File
		for i := range files {
			f := manifest.File{
				Path: fmt.Sprintf("opt/rocm/lib/part%d/include/directory%d/file_with_a_longer_name_%d.h", i/3000, i/100, i),
				Kind: manifest.Regular, Mode: 0o444, Size: int64(i), MTime: 1_790_000_000, SHA256: fmt.Sprintf("%064x", i),
			}
			if i%100 == 0 {
				f.SHA256 = fmt.Sprintf("%064x", i+night*files)
			}
			if i%7 == 0 {
				f.ELF = &manifest.ELF{Class: 64, Machine: "x86_64", Type: "dyn", Needed: []string{"libc.so.6", "libm.so.6"}, RunPath: "$ORIGIN:$ORIGIN/../lib"}
			}
			if i%500 == 0 {
				f.Path = fmt.Sprintf("opt/rocm/lib/libfile%d.so.1.%d", i, night)
			}
			all = append(all, f)
		}
		dirs[night] = b.TempDir()
		w, err := os.Create(filepath.Join(dirs[night], manifest.FilesName))
		if err != nil {
			b.Fatal(err)
		}
		if err := manifest.WriteFiles(w, all); err != nil {
			b.Fatal(err)
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
	return dirs[0], dirs[1]
}

func BenchmarkCompareLists(b *testing.B) {
	first, second := lists(b)
	b.ReportAllocs()
	for b.Loop() {
		r, err := Compare(context.Background(), Source{Dir: first}, Source{Dir: second}, Options{})
		if err != nil {
			b.Fatal(err)
		}
		if r.Files.Changed.Files != 300 || r.Files.Renamed.Files != 60 {
			b.Fatalf("%+v", r.Files)
		}
	}
}
