package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNothingStraysIntoTheTop compares what is kept at the top of the tree with
// what belongs there: trials that are left lying about are easily committed.
func TestNothingStraysIntoTheTop(t *testing.T) {
	top, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(top, ".git")); err != nil {
		return // an archive of the sources holds what was put into it
	}
	// As root in a tree of somebody else's, git wants to be told that it may.
	out, err := exec.Command("git", "-c", "safe.directory="+top, "-C", top, "ls-files").Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	want := strings.Fields(`.ci .github .gitignore .shellcheckrc CHANGELOG.md CONTRIBUTING.md LICENSE Makefile README.md SECURITY.md audit bump cmd config.yaml
		docs fetch go.mod go.sum internal nix packaging patchelf publish repack scripts serve staticcheck.conf store systemd unpack update wrap`)
	seen := map[string]bool{}
	for _, path := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		name, _, _ := strings.Cut(path, "/")
		if !slices.Contains(want, name) && !seen[name] {
			t.Errorf("%s does not belong at the top of the tree", name)
		}
		seen[name] = true
	}
	if !seen["cmd"] {
		t.Error("git lists nothing")
	}
}
