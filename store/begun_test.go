package store

import (
	"errors"
	"io/fs"
	"os"
	"testing"
)

// What has begun is no run until it has ended, and can be dropped twice.
func TestBegun(t *testing.T) {
	sl := open(t).Slot("nightly", "gfx1151")
	var v struct{ Version string }
	if err := errors.Join(sl.DropBegun(t.Context())); err != nil {
		t.Error(err)
	}
	if err := sl.ReadBegun(&v); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read of none: %v", err)
	}
	if err := sl.WriteBegun(map[string]any{"schema": 1, "version": night(1)}); err != nil {
		t.Fatal(err)
	}
	if err := sl.ReadBegun(&v); err != nil || v.Version != night(1) {
		t.Errorf("%+v, %v", v, err)
	}
	if runs, err := sl.Runs(); err != nil || len(runs) != 0 {
		t.Errorf("%v, %v", runs, err)
	}
	if err := sl.WriteRun(night(1), map[string]int{"schema": 1}); err != nil || sl.ReadBegun(&v) != nil {
		t.Errorf("the end of a run has dropped it: %v", err)
	}
	if err := errors.Join(sl.DropBegun(t.Context()), sl.DropBegun(t.Context())); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(sl.path(runsName, begunName), []byte(`{"schema": 99}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := sl.ReadBegun(&v); !errors.Is(err, ErrNewer) {
		t.Error(err)
	}
}

// Who has died holds nothing.
func TestRunner(t *testing.T) {
	s := open(t)
	if h, ok := s.Runner(); ok {
		t.Errorf("%+v", h)
	}
	lock, err := s.LockRun(t.Context(), "update")
	if err != nil {
		t.Fatal(err)
	}
	if h, ok := s.Runner(); !ok || h.What != "update" || h.PID != os.Getpid() {
		t.Errorf("%+v, %v", h, ok)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if h, ok := s.Runner(); ok {
		t.Errorf("%+v", h)
	}
	dead := s.holder("update")
	dead.PID = 1 << 30
	writeHolder(s.root+"/"+runLock, dead)
	if h, ok := s.Runner(); ok {
		t.Errorf("%+v", h)
	}
}
