package unpack

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// at is an archive of a file, a directory and a link of one time.
func at(t *testing.T, unixTime int64) []byte {
	t.Helper()
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	for _, h := range []tar.Header{{Name: "f", Typeflag: tar.TypeReg}, {Name: "d/", Typeflag: tar.TypeDir}, {Name: "l", Typeflag: tar.TypeSymlink, Linkname: "f"}} {
		h.ModTime, h.Mode, h.Format = time.Unix(unixTime, 0), 0o644, tar.FormatPAX
		if err := tw.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return zip(t, buf.Bytes())
}

// holds returns what the test's file system makes of a time.
func holds(t *testing.T, unixTime int64) int64 {
	t.Helper()
	name := filepath.Join(t.TempDir(), "f")
	ts, err := unix.TimeToTimespec(time.Unix(unixTime, 0))
	err = errors.Join(err, os.WriteFile(name, nil, 0o600), unix.UtimesNano(name, []unix.Timespec{ts, ts}))
	fi, err2 := os.Stat(name)
	if err = errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return fi.ModTime().Unix()
}

// Result and disk have the same times, none of them 0.
func TestTimes(t *testing.T) {
	for in, want := range map[int64]int64{
		0: 1, -1: 1, -(1 << 40): 1, 1: 1, 1790000000: 1790000000,
		10413795600: lastTime, // the year 2300, which nanoseconds in 64 bits do not reach
		lastTime:    lastTime, lastTime + 1: lastTime, 1 << 45: lastTime,
	} {
		res, dir, err := untar(t, at(t, in), Options{})
		if err != nil {
			t.Errorf("%d: %v", in, err)
			continue
		}
		for _, f := range res.Files {
			if f.MTime != want {
				t.Errorf("%d: %s is listed with %d", in, f.Path, f.MTime)
			}
			fi, err := os.Lstat(filepath.Join(dir, f.Path))
			if err != nil || f.Kind != manifest.Dir && fi.ModTime().Unix() != holds(t, want) {
				t.Errorf("%d: %s has on disk %v, %v", in, f.Path, fi.ModTime().Unix(), err)
			}
		}
	}
}

// A time of 0 is that of a directory which only its files named.
func TestImpliedDirectoriesHaveNoTime(t *testing.T) {
	res, _, err := untar(t, archive(t, entry{name: "d/f"}), Options{})
	if err != nil || res.Files[0].Path != "d" || res.Files[0].MTime != 0 {
		t.Errorf("%+v, %v", res, err)
	}
}
