package repack

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/smallfs"
)

// A prefix that does not fit leaves nothing, its parents included, and says on
// which file system it was to be; with room the same call succeeds.
func TestAFullDiskLeavesNothing(t *testing.T) {
	if !smallfs.Inside(t) {
		return
	}
	const roomyBytes, roomyInodes = 1 << 30, 1 << 20
	tarball := nightly(t)
	fs := smallfs.Tmpfs(t, roomyBytes, roomyInodes)
	dir := filepath.Join(fs.Dir, "a/b/prefix")
	if _, err := repackFile(t, tarball, dir, Options{}); err != nil {
		t.Fatal(err)
	}
	want := smallfs.Snapshot(t, dir)
	size, inodes := fs.Used()
	if err := os.RemoveAll(filepath.Join(fs.Dir, "a")); err != nil {
		t.Fatal(err)
	}
	failed := 0
	try := func(at string, size, inodes int64) {
		fs.Limit(size, inodes)
		_, err := repackFile(t, tarball, dir, Options{})
		fs.Limit(roomyBytes, roomyInodes)
		if err == nil {
			if got := smallfs.Snapshot(t, dir); !maps.Equal(got, want) {
				t.Errorf("%s: the prefix is not as it should be", at)
			}
			if err := os.RemoveAll(filepath.Join(fs.Dir, "a")); err != nil {
				t.Fatal(err)
			}
			return
		}
		failed++
		if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", at, err)
		}
		nothingLeft(t, fs.Dir)
	}
	for n := int64(1); n < inodes+4; n += 3 {
		try(fmt.Sprintf("%d inodes", n), roomyBytes, n)
	}
	for n := int64(4096); n < size+8192; n += size / 40 {
		try(fmt.Sprintf("%d bytes", n), n, roomyInodes)
	}
	if failed < 50 {
		t.Errorf("only %d attempts failed", failed)
	}
	if _, err := repackFile(t, tarball, dir, Options{}); err != nil {
		t.Error(err)
	}
}

// A clone that does not fit leaves its origin as it was: where hard links are
// the way to share, the two have inodes in common.
func TestACloneOnAFullDiskLeavesItsOriginAlone(t *testing.T) {
	if !smallfs.Inside(t) {
		return
	}
	const roomyBytes, roomyInodes = 1 << 30, 1 << 20
	fs := smallfs.Tmpfs(t, roomyBytes, roomyInodes)
	from := filepath.Join(fs.Dir, "from")
	if _, err := repackFile(t, nightly(t), from, Options{FinalPrefix: "/usr/rocm"}); err != nil {
		t.Fatal(err)
	}
	want := smallfs.Snapshot(t, from)
	leastBytes, leastInodes := fs.Used()
	for _, dedup := range []string{DedupAuto, DedupOff} {
		failed := 0
		try := func(at string, size, inodes int64) {
			to := filepath.Join(fs.Dir, "to")
			if err := os.Mkdir(to, 0o755); err != nil {
				t.Fatal(err)
			}
			fs.Limit(size, inodes)
			_, err := Clone(t.Context(), from, to, Options{FinalPrefix: "/usr/rocm", Dedup: dedup})
			fs.Limit(roomyBytes, roomyInodes)
			switch {
			case err != nil:
				failed++
				if !errors.Is(err, unix.ENOSPC) || errors.Is(err, ErrNotClonable) { // a download would not help
					t.Errorf("%s, %s: %v", dedup, at, err)
				}
			case !maps.Equal(smallfs.Snapshot(t, to), want):
				t.Errorf("%s, %s: the clone is not as it should be", dedup, at)
			}
			if !maps.Equal(smallfs.Snapshot(t, from), want) {
				t.Fatalf("%s, %s: the origin was changed by %v", dedup, at, err)
			}
			if err := os.RemoveAll(to); err != nil {
				t.Fatal(err)
			}
		}
		for n := int64(1); n < 140; n += 7 {
			try(fmt.Sprintf("%d inodes", n), roomyBytes, leastInodes+n)
		}
		for n := int64(0); n < leastBytes; n += leastBytes / 20 {
			try(fmt.Sprintf("%d bytes", n), leastBytes+n, roomyInodes)
		}
		if failed < 10 {
			t.Errorf("%s: only %d attempts failed", dedup, failed)
		}
	}
}
