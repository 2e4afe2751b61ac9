package e2e

import (
	"os/exec"
	"testing"
)

// interrupted are the calls that a signal cuts short on some file system: most
// local ones never do, those over the network and in user space may. symlinkat,
// linkat and renameat are not here: os.Root does not repeat them, and no file
// system that we know returns that for them.
var interrupted = []string{"openat", "mkdirat", "fsync", "fdatasync", "syncfs", "flock", "renameat2", "unlinkat", "ftruncate", "write", "pwrite64"}

// TestPromiseASignalIsNoError has system calls return EINTR, every second of each
// kind: an update succeeds and ends as one that nobody disturbed.
func TestPromiseASignalIsNoError(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed (Debian package strace)")
	}
	a := newAxe(t, 2)
	a.install(t, 0)
	before := a.keep(t, "before")
	a.install(t, 1)
	want := a.end(t)
	for _, name := range interrupted {
		a.restore(t, before)
		r := a.injected(t, strace, name, "error=EINTR:when=1+2", "update", "--no-bump")
		if got := a.end(t); r.code != 0 || !got.equal(want) || len(a.debris(t)) > 0 {
			t.Errorf("%s: exit %d, %+v, want %+v, left %v\n%s", name, r.code, got, want, a.debris(t), r.stderr)
		}
	}
}

// injected runs the program with a failing system call.
func (a *axe) injected(t *testing.T, strace, name, how string, args ...string) result {
	t.Helper()
	cmd := a.command(t.Context(), nil, args...)
	cmd.Args = append([]string{"strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + name, "-e", "inject=" + name + ":" + how, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = strace
	out, _ := cmd.CombinedOutput()
	return result{cmd.ProcessState.ExitCode(), "", string(out)}
}
