package cage

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// removeScratch removes a private scratch directory. What is in it was left by
// the program: directories that cannot be read among them, and links, which
// nothing follows.
func removeScratch(dir string) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		os.Remove(dir)
		return
	}
	defer root.Close()
	// A directory that is closed to its owner is opened on the way down.
	for range 100 {
		closed := false
		fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil && d != nil && d.IsDir() && root.Chmod(filepath.FromSlash(path), 0o700) == nil {
				closed = true
			}
			return nil
		})
		if os.RemoveAll(dir) == nil || !closed {
			return
		}
	}
}

// allocated is what a file occupies, in bytes.
func allocated(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}
