package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

var (
	errChanged    = errors.New("it was changed meanwhile")
	errNoExchange = errors.New("names cannot be exchanged here")
)

// exchange swaps what two names in one directory stand for.
func exchange(a, b string) error {
	err := uninterrupted(func() error {
		return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	})
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return fmt.Errorf("%w: %w", errNoExchange, err)
	}
	if err != nil {
		return &os.LinkError{Op: "exchange", Old: a, New: b, Err: err}
	}
	return nil
}

// swapLink makes name in dir, a symlink with the text was, one with the text
// target, by way of the name aside, which is free. There is one of the two at
// every instant. What was put there since it was looked at comes out of the
// exchange, is seen, and goes back: the error is errChanged then. Where names
// cannot be exchanged a link of ours is replaced all the same, by a rename.
func (d disk) swapLink(dir, name, aside, was, target string, ours bool) error {
	path, temp := filepath.Join(dir, name), filepath.Join(dir, aside)
	if err := os.Symlink(target, temp); err != nil {
		return err
	}
	err := exchange(temp, path)
	if errors.Is(err, errNoExchange) && ours {
		if now, rerr := os.Readlink(path); rerr != nil || now != was {
			return errors.Join(errChanged, os.Remove(temp))
		}
		if err = os.Rename(temp, path); err == nil {
			return d.syncDir(dir)
		}
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	if now, err := os.Readlink(temp); err != nil || now != was {
		if err := exchange(temp, path); err != nil {
			return errors.Join(errChanged, err)
		}
		return errors.Join(errChanged, os.Remove(temp))
	}
	return errors.Join(os.Remove(temp), d.syncDir(dir))
}

// removeLink removes name in dir, a symlink with the text was. What was put
// there since it was looked at goes back, and the error is errChanged.
func (d disk) removeLink(dir, name, aside, was string) error {
	path, temp := filepath.Join(dir, name), filepath.Join(dir, aside)
	if err := renameNew(path, temp); err != nil {
		return err
	}
	if now, err := os.Readlink(temp); err != nil || now != was {
		return errors.Join(errChanged, renameNew(temp, path))
	}
	return errors.Join(os.Remove(temp), d.syncDir(dir))
}

// missingDirs lists dir and what is missing above it, the outermost first.
func missingDirs(dir string) []string {
	var missing []string
	for {
		if _, err := os.Lstat(dir); err == nil || !errors.Is(err, os.ErrNotExist) {
			break
		}
		missing = append(missing, dir)
		dir = filepath.Dir(dir)
	}
	slices.Reverse(missing)
	return missing
}

// removeDirs removes directories that are empty, the innermost first.
func removeDirs(dirs []string) {
	for _, dir := range slices.Backward(slices.Sorted(slices.Values(dirs))) {
		if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
			return // in use by others: it stays
		}
	}
}

// nameHash is part of a file name that stands for all of its words.
func nameHash(words ...string) string {
	h := sha256.New()
	for _, w := range words {
		fmt.Fprintf(h, "%d:%s", len(w), w)
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}
