package cage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// driver is argv[0] of this test binary when it runs one Command for a test, as
// another user, with secrets around it.
const driver = "cage-driver"

const secret = "s3cr3t-0f-the-f0rge"

func TestMain(m *testing.M) {
	if code, inside := Main(); inside {
		os.Exit(code)
	}
	if os.Args[0] == driver || slices.Contains(os.Args, "as-driver") {
		os.Exit(drive())
	}
	os.Exit(m.Run())
}

// order is what the driver is told, answer what it says.
type order struct {
	Command Command
	Hooks   hooks
	Unit    string // a systemd unit's filter, without its caps: see confine
}

type answer struct {
	Result *Result
	NotRun string
	Start  string
	Err    string
}

func drive() int {
	var o order
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	o.Command.test = o.Hooks
	if err := confine(o.Unit); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var a answer
	var notRun *NotRunError
	var start *StartError
	r, err := Run(context.Background(), o.Command)
	switch {
	case errors.As(err, &notRun):
		a.NotRun = notRun.Reason
	case errors.As(err, &start):
		a.Start = start.Error()
	case err != nil:
		a.Err = err.Error()
	}
	a.Result = r
	json.NewEncoder(os.Stdout).Encode(a)
	return 0
}

// mode is one way in which a cage is made.
type mode struct {
	name string
	kind string
	user bool // by a user that is not root
	abi  int
	unit string   // what of a systemd unit is over the driver
	via  []string // the command that starts the driver
}

// uid is whose files and processes a test's are: those that the program could
// reach if nothing kept it.
func uid() int {
	if os.Geteuid() == 0 {
		return 65534
	}
	return os.Geteuid()
}

// modes lists every way that this user can try.
func modes() []mode {
	user := []mode{{name: "user/namespaces", kind: Namespaces, user: true}, {name: "user/landlock", kind: Landlock, user: true}}
	if os.Geteuid() != 0 {
		return user
	}
	return append([]mode{{name: "root/namespaces", kind: Namespaces}, {name: "root/landlock", kind: Landlock}}, user...)
}

// has asks the kernel, and not the code that is tested, whether it has what a
// mode needs. Where it has not, not run is the right answer and is tested.
func (m mode) has() bool {
	switch {
	case m.kind == Landlock:
		v, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
		return errno == 0 && v >= 3
	case m.user:
		return userNamespaces()
	}
	return rootNamespaces()
}

var rootNamespaces = sync.OnceValue(func() bool {
	return exec.Command("unshare", "-mpfn", "mount", "-t", "proc", "proc", "/proc").Run() == nil
})

var userNamespaces = sync.OnceValue(func() bool {
	cmd := exec.Command("unshare", "-Urmpfn", "mount", "-t", "proc", "proc", "/proc")
	asUser(cmd)
	return cmd.Run() == nil
})

func asUser(cmd *exec.Cmd) {
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid()), Gid: uint32(uid())}}
	}
}

// each runs f in every mode that there is; c.run is then Run in that mode.
func each(t *testing.T, f func(t *testing.T, m mode)) {
	for _, m := range modes() {
		t.Run(m.name, func(t *testing.T) {
			if !m.has() {
				a := m.answer(t, Command{Path: "/bin/true"}, hooks{})
				if a.NotRun == "" || a.Result != nil {
					t.Errorf("this kernel has no %s, and the answer is %+v", m.name, a)
				}
				return
			}
			f(t, m)
		})
	}
}

// run runs c in the mode's cage and wants it to have been run.
func (m mode) run(t *testing.T, c Command, h hooks) *Result {
	t.Helper()
	a := m.answer(t, c, h)
	if a.Result == nil {
		t.Fatalf("%s: no result: %+v", m.name, a)
	}
	if a.Result.Kind != m.kind {
		t.Fatalf("%s: it was a cage of %s", m.name, a.Result.Kind)
	}
	return a.Result
}

// answer has a driver run c: in its environment, and in a descriptor that
// nobody marked, it has a secret.
func (m mode) answer(t *testing.T, c Command, h hooks) answer {
	t.Helper()
	c.Only = m.kind
	if m.abi != 0 {
		h.ABI = m.abi
	}
	in, err := json.Marshal(order{c, h, m.unit})
	if err != nil {
		t.Fatal(err)
	}
	leaked := filepath.Join(t.TempDir(), "leaked")
	if err := os.WriteFile(leaked, []byte(secret), 0o644); err != nil {
		t.Fatal(err)
	}
	leak, err := os.Open(leaked)
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{driver}
	if len(m.via) > 0 {
		self, err := os.Executable()
		must(t, err)
		cmd = exec.Command(m.via[0], append(m.via[1:len(m.via):len(m.via)], self, "as-driver")...)
	}
	cmd.Env = []string{"TOKEN=" + secret, "TMPDIR=" + os.TempDir(), "GORACE=atexit_sleep_ms=0"}
	cmd.Stdin = bytes.NewReader(in)
	cmd.ExtraFiles = []*os.File{leak, leak, leak, leak, leak, leak, leak}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if m.user {
		asUser(cmd)
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: driver: %v: %s", m.name, err, stderr.String())
	}
	var a answer
	if err := json.Unmarshal(out, &a); err != nil {
		t.Fatal(err)
	}
	return a
}
