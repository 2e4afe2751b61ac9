package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/fault"
	"github.com/rocm-nightly/rocm-nightly/internal/schema"
)

const (
	maxRuns   = 100
	maxRunLen = 64 << 20 // bytes
	runSuffix = ".json"

	// A record is written in the end of a run that may have been called off; who
	// holds switch.lock does so for milliseconds.
	runWait = 30 * time.Second
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
	b, err := encodeRun(v)
	if err == nil {
		err = sl.record(name+runSuffix, b)
	}
	if err != nil {
		return fmt.Errorf("write run %s: %w", name, err)
	}
	return nil
}

func encodeRun(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return buf.Bytes(), err
}

// record replaces one file in runs, durably, and removes what is not to stay:
// under switch.lock, so that halves of other records are those of dead processes.
func (sl *Slot) record(file string, data []byte) error {
	if err := sl.store.makeDir(sl.path(runsName)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), runWait)
	defer cancel()
	return sl.locked(ctx, func() error {
		path := sl.path(runsName, file)
		if err := fault.Do("store.runs.write", func() error { return sl.store.disk.writeFile(path, data) }); err != nil {
			return err
		}
		now := sl.store.now() // finer than the file system's own clock
		if err := os.Chtimes(path, now, now); err != nil {
			return err
		}
		return fault.Do("store.runs.trim", sl.trimRuns)
	})
}

// ReadRun decodes the record called name into v. An error matches
// fs.ErrNotExist when there is none, and ErrNewer when a newer program wrote it.
func (sl *Slot) ReadRun(name string, v any) error {
	if err := errors.Join(sl.err, checkName("run", name)); err != nil {
		return fmt.Errorf("read run: %w", err)
	}
	if err := readRun(sl.path(runsName, name+runSuffix), v); err != nil {
		return fmt.Errorf("read run %s: %w", name, err)
	}
	return nil
}

func readRun(path string, v any) error {
	b, err := readFile(path, maxRunLen)
	if err == nil {
		var now []byte
		if now, err = runFormat.Read(b); err == nil {
			b = now
		} else if errors.Is(err, schema.ErrNone) {
			err = nil // whose it is, is the caller's to say
		}
	}
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	return err
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
		if !ok || strings.HasSuffix(e.Name(), provenanceSuffix) || checkName("run", name) != nil {
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

// trimRuns removes the oldest records, and halves of records that killed
// processes left. The caller holds switch.lock.
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
	if err := sl.trimProvenance(); err != nil {
		return err
	}
	return sl.sweepRuns()
}

// sweepRuns removes halves of records. The caller holds switch.lock.
func (sl *Slot) sweepRuns() error { return sweepHalves(sl.path(runsName), ".") }
