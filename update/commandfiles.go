package update

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// maxCommandFile is up to what size the content of a file tells whether it has
// changed, in bytes; of a larger one size and time do.
const maxCommandFile = 16 << 20

// commandFiles tells the files that the health command names by their whole path, the
// program and the script that it is told to run: whoever mends one of them
// wants to see the night tried again. What is below the store is left out, for it
// changes with what is active. They are read once for a run, before it switches.
func (r *run) commandFiles() []string {
	if r.command != nil {
		return r.command
	}
	r.command = []string{}
	for _, arg := range r.o.Health.Command {
		if !filepath.IsAbs(arg) || within(filepath.Clean(arg), r.o.Store.Root()) {
			continue
		}
		sum, err := fingerprint(arg)
		if err != nil {
			r.o.Log.Debug("a file of the health command could not be read", "file", arg, "error", err)
			continue
		}
		r.command = append(r.command, sum)
	}
	return r.command
}

// fingerprint is what changes when a file does; "" for what is no regular file.
func fingerprint(file string) (sum string, err error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO has nobody who writes
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	fi, err := f.Stat()
	if err != nil || !fi.Mode().IsRegular() {
		return "", err
	}
	if fi.Size() > maxCommandFile {
		return fmt.Sprintf("%d %d", fi.Size(), fi.ModTime().UnixNano()), nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, maxCommandFile)); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x %v", h.Sum(nil), fi.Mode().Perm()), nil
}
