package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The files in ROOT in which the service, the timer and the verbs tell each other
// what they know. None of them is needed: one that is lost is made anew.
const (
	DaemonFile   = "daemon.json"   // when the daemon's jobs ran last
	LooksFile    = "looks.json"    // what the indexes said when they were looked at last
	BumpsFile    = "bumps.json"    // what became of requests
	NotifiedFile = "notified.json" // what was told, and to whom
)

// serviceFiles are all of them.
var serviceFiles = []string{DaemonFile, LooksFile, BumpsFile, NotifiedFile}

// maxServiceLen bounds each of them, in bytes.
const maxServiceLen = 4 << 20

// ReadService returns one of the service files as it is. The error matches
// fs.ErrNotExist where there is none. No lock is taken.
func (s *Store) ReadService(name string) ([]byte, error) {
	if !slices.Contains(serviceFiles, name) {
		return nil, fmt.Errorf("read %.100q: it is no file of the service", name)
	}
	return readFile(filepath.Join(s.root, name), maxServiceLen)
}

// WriteService replaces one of the service files, atomically and durably, and
// removes what a killed process has left of it. Where there is no store it makes
// none: the error matches fs.ErrNotExist then, and fs.ErrPermission where another
// user's is.
func (s *Store) WriteService(name string, data []byte) error {
	switch {
	case !slices.Contains(serviceFiles, name):
		return fmt.Errorf("write %.100q: it is no file of the service", name)
	case len(data) > maxServiceLen:
		return fmt.Errorf("write %s: it would be longer than %d bytes", name, maxServiceLen)
	}
	if _, err := os.Stat(s.root); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := s.giveBack(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write %s: %w", name, err)
	}
	err := s.asOwner(func() error {
		s.dropHalves(name)
		return s.disk.writeFile(filepath.Join(s.root, name), data)
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// dropHalves removes halves of a file that killed processes have left. Others
// write without a lock: a half that is young may be theirs.
func (s *Store) dropHalves(name string) {
	entries, err := os.ReadDir(s.root)
	if err != nil {
		return // the write tells
	}
	for _, e := range entries {
		half, ok := strings.CutPrefix(e.Name(), "."+name)
		if fi, err := e.Info(); ok && half != "" && strings.Trim(half, "0123456789") == "" && err == nil && time.Since(fi.ModTime()) > 24*time.Hour {
			_ = os.Remove(filepath.Join(s.root, e.Name())) // the next one tries again
		}
	}
}
