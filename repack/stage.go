package repack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// staging is a directory beside the one to make. Its owner holds a lock on
// it, by which the next run tells a dead one from a live one.
type staging struct {
	dir  string
	lock *os.File
}

// stageBeside makes a staging directory on the same file system as dir, after
// removing those that dead runs for the same dir left.
func stageBeside(dir string) (*staging, error) {
	if err := absentOrEmpty(dir); err != nil {
		return nil, err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, err
	}
	prefix := "." + filepath.Base(dir) + ".staging-"
	if err := sweep(parent, prefix); err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return nil, err
	}
	lock, err := lockDir(path)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	return &staging{path, lock}, nil
}

func absentOrEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(entries) > 0:
		return fmt.Errorf("%w: name a directory that does not exist yet, or remove it first", ErrOccupied)
	}
	return nil
}

// sweep removes staging directories whose owner is dead.
func sweep(parent, prefix string) error {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		path := filepath.Join(parent, e.Name())
		lock, err := lockDir(path)
		if err != nil {
			continue // alive, or not ours to touch
		}
		err = os.RemoveAll(path)
		if err := errors.Join(err, lock.Close()); err != nil {
			return fmt.Errorf("remove what an interrupted run left: %w", err)
		}
	}
	return nil
}

// lockDir takes the lock of a directory, or fails at once.
func lockDir(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return f, nil
}

func (s *staging) abort() error {
	return errors.Join(os.RemoveAll(s.dir), s.lock.Close())
}

// commit makes the staged bytes durable and then visible as dir.
func (s *staging) commit(dir string) error {
	if err := unix.Syncfs(int(s.lock.Fd())); err != nil {
		return fmt.Errorf("flush to disk: %w", err)
	}
	// rename(2) takes the place of an empty directory; os.Rename would not.
	if err := unix.Rename(s.dir, dir); err != nil {
		return &os.LinkError{Op: "rename", Old: s.dir, New: dir, Err: err}
	}
	parent, err := os.Open(filepath.Dir(dir))
	if err != nil {
		return err
	}
	return errors.Join(parent.Sync(), parent.Close(), s.lock.Close())
}
