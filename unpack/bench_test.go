package unpack

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkTree unpacks the tarball that ROCM_NIGHTLY_CORPUS_TARBALL names: as
// it is, and decompressed beforehand, so that writing is seen alone. It reports
// seconds of processor in user and in kernel mode, and those that a syncfs
// takes afterwards, which are not in the time of an operation.
func BenchmarkTree(b *testing.B) {
	tarball := os.Getenv("ROCM_NIGHTLY_CORPUS_TARBALL")
	if tarball == "" {
		b.Skip("set ROCM_NIGHTLY_CORPUS_TARBALL to what scripts/corpus.sh --print prints")
	}
	b.Run("gzip", func(b *testing.B) { benchTree(b, mapped(b, tarball)) })
	b.Run("tar", func(b *testing.B) { benchTree(b, mapped(b, inflated(b, tarball))) })
}

func benchTree(b *testing.B, tarball []byte) {
	var user, system, synced float64
	for b.Loop() {
		b.StopTimer()
		dir, err := os.MkdirTemp(b.TempDir(), "")
		if err != nil {
			b.Fatal(err)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			b.Fatal(err)
		}
		syncAll(b, dir)
		u0, s0 := cpu(b)
		b.StartTimer()
		res, err := Tree(context.Background(), bytes.NewReader(tarball), root, Options{})
		b.StopTimer()
		if err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		syncAll(b, dir)
		synced += time.Since(start).Seconds()
		u1, s1 := cpu(b)
		user, system = user+u1-u0, system+s1-s0
		b.SetBytes(res.Bytes)
		root.Close()
		// The tree stays until the end: ext4 looks long for an inode among
		// those that were freed a moment ago.
		b.StartTimer()
	}
	n := float64(b.N)
	b.ReportMetric(user/n, "user-s/op")
	b.ReportMetric(system/n, "sys-s/op")
	b.ReportMetric(synced/n, "syncfs-s/op")
}

// mapped is a file in memory that is not the heap's.
func mapped(b *testing.B, name string) []byte {
	b.Helper()
	f, err := os.Open(name)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(fi.Size()), unix.PROT_READ, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { unix.Munmap(data) })
	return data
}

// inflated is the decompressed tarball in a file.
func inflated(b *testing.B, tarball string) string {
	b.Helper()
	in, err := os.Open(tarball)
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close()
	gz, err := gzip.NewReader(in)
	if err != nil {
		b.Fatal(err)
	}
	name := filepath.Join(b.TempDir(), "x.tar")
	out, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	if _, err := io.Copy(out, gz); err != nil {
		b.Fatal(err)
	}
	return name
}

func syncAll(b *testing.B, dir string) {
	b.Helper()
	f, err := os.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		b.Fatal(err)
	}
}

// cpu returns the seconds of processor that the process has taken.
func cpu(b *testing.B) (user, system float64) {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	seconds := func(t unix.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(u.Utime), seconds(u.Stime)
}
