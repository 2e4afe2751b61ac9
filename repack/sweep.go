package repack

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"syscall"

	"golang.org/x/sys/unix"
)

// stagingRE is the exact form of a staging's name: rand.Text's is base32.
var stagingRE = regexp.MustCompile(`^\.rocm-nightly-repack-[A-Z2-7]{26}$`)

// Sweep removes what dead runs for dir have left beside it, as Run does before
// it begins: for whoever has to know what is free before that.
func Sweep(dir string) {
	if abs, err := filepath.Abs(dir); err == nil {
		sweep(filepath.Dir(abs), filepath.Base(abs))
	}
}

// sweep removes the stagings for base in parent whose owners are dead. It is a
// courtesy: what cannot be looked at or removed is left, and never in the way.
func sweep(parent, base string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.IsDir() && stagingRE.MatchString(e.Name()) {
			sweepOne(filepath.Join(parent, e.Name()), base)
		}
	}
}

// sweepOne removes one staging if it is certainly ours, for base, and dead. It
// works through a handle, so that nothing else can be put in its place, and
// removes no more than what create makes: what somebody added stays.
func sweepOne(path, base string) {
	before, err := os.Lstat(path)
	if err != nil || !before.IsDir() || !own(before) {
		return
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return
	}
	defer root.Close()
	if fi, err := root.Stat("."); err != nil || !os.SameFile(before, fi) {
		return
	}
	lock := deadLock(root, base)
	if lock == nil {
		return
	}
	err = root.RemoveAll(prefixName)
	lock.Close() // an open file cannot go from a directory on NFS
	if err == nil && root.Remove(lockName) == nil {
		_ = os.Remove(path) // not empty: then it is somebody's
	}
}

// deadLock takes the lock of a staging for base that nobody holds; nil if it
// is none, or its owner lives.
func deadLock(root *os.Root, base string) *os.File {
	if fi, err := root.Lstat(lockName); err != nil || !fi.Mode().IsRegular() {
		return nil
	}
	f, err := root.OpenFile(lockName, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	fi, err := f.Stat()
	if err == nil && fi.Mode().IsRegular() && own(fi) && flock(f) == nil {
		want := marker(base)
		text, err := io.ReadAll(io.LimitReader(f, int64(len(want))+1))
		if err == nil && string(text) == want {
			return f
		}
	}
	f.Close()
	return nil
}

// own reports whether a file is this user's.
func own(fi os.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
