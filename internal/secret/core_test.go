package secret

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// coreChild is set for the process that dumps core, to how it is to be kept
// from it.
const coreChild = "SECRET_TEST_CORE"

// needle is put together at run time, so that it is not in the program's text.
func needle() string { return strings.Repeat("n33dle", 3) + "-end" }

func TestMain(m *testing.M) {
	if how := os.Getenv(coreChild); how != "" {
		dump(how)
		return
	}
	if how := os.Getenv(shieldChild); how != "" {
		beLookedAt(how)
		return
	}
	os.Exit(m.Run())
}

// dump dies of SIGQUIT with a secret in memory.
func dump(how string) {
	if how != "open" {
		if err := KeepOutOfCores(); err != nil {
			os.Stderr.WriteString(err.Error())
			return
		}
	}
	if how == "unlimited" { // what a core that is piped to a program comes to
		raiseCore()
	}
	if how == "child" { // a child inherits both
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), coreChild+"=open")
		_ = cmd.Run()
		return
	}
	s := New(needle())
	defer runtime.KeepAlive(s)
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGABRT)
	select {} // until the signal is there
}

func raiseCore() {
	unlimited := ^uint64(0)
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{Cur: unlimited, Max: unlimited})
}

// coreOf runs the child and returns the core that it left, nil if none.
func coreOf(t *testing.T, how string) []byte {
	t.Helper()
	dir := t.TempDir()
	// The shell raises the limit for its child alone.
	cmd := exec.Command("sh", "-c", `ulimit -c unlimited 2>/dev/null; exec "$0"`, os.Args[0])
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), coreChild+"="+how, "GOTRACEBACK=crash")
	out, _ := cmd.CombinedOutput()
	if bytes.Contains(out, []byte("keep secrets out of cores")) {
		t.Fatalf("%s", out)
	}
	found, err := filepath.Glob(filepath.Join(dir, "*core*"))
	if err != nil || len(found) == 0 {
		return nil
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestKeepOutOfCores really dumps core, with and without.
func TestKeepOutOfCores(t *testing.T) {
	pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	if err != nil || bytes.HasPrefix(pattern, []byte("|")) || bytes.HasPrefix(pattern, []byte("/")) {
		t.Skipf("cores do not land in the working directory here: core_pattern is %q", pattern)
	}
	if !bytes.Contains(coreOf(t, "open"), []byte(needle())) {
		t.Skip("the machine writes no cores, even of those who want them")
	}
	for _, how := range []string{"kept", "child"} {
		if core := coreOf(t, how); core != nil {
			t.Errorf("%s: there is a core of %d bytes", how, len(core))
		}
	}
	if core := coreOf(t, "unlimited"); bytes.Contains(core, []byte(needle())) {
		t.Errorf("unlimited: the secret is in the core of %d bytes", len(core))
	}
}
