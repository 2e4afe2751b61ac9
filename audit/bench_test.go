package audit

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// benchTree has many objects and many more files, as AMD's has: n libraries that
// need each other and the host, and ten times as many files that are not ELF.
func benchTree(b *testing.B, n int) string {
	b.Helper()
	dir := b.TempDir()
	for i := range n {
		spec := elfSpec{soname: fmt.Sprintf("lib%d.so.1", i%40), needed: []string{"libc.so.6", "libm.so.6"}, runpath: "$ORIGIN:$ORIGIN/../lib"}
		if i%40 > 2 {
			spec.needed = append(spec.needed, fmt.Sprintf("lib%d.so.1", i%40-1), fmt.Sprintf("lib%d.so.1", i%40-3))
		}
		name := filepath.Join(dir, "lib", spec.soname)
		if i >= 40 {
			name = filepath.Join(dir, "lib", fmt.Sprintf("part%d", i/40), spec.soname)
		}
		write(b, name, string(build(b, spec)), 0o755)
		for k := range 10 {
			write(b, filepath.Join(dir, "include", fmt.Sprintf("d%d/h%d.h", i, k)), "#pragma once\n", 0o644)
		}
	}
	return dir
}

const benchObjects = 1000

func BenchmarkRun(b *testing.B) {
	dir := benchTree(b, benchObjects)
	for b.Loop() {
		r, err := Run(context.Background(), dir, Options{})
		if err != nil {
			b.Fatal(err)
		}
		if r.Checked["elf"] != benchObjects || r.Counts.Rules[RuleNeeded] != 0 {
			b.Fatalf("%+v", r.Counts)
		}
	}
	b.ReportMetric(benchObjects, "objects")
}

// BenchmarkLddInALoop is what people do instead; it sees libraries alone.
func BenchmarkLddInALoop(b *testing.B) {
	if _, err := exec.LookPath("ldd"); err != nil {
		b.Skip("ldd is missing: install the package libc-bin")
	}
	dir := benchTree(b, benchObjects)
	var files []string
	err := filepath.WalkDir(filepath.Join(dir, "lib"), func(p string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, p)
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for _, f := range files {
			if out, err := exec.Command("ldd", f).CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
		}
	}
	b.ReportMetric(benchObjects, "objects")
}
