package bump

import (
	"os"
	"path/filepath"
	"testing"
)

// What a killed run has left, a copy of an ssh key perhaps, goes with the next run;
// what a living one uses, and what is not ours, stays.
func TestScratchOfAKilledRunIsRemoved(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a [b] *")
	left, link := filepath.Join(dir, scratchName+"left"), filepath.Join(dir, scratchName+"link")
	outside := t.TempDir()
	for _, err := range []error{
		os.MkdirAll(filepath.Join(left, "check"), 0o700), os.WriteFile(filepath.Join(left, "ssh-key"), []byte("secret"), 0o600),
		os.Symlink(outside, link), os.Chmod(filepath.Join(left, "check"), 0o500),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	one, err := newScratch(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(left); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
	two, err := newScratch(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(one.path); err != nil {
		t.Errorf("what is in use is gone: %v", err)
	}
	if _, err := os.Stat(link); err != nil {
		t.Errorf("a link was followed: %v", err)
	}
	for _, s := range []*scratch{one, two} {
		if err := s.remove(); err != nil {
			t.Error(err)
		}
	}
	if all, _ := os.ReadDir(dir); len(all) != 1 {
		t.Errorf("left behind: %v", all)
	}
}
