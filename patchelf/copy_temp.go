package patchelf

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// tempSuffix ends the name of a copy that is being edited.
const tempSuffix = ".patchelf-tmp"

// tempName is the name under which a copy for dst is made. There is one for
// each dst, so that a next run knows what a killed one left.
func tempName(dst string) string {
	dir, base := filepath.Split(dst)
	if len(base)+1+len(tempSuffix) > 255 { // NAME_MAX
		sum := sha256.Sum256([]byte(base))
		base = hex.EncodeToString(sum[:])
	}
	return filepath.Join(dir, "."+base+tempSuffix)
}

// createTemp creates the temporary file for dst, locked. One that is there and
// that nobody has locked is what a killed run left, and is removed.
func createTemp(dst string) (string, *os.File, error) {
	name := tempName(dst)
	for range 16 {
		t, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL|openFlags, 0o600)
		if errors.Is(err, fs.ErrExist) {
			if err := RemoveStale(dst); err != nil {
				return "", nil, err
			}
			continue
		}
		if err != nil {
			return "", nil, err
		}
		// Between the two, another run may take it for a leftover.
		if err := unix.Flock(int(t.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil && isAt(t, name) {
			return name, t, nil
		}
		t.Close()
	}
	return "", nil, errLocked
}

// RemoveStale removes what a killed EditCopy to dst left beside it. It is no
// error if there is nothing, and one if an edit is running.
func RemoveStale(dst string) error {
	name := tempName(dst)
	t, err := os.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at leftover: %w", err)
	}
	defer t.Close()
	if info, err := t.Stat(); err != nil || !info.Mode().IsRegular() {
		return refuse("%s is in the way", name)
	}
	if err := unix.Flock(int(t.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return errLocked
	}
	if !isAt(t, name) { // it has got its name, or was removed
		return nil
	}
	if err := os.Remove(name); err != nil {
		return fmt.Errorf("remove leftover: %w", err)
	}
	return nil
}

// isAt tells whether name is the open file f.
func isAt(f *os.File, name string) bool {
	here, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(name)
	return err == nil && os.SameFile(here, there)
}
