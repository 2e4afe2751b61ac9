package store

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	maxRuns   = 100
	maxRunLen = 64 << 20 // bytes
	runSuffix = ".json"
)

// Run is one record of a run.
type Run struct {
	Name    string    // as given to WriteRun
	Written time.Time // UTC
}

// WriteRun writes v as the record called name, replacing one that is there,
// atomically. The newest 100 records of a slot are kept.
func (sl *Slot) WriteRun(name string, v any) error {
	if err := errors.Join(sl.err, checkName("run", name)); err != nil {
		return fmt.Errorf("write run: %w", err)
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write run %s: %w", name, err)
	}
	path := sl.path(runsName, name+runSuffix)
	err := sl.store.disk.mkdirAll(sl.path(runsName))
	if err == nil {
		err = sl.store.disk.writeFile(path, buf.Bytes())
	}
	if err == nil {
		now := sl.store.now() // finer than the file system's own clock
		err = os.Chtimes(path, now, now)
	}
	if err == nil {
		err = sl.trimRuns()
	}
	if err != nil {
		return fmt.Errorf("write run %s: %w", name, err)
	}
	return nil
}

// ReadRun decodes the record called name into v. An error matches
// fs.ErrNotExist when there is none.
func (sl *Slot) ReadRun(name string, v any) error {
	if err := errors.Join(sl.err, checkName("run", name)); err != nil {
		return fmt.Errorf("read run: %w", err)
	}
	f, err := os.Open(sl.path(runsName, name+runSuffix))
	if err != nil {
		return fmt.Errorf("read run %s: %w", name, err)
	}
	defer f.Close()
	if err := json.NewDecoder(io.LimitReader(f, maxRunLen)).Decode(v); err != nil {
		return fmt.Errorf("read run %s: %w", name, err)
	}
	return nil
}

// Runs lists the records, the newest first.
func (sl *Slot) Runs() ([]Run, error) {
	if sl.err != nil {
		return nil, sl.err
	}
	entries, err := os.ReadDir(sl.path(runsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list runs of %s: %w", sl.Name(), err)
	}
	var runs []Run
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), runSuffix)
		if !ok || checkName("run", name) != nil {
			continue
		}
		fi, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since
		}
		if err != nil {
			return nil, fmt.Errorf("list runs of %s: %w", sl.Name(), err)
		}
		runs = append(runs, Run{name, fi.ModTime().UTC()})
	}
	slices.SortFunc(runs, func(a, b Run) int {
		return cmp.Or(b.Written.Compare(a.Written), compareNames(b.Name, a.Name))
	})
	return runs, nil
}

// trimRuns removes the oldest records, and halves of records that a killed
// process left long ago.
func (sl *Slot) trimRuns() error {
	runs, err := sl.Runs()
	if err != nil {
		return err
	}
	for _, r := range runs[min(len(runs), maxRuns):] {
		if err := os.Remove(sl.path(runsName, r.Name+runSuffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	entries, err := os.ReadDir(sl.path(runsName))
	if err != nil {
		return err
	}
	for _, e := range entries {
		fi, err := e.Info()
		if err != nil || !strings.HasPrefix(e.Name(), ".") || sl.store.now().Sub(fi.ModTime()) < 24*time.Hour {
			continue
		}
		if err := os.Remove(sl.path(runsName, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
