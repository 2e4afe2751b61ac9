package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestPromiseNothingIsNamedBeforeItIsDurable records the system calls of
// updates, and holds their order against what a power cut may undo: a name that
// was not synced, and bytes of a file that was not.
func TestPromiseNothingIsNamedBeforeItIsDurable(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is not installed (Debian package strace)")
	}
	a := newAxe(t, 3)
	for n := range 3 { // the first, one that shares files, and one that prunes
		calls := a.trace(t, "update", "--no-bump", "--version", axeNight(n))
		wrong, seen := violations(a.root, calls)
		for _, w := range wrong {
			t.Errorf("%s: %s", axeNight(n), w)
		}
		for _, kind := range []string{"generation", "current", "state", "run", "spool", "segment"} {
			if seen[kind] == 0 {
				t.Errorf("%s: no %s got its name: nothing was tested", axeNight(n), kind)
			}
		}
		t.Logf("%d calls, final names %v", len(calls), seen)
	}
	for _, args := range [][]string{{"rollback"}, {"use", axeNight(2)}} {
		wrong, seen := violations(a.root, a.trace(t, args...))
		if len(wrong) > 0 || seen["current"] == 0 {
			t.Errorf("%v: %v, %v", args, wrong, seen)
		}
	}
	a.look(t, "traced")
}

// trace runs the program under strace and returns its calls.
func (a *axe) trace(t *testing.T, args ...string) (calls []*call) {
	t.Helper()
	dir, err := os.MkdirTemp(a.dir, "trace-")
	if err != nil {
		t.Fatal(err)
	}
	prefix := filepath.Join(dir, "t")
	cmd := a.command(t.Context(), nil, args...)
	cmd.Args = append([]string{"strace", "-ff", "-ttt", "-T", "-y", "-s", "300", "-e", "signal=none", "-e", "trace=" + traced, "-o", prefix, cmd.Path}, cmd.Args[1:]...)
	if cmd.Path, err = exec.LookPath("strace"); err != nil {
		t.Fatal(err)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	files, err := filepath.Glob(prefix + ".*")
	if err != nil || len(files) == 0 {
		t.Fatal("no trace: ", err)
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for sc := bufio.NewScanner(f); sc.Scan(); {
			if c := parseCall(sc.Text()); c != nil {
				calls = append(calls, c)
			}
		}
	}
	return calls
}
