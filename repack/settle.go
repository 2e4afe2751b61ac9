package repack

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// date settles what time each directory will have, before files.jsonl tells
// it: those for which the tarball has none get the newest of its times, so
// that nothing depends on when this ran.
func (m *maker) date(context.Context) error {
	newest := m.newest()
	for i := range m.files {
		if f := &m.files[i]; f.Kind == manifest.Dir && f.MTime == 0 {
			f.MTime = newest
		}
	}
	return nil
}

// newest is the latest time of the tarball, Unix seconds.
func (m *maker) newest() int64 {
	var t int64
	for i := range m.files {
		t = max(t, m.files[i].MTime)
	}
	return t
}

// settle gives the directories their times, now that nothing more is written
// into any, and our own files the newest.
func (m *maker) settle(context.Context) error {
	for _, f := range slices.Backward(m.files) { // children sort after parents
		if f.Kind != manifest.Dir {
			continue
		}
		if err := m.stamp(f.Path, f.MTime); err != nil {
			return err
		}
	}
	newest := m.newest()
	if m.tree != "" {
		own := []string{manifest.Name, manifest.FilesName}
		if m.set != nil {
			own = append(own, manifest.OmittedName)
		}
		for _, name := range own {
			if err := m.stamp(name, newest); err != nil {
				return err
			}
		}
	}
	return m.stamp(".", newest)
}

// stamp sets the time of a file or directory, in Unix seconds.
func (m *maker) stamp(name string, unix int64) error {
	t := time.Unix(unix, 0)
	if err := m.root.Chtimes(name, t, t); err != nil {
		return fmt.Errorf("set times: %w", err)
	}
	return nil
}
