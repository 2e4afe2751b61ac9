package audit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestChangedMeanwhile puts pipes in the place of what was listed: whoever opens
// one for reading waits for a writer that never comes.
func TestChangedMeanwhile(t *testing.T) {
	dir := real(t, t.TempDir())
	write(t, filepath.Join(dir, "lib/libx.so.1"), "#!/bin/sh\n", 0o644)
	write(t, filepath.Join(dir, "bin/x"), "#!/bin/sh\n", 0o755)
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	tr := newTree(root, dir, nil)
	if err := tr.list(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"lib/libx.so.1", "bin"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error)
	go func() {
		err := tr.inspect(t.Context(), "lib", tr.in["lib"])
		_, _ = tr.readDir("bin")
		done <- err
	}()
	select {
	case err := <-done:
		if e := tr.entries["lib/libx.so.1"]; err != nil || e.err == nil {
			t.Errorf("inspect: %v, %v", err, e.err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("it waits for a pipe")
	}
}

// TestUnreadable audits as a user who may not read all of a tree: what was not
// seen is said once, and nothing is concluded from it.
func TestUnreadable(t *testing.T) {
	if os.Getuid() == 0 {
		asNobody(t) // root reads everything
		return
	}
	for name, extra := range map[string]string{
		rocm + "lib/liba.so.1.0": "", rocm + "bin": "", rocm + ".kpack": "", rocm + "share": "", rocm + "lib/llvm": "",
		rocm + "lib": "warning needed " + rocm + "bin/tool | liba.so.1",
	} {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			f := newFixture(t)
			chmod(f, name, 0)
			t.Cleanup(func() { chmod(f, name, 0o755) })
			o := f.options()
			o.Target = "gfx1151"
			for _, got := range brief(f.audit(o).Findings) {
				if got != "warning unreadable "+name && got != extra {
					t.Errorf("also found %s", got)
				}
			}
		})
	}
}

// asNobody runs the test once more, as a user without rights.
func asNobody(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	exe, tmp := filepath.Join(dir, "test"), filepath.Join(dir, "tmp")
	write(t, exe, string(self), 0o755)
	write(t, filepath.Join(tmp, "x"), "", 0o644)
	if err := os.Chmod(tmp, 0o777); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir, cmd.Env = "/", append(os.Environ(), "TMPDIR="+tmp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
}
