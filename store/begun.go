package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// begunName is the record of a run that has not ended. It is no *.json: of the runs
// that are over it is none.
const begunName = "begun"

// WriteBegun writes v as what is known of a run that begins, in place of what was
// there, atomically. Who has written the record of its end drops it.
func (sl *Slot) WriteBegun(v any) error {
	b, err := encodeRun(v)
	if err = errors.Join(sl.err, err); err == nil {
		err = sl.record(begunName, b)
	}
	if err != nil {
		return fmt.Errorf("write down that a run begins: %w", err)
	}
	return nil
}

// ReadBegun decodes what was written of a run that has not ended: it is under way,
// or was killed. An error matches fs.ErrNotExist when there is none, and ErrNewer
// when a newer program wrote it.
func (sl *Slot) ReadBegun(v any) error {
	err := sl.err
	if err == nil {
		err = readRun(sl.path(runsName, begunName), v)
	}
	if err != nil {
		return fmt.Errorf("read what run has begun: %w", err)
	}
	return nil
}

// DropBegun removes it; that there is none is no error.
func (sl *Slot) DropBegun(ctx context.Context) error {
	err := sl.err
	if err == nil {
		if _, err = os.Lstat(sl.path(runsName, begunName)); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	if err == nil {
		err = sl.locked(ctx, func() error { return os.Remove(sl.path(runsName, begunName)) })
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget that a run has begun: %w", err)
	}
	return nil
}

// Runner says who holds run.lock, as far as its record tells; false: nobody who
// lives. No lock is taken.
func (s *Store) Runner() (Holder, bool) {
	h := readHolder(filepath.Join(s.root, runLock))
	return h, h.PID > 0 && !h.gone()
}
