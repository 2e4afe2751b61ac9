package secret

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// shieldChild says how this program is to be looked into.
const shieldChild = "SECRET_TEST_SHIELD"

// beLookedAt is the process that is looked into.
func beLookedAt(how string) {
	if how == "open" {
		look()
		return
	}
	if err := Shield(func() error { look(); return nil }); err != nil {
		os.Stdout.WriteString(err.Error())
	}
	os.Stdout.WriteString(" after: ")
	look()
}

// look starts a process that reads our environment.
func look() {
	cmd := exec.Command("sh", "-c", `tr '\0' '\n' </proc/$PPID/environ 2>&1`)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, _ := cmd.CombinedOutput()
	os.Stdout.Write(out)
}

// TestShield: a child of the same user sees the environment of a process, but not
// while it is shielded.
func TestShield(t *testing.T) {
	see := func(how string) string {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), shieldChild + "=" + how, "TOKEN=hunter2"}
		if os.Getuid() == 0 { // root sees everything
			dir, err := os.MkdirTemp("/tmp", "shield-*")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			if out, err := exec.Command("sh", "-c", `chmod 755 "$1" && cp "$2" "$1/test" && chmod 755 "$1/test"`, "sh", dir, self).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			cmd.Path, cmd.Dir = dir+"/test", dir
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	if got := see("open"); !strings.Contains(got, "TOKEN=hunter2") {
		t.Fatalf("nothing is seen of a process that hides nothing: %q", got)
	}
	during, after, _ := strings.Cut(see("shielded"), " after: ")
	if strings.Contains(during, "hunter2") || !strings.Contains(after, "hunter2") {
		t.Errorf("during %q, after %q", during, after)
	}
}
