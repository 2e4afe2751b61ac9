package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// recordStatus is what stays of trees, so that nights can be compared: also of those
// that were never installed, and of those that were removed.
type recordStatus struct {
	Count     int    `json:"count"`
	DiskBytes int64  `json:"disk_bytes"`
	Newest    string `json:"newest,omitempty"` // the version that was recorded last
}

// statusOfRecords measures them; nil if there are none.
func statusOfRecords(sl *store.Slot) (*recordStatus, error) {
	all, err := sl.Records()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	s := &recordStatus{Count: len(all), Newest: all[0].Version}
	for _, r := range all {
		bytes, err := blocksBelow(r.Dir)
		if err != nil {
			return nil, fmt.Errorf("measure the record of %s: %w", r.Version, err)
		}
		s.DiskBytes += bytes
	}
	return s, nil
}

// blocksBelow is what a directory and the files in it occupy. What is removed in the
// meantime occupies nothing.
func blocksBelow(dir string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		var fi os.FileInfo
		if err == nil {
			fi, err = e.Info()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if st, ok := fi.Sys().(*syscall.Stat_t); ok {
			sum += st.Blocks * 512
		}
		return nil
	})
	return sum, err
}

// text is for people.
func (s *recordStatus) text() string {
	what := "nights"
	if s.Count == 1 {
		what = "night"
	}
	return fmt.Sprintf("on record: %d %s, the last %s, %s", s.Count, what, s.Newest, diskspace.Text(s.DiskBytes))
}
