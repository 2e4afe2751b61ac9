package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestWhoOwnsIsTheService: the user of a state directory is told by who owns it, by a
// link too, and not by what is no directory or is not there.
func TestWhoOwnsIsTheService(t *testing.T) {
	dir := t.TempDir()
	link, file := filepath.Join(dir, "link"), filepath.Join(dir, "file")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	me := os.Getuid()
	for _, c := range []struct {
		path string
		uid  int
		want bool
	}{
		{dir, me, true}, {link, me, true}, {dir, me + 1, false}, {file, me, false}, {filepath.Join(dir, "absent"), me, false},
	} {
		if got := owns(c.uid, c.path); got != c.want {
			t.Errorf("owns(%d, %s) = %v", c.uid, c.path, got)
		}
	}
}
