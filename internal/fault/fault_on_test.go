//go:build faults

package fault

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

func TestArmed(t *testing.T) {
	if os.Getenv(variable) != "" {
		_ = Point("here")
		_ = Point("here")
		return
	}
	for text, want := range map[string]bool{"here:exit": true, "here#2:exit": true, "here#3:exit": false, "there:exit": false} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestArmed$")
		cmd.Env = append(os.Environ(), variable+"="+text)
		out, _ := cmd.CombinedOutput()
		status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if !ok || status.Signaled() != want || bytes.Contains(out, []byte("fault point here: exit")) != want {
			t.Errorf("%s: %v, %s", text, cmd.ProcessState, out)
		}
	}
}

func TestKindsOfErrors(t *testing.T) {
	for kind, errno := range errnos {
		if err := fail("x", kind); !errors.Is(err, errno) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	f := parse("x#2:EIO")
	if f.hit("y") != "" || f.hit("x") != "" || f.hit("x") != "EIO" || f.hit("x") != "" {
		t.Error("it acts at its second passage, once")
	}
}
