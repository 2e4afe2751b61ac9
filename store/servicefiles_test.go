package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestServiceFiles(t *testing.T) {
	s := open(t)
	if _, err := s.ReadService(LooksFile); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read of none: %v", err)
	}
	if err := s.WriteService(LooksFile, []byte("{}")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("written where there is no store: %v", err)
	}
	if err := os.MkdirAll(s.Root(), 0o755); err != nil {
		t.Fatal(err)
	}
	old, young := filepath.Join(s.Root(), "."+LooksFile+"1"), filepath.Join(s.Root(), "."+LooksFile+"2")
	for _, path := range []string{old, young} {
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if at := time.Now().Add(-48 * time.Hour); os.Chtimes(old, at, at) != nil {
		t.Fatal("no times")
	}
	for name, want := range map[string]bool{LooksFile: true, DaemonFile: true, "../x": false, "ledger.jsonl": false, "": false} {
		err := s.WriteService(name, []byte("{}\n"))
		if b, rerr := s.ReadService(name); (err == nil) != want || (rerr == nil) != want || want && string(b) != "{}\n" {
			t.Errorf("%s: %v, %v, %q", name, err, rerr, b)
		}
	}
	if err := s.WriteService(BumpsFile, []byte(strings.Repeat("x", maxServiceLen+1))); err == nil {
		t.Error("it may be of any length")
	}
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the half of a dead process: %v", err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Errorf("the half of one that may live: %v", err)
	}
}
