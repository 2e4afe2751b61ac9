package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/fault"
)

// The modes of everything that the store makes, whatever the umask: what root
// installs, every user of the machine runs.
const (
	dirMode  = 0o755
	fileMode = 0o644
)

// disk is the calls that make something durable, apart so that a test can see
// when they happen, and make them fail.
type disk struct {
	replace func(path string, data []byte) error // a file's content, by a rename
	syncFS  func(path string) error              // everything on the file system that holds path
	syncDir func(path string) error              // the entries of one directory
}

func realDisk() disk { return disk{replace: replaceFile, syncFS: syncFS, syncDir: syncDir} }

// syncFS writes back the whole file system below path: one call for 30,000
// files, where an fsync of each would take minutes.
func syncFS(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	err = uninterrupted(func() error {
		if err := fault.Call("store.commit.sync"); err != nil {
			return err
		}
		return unix.Syncfs(int(f.Fd()))
	})
	if errors.Is(err, unix.ENOSYS) {
		unix.Sync()
		return nil
	}
	if err != nil {
		return fmt.Errorf("sync the file system of %s: %w", path, err)
	}
	return nil
}

// syncDir makes renames in path durable. A file system that cannot sync a
// directory (some FUSE and CIFS) says EINVAL; there is nothing more to do.
func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	err = fault.Do("store.dir.sync", f.Sync)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	return err
}

// uninterrupted repeats call while a signal cuts it short.
func uninterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// mkdirAll makes path and what is missing above it, each durable and with
// dirMode. Directories that exist keep their mode.
func (d disk) mkdirAll(path string) error {
	fi, err := os.Stat(path)
	switch {
	case err == nil && fi.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("create directory %s: it is there and not a directory", path)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if parent := filepath.Dir(path); parent != path {
		if err := d.mkdirAll(parent); err != nil {
			return err
		}
	}
	err = os.Mkdir(path, dirMode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.Chmod(path, dirMode); err != nil {
		return err
	}
	return d.syncDir(filepath.Dir(path))
}

// writeFile replaces path by data, atomically and durably.
func (d disk) writeFile(path string, data []byte) error {
	if err := d.replace(path, data); err != nil {
		return err
	}
	if err := fault.Point("store.file.replaced"); err != nil {
		return err
	}
	return d.syncDir(filepath.Dir(path)) // renameio syncs the file, not the directory
}

func replaceFile(path string, data []byte) error {
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithStaticPermissions(fileMode))
	if err != nil {
		return err
	}
	defer f.Cleanup() // after the rename it does nothing
	if _, err := fault.Write("store.file.write", f, data); err != nil {
		return err
	}
	if err := fault.Point("store.file.replace"); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}

// ensureFile creates path, empty, when it is absent.
func ensureFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(fileMode), f.Close())
}

// replaceLink makes name in dir a symlink to target by one rename.
func (d disk) replaceLink(dir, name, tempPrefix, target string) error {
	temp := filepath.Join(dir, tempPrefix+random())
	if err := fault.Do("store.switch.symlink", func() error { return os.Symlink(target, temp) }); err != nil {
		return err
	}
	err := fault.Point("store.switch.rename")
	if err == nil {
		err = os.Rename(temp, filepath.Join(dir, name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return errors.Join(fault.Point("store.switch.renamed"), d.syncDir(dir))
}

// renameNew renames and never replaces: rename(2) itself would silently
// replace an empty directory, a file or a link.
func renameNew(from, to string) error {
	err := uninterrupted(func() error {
		if err := fault.Call("store.commit.rename"); err != nil {
			return err
		}
		return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	})
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) {
		// A file system without the flag. Whoever else could take the name
		// holds the same lock as the caller.
		if _, lerr := os.Lstat(to); lerr == nil {
			err = unix.EEXIST
		} else {
			return os.Rename(from, to)
		}
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

// removeTree deletes path and all below it, read-only directories of our own
// included: as an ordinary user, nothing can be deleted in one that lacks u+w.
func removeTree(path string) error {
	err := os.RemoveAll(path)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	if err := makeWritable(path); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

// makeWritable gives the owner every right on every directory below path,
// following no link. The walk reads a directory after its mode was set.
func makeWritable(path string) error {
	if err := os.Chmod(path, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() || p == "." {
			return err
		}
		return root.Chmod(p, 0o700)
	})
}

// random is part of a name that nobody else uses.
func random() string { return rand.Text()[:12] }
