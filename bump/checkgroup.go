package bump

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// maxSweeps bounds how often what a check command left running is looked for:
// each look may find what was started since the one before.
const maxSweeps = 20

// killLeftovers ends what a check command left running. Its process group is
// gone by then; a session of its own (setsid, a daemon) takes a process out of
// that, and is known by the home in its environment, which no other command has.
func killLeftovers(group int, home string) {
	_ = syscall.Kill(-group, syscall.SIGKILL)
	for range maxSweeps {
		found := false
		for _, pid := range inEnvironment(home) {
			found = syscall.Kill(pid, syscall.SIGKILL) == nil || found
		}
		if !found {
			return
		}
	}
}

// inEnvironment lists the processes of this user that have HOME=home.
func inEnvironment(home string) []int {
	names, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil
	}
	var out []int
	for _, name := range names {
		// Those of other users cannot be read; one that has ended has none.
		text, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(append([]byte{0}, text...), []byte("\x00HOME="+home+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil && pid != os.Getpid() {
			out = append(out, pid)
		}
	}
	return out
}
