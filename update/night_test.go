package update

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/demo"
)

// nights are made once for all tests: compiling their programs takes most of
// the time.
type nights struct {
	mu   sync.Mutex
	dir  string
	made map[demo.NightOptions]string
}

// made are the nights of this test binary; TestMain removes them.
var made = &nights{made: map[demo.NightOptions]string{}}

// get returns the file of a night, whose content has one date for all.
func (n *nights) get(version, family string) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := demo.NightOptions{Version: version, Family: family}
	if path := n.made[key]; path != "" {
		return path, nil
	}
	if n.dir == "" {
		dir, err := os.MkdirTemp("", "rocm-nightly-nights-")
		if err != nil {
			return "", err
		}
		n.dir = dir
	}
	o := key
	o.Date = time.Date(2026, 9, 30, 0, 0, 0, 0, time.UTC)
	path, err := demo.Night(context.Background(), n.dir, o)
	if err == nil {
		n.made[key] = path
	}
	return path, err
}

func (n *nights) remove() error { return os.RemoveAll(n.dir) }

// publishNight puts a night into dir, as published so many days ago: a copy by one
// rename, since tests change theirs.
func publishNight(t *testing.T, dir, version, family string, daysAgo int) string {
	t.Helper()
	from, err := made.get(version, family)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, filepath.Base(from))
	hidden := filepath.Join(dir, ".night")
	if err := os.WriteFile(hidden, data, 0o644); err != nil {
		t.Fatal(err)
	}
	when := time.Now().AddDate(0, 0, -daysAgo)
	if err := os.Chtimes(hidden, when, when); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(hidden, path); err != nil {
		t.Fatal(err)
	}
	return path
}
