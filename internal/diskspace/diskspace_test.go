package diskspace

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/smallfs"
)

func TestStatfsLooksAtTheNearestAncestor(t *testing.T) {
	dir := t.TempDir()
	here, err := Statfs(dir)
	if err != nil {
		t.Fatal(err)
	}
	below, err := Statfs(filepath.Join(dir, "not/there/yet"))
	if err != nil || below.Dev != here.Dev || below.Mount != here.Mount || below.Path != filepath.Join(dir, "not/there/yet") {
		t.Errorf("%+v, %v; above it %+v", below, err, here)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Statfs(filepath.Join(dir, "file/below")); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("below a file: %v", err)
	}
	// A link that leads nowhere is not made into a directory; what is above it is.
	if err := os.Symlink("/proc", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if s, err := Statfs(filepath.Join(dir, "link/none")); err != nil || s.Mount != "/proc" || s.Bytes != Unknown || s.Inodes != Unknown {
		t.Errorf("through a link: %+v, %v", s, err)
	}
}

func TestASmallFileSystem(t *testing.T) {
	if !smallfs.Inside(t) {
		return
	}
	fs := smallfs.Tmpfs(t, 1<<20, 100)
	s, err := Statfs(filepath.Join(fs.Dir, "a/b"))
	if err != nil || s.Mount != fs.Dir || s.Bytes != 1<<20 || s.Inodes != 99 || s.ReadOnly || s.Compress {
		t.Errorf("%+v, %v", s, err)
	}
	if err := os.WriteFile(filepath.Join(fs.Dir, "file"), make([]byte, 10_000), 0o644); err != nil {
		t.Fatal(err)
	}
	if s, err = Statfs(fs.Dir); err != nil || s.Bytes != 1<<20-12288 || s.Inodes != 98 {
		t.Errorf("with a file: %+v, %v", s, err)
	}
	fs.ReadOnly(true)
	if s, err = Statfs(fs.Dir); err != nil || s.Fit(Need{}) != Short {
		t.Errorf("read-only: %+v, %v", s, err)
	}
	fs.ReadOnly(false)
	fs.Limit(0, 0)
	if s, err = Statfs(fs.Dir); err != nil || s.Fit(Known(math.MaxInt64, math.MaxInt64, 0)) != Fits {
		t.Errorf("without limits: %+v, %v", s, err)
	}
}

// What statfs(2) can say, odd as it may be.
func TestSpaceOf(t *testing.T) {
	for name, c := range map[string]struct {
		st            unix.Statfs_t
		bytes, inodes int64
	}{
		"ext4":                    {unix.Statfs_t{Bsize: 4096, Frsize: 4096, Blocks: 100, Bfree: 20, Bavail: 10, Files: 50, Ffree: 5}, 40960, 5},
		"fragments":               {unix.Statfs_t{Bsize: 1 << 20, Frsize: 512, Blocks: 100, Bavail: 10}, 5120, Unknown},
		"no fragment size":        {unix.Statfs_t{Bsize: 4096, Blocks: 100, Bavail: 10}, 40960, Unknown},
		"btrfs knows no inodes":   {unix.Statfs_t{Type: unix.BTRFS_SUPER_MAGIC, Bsize: 4096, Frsize: 4096, Blocks: 9, Bavail: 1}, 4096, Unknown},
		"no limit":                {unix.Statfs_t{Bsize: 4096, Frsize: 4096}, Unknown, Unknown},
		"the reserve broken into": {unix.Statfs_t{Bsize: 4096, Frsize: 4096, Blocks: 9, Bavail: math.MaxUint64 - 3, Files: 1}, 0, 0},
		"more than can be":        {unix.Statfs_t{Bsize: 1 << 20, Frsize: 1 << 20, Blocks: 1 << 62, Bavail: 1 << 62}, math.MaxInt64, Unknown},
		"nonsense":                {unix.Statfs_t{Blocks: 1, Bavail: 1}, Unknown, Unknown},
	} {
		if s := spaceOf(&c.st); s.Bytes != c.bytes || s.Inodes != c.inodes {
			t.Errorf("%s: %d bytes, %d inodes; want %d, %d", name, s.Bytes, s.Inodes, c.bytes, c.inodes)
		}
	}
}

func TestFit(t *testing.T) {
	known, guess := Known(1000, 10, 400), Estimated(1000, 10, Least{Bytes: 500, Compressed: 400})
	for name, c := range map[string]struct {
		s    Space
		n    Need
		want Fit
	}{
		"enough":                         {Space{Bytes: 1000, Inodes: 10}, known, Fits},
		"a byte short":                   {Space{Bytes: 999, Inodes: 10}, known, Short},
		"an inode short":                 {Space{Bytes: 1000, Inodes: 9}, known, Short},
		"inodes not counted":             {Space{Bytes: 1000, Inodes: Unknown}, known, Fits},
		"bytes not counted":              {Space{Bytes: Unknown, Inodes: Unknown}, known, Fits},
		"it may compress":                {Space{Bytes: 999, Inodes: Unknown, Compress: true}, known, Doubtful},
		"it cannot compress so much":     {Space{Bytes: 399, Inodes: Unknown, Compress: true}, known, Short},
		"a guess leaves a doubt":         {Space{Bytes: 999, Inodes: 10}, guess, Doubtful},
		"a guess of inodes too":          {Space{Bytes: 1000, Inodes: 0}, guess, Doubtful},
		"but not below the least":        {Space{Bytes: 499, Inodes: 10}, guess, Short},
		"read-only":                      {Space{Bytes: 1000, Inodes: 10, ReadOnly: true}, Need{}, Short},
		"nothing needed, nothing there":  {Space{}, Need{}, Fits},
		"two needs":                      {Space{Bytes: 1499, Inodes: 10}, known.Plus(Incompressible(500)), Short},
		"two needs that are there":       {Space{Bytes: 1500, Inodes: 10}, known.Plus(Incompressible(500)), Fits},
		"a huge one does not wrap round": {Space{Bytes: 1 << 40, Inodes: Unknown}, Incompressible(math.MaxInt64).Plus(known), Short},
	} {
		if got := c.s.Fit(c.n); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestGuesses(t *testing.T) {
	const gfx1151 = 1_794_376_103 // 8.4 GB unpacked
	n := Guess("therock-dist-linux-gfx1151-10.0.0.tar.gz", gfx1151)
	if n.Bytes < 8_400_000_000 || n.Bytes > 10_000_000_000 || n.Inodes != guessInodes || n.Least.Bytes != gfx1151 || n.Exact {
		t.Errorf("%+v", n)
	}
	if n := Guess("x.tar", 1000); n.Bytes != 1000 || n.Least.Bytes > 1000 {
		t.Errorf("a plain tar: %+v", n)
	}
	if n := Guess("", math.MaxInt64); n.Bytes != math.MaxInt64 {
		t.Errorf("huge: %+v", n)
	}
	sure, unsure := Scaled(2000, 5000, 100, 1000, true), Scaled(2000, 5000, 100, 1000, false)
	if sure.Bytes != 11000 || sure.Least.Bytes != 9000 || sure.Inodes != 110 || sure.Least.Inodes != 80 || sure.Least.Compressed != 2000 {
		t.Errorf("%+v", sure)
	}
	if unsure.Bytes != 11000 || unsure.Least.Bytes != 2000 || unsure.Least.Inodes != 0 {
		t.Errorf("%+v", unsure)
	}
	if n := Scaled(2000, 5000, 100, 0, true); n != Guess("", 2000) {
		t.Errorf("of nothing: %+v", n)
	}
}

// Holes take nothing, and an inode counts once.
func TestUsed(t *testing.T) {
	dir := t.TempDir()
	empty, inodes, err := Used(dir)
	if err != nil || inodes != 1 {
		t.Fatal(empty, inodes, err)
	}
	f, err := os.Create(filepath.Join(dir, "hole"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(1<<30), f.Close(), os.Link(f.Name(), f.Name()+"2"), os.Symlink("/nowhere", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), make([]byte, 100_000), 0o644); err != nil {
		t.Fatal(err)
	}
	bytes, inodes, err := Used(dir)
	if err != nil || inodes != 4 || bytes < empty || bytes > empty+200_000 {
		t.Errorf("%d bytes, %d inodes, %v", bytes, inodes, err)
	}
	if _, _, err := Used(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestShortError(t *testing.T) {
	err := error(&ShortError{What: "unpacking it", Need: Known(3<<30, 29500, 0), Space: Space{Mount: "/srv", Bytes: 1 << 30, Inodes: Unknown}})
	if err.Error() != "not enough room: unpacking it takes 3.0 GiB and 29500 inodes, and 1.0 GiB are free at /srv" || !errors.Is(err, unix.ENOSPC) {
		t.Error(err)
	}
	err = &ShortError{What: "unpacking it", Space: Space{Mount: "/srv", ReadOnly: true}}
	if !strings.HasSuffix(err.Error(), "the file system at /srv is read-only") || !errors.Is(err, unix.EROFS) {
		t.Error(err)
	}
}
