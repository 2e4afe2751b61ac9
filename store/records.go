package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/fault"
)

// What stays of trees lies in SLOT/records/VERSION, a directory of a few small
// files for each: also of trees that were never installed, and of those that were
// removed. It can be lost: then two nights cannot be compared, and nothing else.
const (
	recordsName = "records"

	// maxRecords is how many a slot keeps, the newest: each has 1 or 2 MB.
	maxRecords   = 10
	recordPrefix = ".new-" // one that is being written; no version begins so
)

// TreeRecord is what stays of one tree.
type TreeRecord struct {
	Version string    // as given to KeepRecord
	Dir     string    // absolute
	Written time.Time // UTC
}

// KeepRecord keeps files, by name, as what stays of the tree of a version,
// durably, in place of what was kept of one before; a reader finds all of the old
// ones, all of the new ones, or for a moment none. The newest 10 of a slot stay.
func (sl *Slot) KeepRecord(ctx context.Context, version string, files map[string][]byte) error {
	err := errors.Join(sl.err, checkVersion(version))
	for name := range files {
		err = errors.Join(err, checkName("file", name))
	}
	if err == nil {
		err = sl.keepRecord(ctx, version, files)
	}
	if err != nil {
		return fmt.Errorf("keep a record of %s: %w", version, err)
	}
	return nil
}

func (sl *Slot) keepRecord(ctx context.Context, version string, files map[string][]byte) error {
	if err := sl.store.makeDir(sl.path(recordsName)); err != nil {
		return err
	}
	return sl.locked(ctx, func() error {
		if err := sl.sweepRecords(); err != nil {
			return err
		}
		fresh, at := sl.path(recordsName, recordPrefix+random()), sl.path(recordsName, version)
		if err := sl.fillRecord(fresh, files); err != nil {
			return errors.Join(err, removeTree(fresh))
		}
		if err := sl.swapRecord(fresh, at); err != nil {
			return errors.Join(err, removeTree(fresh))
		}
		return sl.trimRecords()
	})
}

// fillRecord writes the files into a directory that nobody looks at yet.
func (sl *Slot) fillRecord(dir string, files map[string][]byte) error {
	err := errors.Join(os.Mkdir(dir, dirMode), os.Chmod(dir, dirMode), fault.Point("store.records.made"))
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := sl.store.disk.writeFile(filepath.Join(dir, name), files[name]); err != nil {
			return err
		}
	}
	now := sl.store.now() // finer than the file system's own clock
	return errors.Join(os.Chtimes(dir, now, now), fault.Point("store.records.filled"))
}

// swapRecord gives a record its name. The one before goes first, for a directory
// replaces none that holds something.
func (sl *Slot) swapRecord(fresh, at string) error {
	old := sl.path(recordsName, recordPrefix+random())
	if err := os.Rename(at, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := fault.Point("store.records.swap"); err != nil {
		return err
	}
	if err := os.Rename(fresh, at); err != nil {
		return err
	}
	return errors.Join(sl.store.disk.syncDir(sl.path(recordsName)), sl.store.disk.syncDir(sl.path()), removeTree(old))
}

// Record finds what was kept of the tree of a version. An error matches
// fs.ErrNotExist where there is nothing.
func (sl *Slot) Record(version string) (TreeRecord, error) {
	if err := errors.Join(sl.err, checkVersion(version)); err != nil {
		return TreeRecord{}, fmt.Errorf("find the record of %.100q: %w", version, err)
	}
	dir := sl.path(recordsName, version)
	fi, err := os.Lstat(dir)
	if err == nil && !fi.IsDir() {
		err = fmt.Errorf("%s is not a directory", dir)
	}
	if err != nil {
		return TreeRecord{}, fmt.Errorf("find the record of %s: %w", version, err)
	}
	return TreeRecord{version, dir, fi.ModTime().UTC()}, nil
}

// Records lists what was kept of trees, the newest first.
func (sl *Slot) Records() ([]TreeRecord, error) {
	if sl.err != nil {
		return nil, sl.err
	}
	entries, err := os.ReadDir(sl.path(recordsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the records of %s: %w", sl.Name(), err)
	}
	var all []TreeRecord
	for _, e := range entries {
		if !e.IsDir() || checkVersion(e.Name()) != nil {
			continue
		}
		fi, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since
		}
		if err != nil {
			return nil, fmt.Errorf("list the records of %s: %w", sl.Name(), err)
		}
		all = append(all, TreeRecord{e.Name(), sl.path(recordsName, e.Name()), fi.ModTime().UTC()})
	}
	slices.SortFunc(all, func(a, b TreeRecord) int {
		return cmp.Or(b.Written.Compare(a.Written), compareNames(b.Version, a.Version))
	})
	return all, nil
}

// trimRecords removes the oldest. The caller holds switch.lock.
func (sl *Slot) trimRecords() error {
	all, err := sl.Records()
	if err != nil {
		return err
	}
	for _, r := range all[min(len(all), maxRecords):] {
		if err := removeTree(r.Dir); err != nil {
			return err
		}
	}
	return nil
}

// sweepRecords removes halves of records that killed processes left. The caller
// holds switch.lock, under which alone they are made.
func (sl *Slot) sweepRecords() error {
	dir := sl.path(recordsName)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), recordPrefix) {
			if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
