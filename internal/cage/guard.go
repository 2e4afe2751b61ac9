package cage

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The guard's descriptors, and those of the process that becomes the program.
const (
	fdControl = 3 // the spec, then nothing until we are to stop
	fdStatus  = 4
)

// privateHome is the scratch directory where none was given, in a root of its
// own.
const privateHome = "/tmp/home"

// hintFilter is what helps when a filter kills instead of refusing.
const hintFilter = "a seccomp filter forbids it: a systemd unit wants landlock_create_ruleset, landlock_add_rule and landlock_restrict_self in SystemCallFilter=, and SystemCallErrorNumber=EPERM"

// guard is the first process of a cage: it sets up what is the same for all
// that runs inside, starts the program, watches over it and ends everything. It
// never runs a byte of what is untrusted. Its exit ends the process namespace.
func guard() int {
	// The program's death signal is bound to this thread.
	runtime.LockOSThread()
	// Where the program is the same user it can send us what it likes: as init we
	// are safe from all that has no handler, and all others end here. Handlers,
	// unlike signals that are ignored, are not handed on to the program.
	signal.Notify(make(chan os.Signal, 1))
	unix.Umask(0o022)
	closeOnExec()
	control, status := os.NewFile(fdControl, "control"), os.NewFile(fdStatus, "status")
	say := json.NewEncoder(status)
	var s spec
	if err := json.NewDecoder(control).Decode(&s); err != nil {
		return 1 // not started by Run
	}
	if failed := s.prepare(); failed != nil {
		say.Encode(report{Failed: failed})
		return 1
	}
	stop := make(chan struct{})
	go func() {
		io.Copy(io.Discard, control) // its end: whoever started us is gone or gave up
		close(stop)
	}()
	child, r := s.launch()
	if r == nil {
		say.Encode(report{Started: true})
		r = s.watch(child, stop)
	}
	if s.Kind == Landlock {
		sweep()
	}
	say.Encode(r)
	if s.Private != "" {
		RemoveScratch(s.Private) // whoever started us may not be there to do it
	}
	return 0
}

// prepare does what has to be done once.
func (s *spec) prepare() *stepError {
	if s.Kind == Namespaces {
		// With us goes everything, and we go with whoever started us.
		if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
			return step(err, "", "bind to the parent")
		}
		// /proc cannot be written any more when the program is there.
		goFirst()
	} else if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return step(err, "", "adopt orphans")
	}
	// Nobody traces us or reads our descriptors, though it be the same user.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return step(err, "", "forbid tracing")
	}
	if s.Kind == Namespaces {
		return s.mountAll()
	}
	return nil
}

// goFirst has the kernel choose us, and what we start, when memory runs out. More
// is always allowed.
func goFirst() { os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) }

// home is the scratch directory as the inside sees it.
func (s *spec) home() string {
	switch {
	case s.Scratch != "":
		return s.Scratch
	case s.Private != "":
		return s.Private
	}
	return privateHome
}

// child is the program's process, and all that becomes ours to wait for.
type child struct {
	pid    int
	status chan uint32   // of the program itself
	none   chan struct{} // closed when there is no process left but us
	since  time.Time
}

// launch starts the process that becomes the program and waits until it is.
func (s *spec) launch() (*child, *report) {
	fail := func(err error) (*child, *report) {
		return nil, &report{Failed: step(err, "", "start the program's process")}
	}
	specR, specW, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	defer specW.Close()
	wordR, wordW, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	defer wordR.Close()
	pid, err := syscall.ForkExec(s.self(), []string{marker, asProgram}, &syscall.ProcAttr{
		Dir:   "/",
		Env:   guardEnv,
		Files: []uintptr{0, 1, 2, specR.Fd(), wordW.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	specR.Close()
	wordW.Close()
	if err != nil {
		return fail(err)
	}
	c := &child{pid: pid, status: make(chan uint32, 1), none: make(chan struct{})}
	if err := json.NewEncoder(specW).Encode(s); err != nil {
		return fail(err)
	}
	specW.Close()
	said, err := io.ReadAll(io.LimitReader(wordR, 64<<10))
	if err != nil {
		return fail(err)
	}
	c.since = time.Now()
	go c.reap()
	return c, refused(said, c)
}

// word is what the program's process says when it does not become the program.
type word struct {
	Done    bool          `json:",omitempty"` // a Probe, and all was well
	Failed  *stepError    `json:",omitempty"`
	NoStart syscall.Errno `json:",omitempty"`
}

// ready comes before everything else that is said once nothing but execve is
// left to do. What dies without it died of the setting up.
const ready = "ready\n"

// refused reads what the program's process said; nil: it is the program now.
func refused(said []byte, c *child) *report {
	rest, wasReady := bytes.CutPrefix(said, []byte(ready))
	if len(rest) == 0 && wasReady {
		return nil
	}
	if len(rest) == 0 {
		failed := &stepError{Step: "set up the program's process", Text: "it died"}
		if syscall.WaitStatus(<-c.status).Signal() == unix.SIGSYS {
			failed.Text, failed.Hint = "killed by SIGSYS", hintFilter
		}
		return &report{Failed: failed}
	}
	var w word
	if err := json.Unmarshal(rest, &w); err != nil {
		return &report{Failed: step(err, "", "set up the program's process")}
	}
	return &report{Failed: w.Failed, NoStart: w.NoStart, Ended: w.Done}
}

// reap waits for every process that becomes our child.
func (c *child) reap() {
	defer close(c.none)
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return
		case pid == c.pid:
			c.status <- uint32(status)
		}
	}
}

// closeOnExec marks every descriptor but the three streams: whoever started
// rocm-nightly may have left some open.
func closeOnExec() {
	if unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		limit.Max = 1 << 16
	}
	for fd := 3; uint64(fd) < min(limit.Max, 1<<20); fd++ {
		unix.CloseOnExec(fd)
	}
}
