package snapshot

import (
	"io/fs"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

// maxSpoolFiles bounds how many files of downloads are looked at: one download has
// some hundred.
const maxSpoolFiles = 200_000

// disk is what the root occupies, in bytes, and what is left where it is.
func (v *view) disk() state.Disk {
	d := state.Disk{Used: -1}
	if v.used != nil {
		d.Used, d.Measured = v.used.Total, v.now
	}
	if kept, err := v.o.Store.Tarballs(); err == nil {
		for _, t := range kept {
			d.Tarballs += t.Size
		}
	}
	// Its name in ROOT is the store's: two above the directory of any download.
	d.Spool = blocks(filepath.Dir(filepath.Dir(v.o.Store.SpoolDir("x", "x"))))
	var fs unix.Statfs_t
	for dir := v.o.Store.Root(); ; dir = filepath.Dir(dir) {
		if err := unix.Statfs(dir, &fs); err == nil {
			d.Free, d.Total = int64(fs.Bavail)*fs.Frsize, int64(fs.Blocks)*fs.Frsize
			break
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return d
}

// blocks is what the files below dir occupy.
func blocks(dir string) (bytes int64) {
	n := 0
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if n++; n > maxSpoolFiles {
			return fs.SkipAll
		}
		if err != nil || !e.Type().IsRegular() {
			return nil // removed meanwhile, or another user's
		}
		if fi, err := e.Info(); err == nil {
			if st, ok := fi.Sys().(*syscall.Stat_t); ok {
				bytes += st.Blocks * 512
			}
		}
		return nil
	})
	return bytes
}
