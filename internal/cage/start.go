package cage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// grace is how long the guard has, after it was told to, to kill everything.
const grace = 10 * time.Second

// guardEnv is the environment of the guard, not of the program. A binary that
// was built with the race detector, as those of tests are, would otherwise wait a
// second before it ends.
var guardEnv = []string{"GORACE=atexit_sleep_ms=0"}

// stepError says which step of making a cage failed and what would help.
type stepError struct {
	Step  string
	Errno syscall.Errno `json:",omitempty"`
	Text  string        `json:",omitempty"` // where there is no errno
	Hint  string        `json:",omitempty"`
}

func (e *stepError) Error() string {
	text := e.Step + ": " + e.Text
	if e.Errno != 0 {
		text = e.Step + ": " + e.Errno.Error()
	}
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

// step makes a stepError of err.
func step(err error, hint, format string, args ...any) *stepError {
	e := &stepError{Step: fmt.Sprintf(format, args...), Hint: hint}
	if !errors.As(err, &e.Errno) {
		e.Text = err.Error()
	}
	return e
}

// report is what the guard says at the end, the last of its lines.
type report struct {
	Started  bool          `json:",omitempty"` // a line of its own, once the program runs
	Failed   *stepError    `json:",omitempty"` // nothing was run
	NoStart  syscall.Errno `json:",omitempty"` // the program could not be executed
	Ended    bool          `json:",omitempty"`
	Status   uint32        `json:",omitempty"` // as wait4 has it
	TimedOut bool          `json:",omitempty"`
	Exceeded string        `json:",omitempty"`
	Stopped  bool          `json:",omitempty"` // we were told to stop
	Duration time.Duration `json:",omitempty"`
}

// run makes the best cage there is.
func (s *spec) run(ctx context.Context) (*Result, error) {
	if err := s.become(); err != nil {
		return nil, err
	}
	if s.Scratch != "" && s.User != nil {
		if err := give(s.Scratch, s.User); err != nil {
			return nil, err
		}
	}
	s.Limits.Others = threadsOf(s.uid())
	var reasons []string
	for _, kind := range []string{Namespaces, Landlock} {
		if s.only != "" && s.only != kind {
			continue
		}
		s.Kind = kind
		result, err := s.attempt(ctx)
		var failed *stepError
		if !errors.As(err, &failed) {
			return result, err
		}
		reasons = append(reasons, fmt.Sprintf("no cage by %s: %v", map[string]string{Namespaces: "namespaces", Landlock: "Landlock"}[kind], failed))
	}
	return nil, &NotRunError{Reason: strings.Join(reasons, "; ")}
}

// uid is whose processes the inside are.
func (s *spec) uid() int {
	if s.User != nil {
		return s.User.UID
	}
	return os.Geteuid()
}

// attempt makes a cage of one kind and runs the program in it. A stepError
// means that nothing was run.
func (s *spec) attempt(ctx context.Context) (*Result, error) {
	if s.Kind == Landlock && s.Scratch == "" {
		dir, err := MakeScratch("")
		if err != nil {
			return nil, err
		}
		defer RemoveScratch(dir) // the guard has done it, if there was one
		s.Private = dir
		if s.User != nil {
			if err := give(dir, s.User); err != nil {
				return nil, err
			}
		}
	}
	told, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("cage: write the order: %w", err)
	}
	guardControl, control, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cage: make a pipe: %w", err)
	}
	defer control.Close()
	defer guardControl.Close()
	guardStatus, status, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cage: make a pipe: %w", err)
	}
	defer status.Close()
	defer guardStatus.Close()

	// The guard is told of our death by the death of the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// The guard keeps the time; that is for the case that it cannot.
	limit, cancel := context.WithTimeout(ctx, min(s.Limits.Timeout, math.MaxInt64/2)+2*grace)
	defer cancel()
	stdout, stderr := &capped{max: s.maxOutput}, &capped{max: s.maxOutput}
	cmd := exec.CommandContext(limit, "/proc/self/exe")
	cmd.Args, cmd.Env, cmd.Dir = []string{marker, asGuard}, guardEnv, "/"
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if len(s.stdin) > 0 {
		cmd.Stdin = bytes.NewReader(s.stdin)
	}
	cmd.ExtraFiles = []*os.File{guardControl, status}
	cmd.SysProcAttr = s.attributes()
	cmd.Cancel = control.Close // the guard then ends it all
	cmd.WaitDelay = grace
	if err := cmd.Start(); err != nil {
		return nil, s.startFailed(err)
	}
	guardControl.Close()
	status.Close()
	go control.Write(told) // a guard that does not read ends, and the write with it

	said := make(chan report, 1)
	go func() { said <- read(guardStatus) }()
	waited := cmd.Wait()
	if errors.Is(waited, exec.ErrWaitDelay) {
		guardStatus.Close()
	}
	r := <-said
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.result(r, waited, stdout, stderr)
}

// result reads the guard's report.
func (s *spec) result(r report, waited error, stdout, stderr *capped) (*Result, error) {
	switch {
	case r.Failed != nil:
		return nil, r.Failed
	case r.NoStart != 0:
		return nil, &StartError{Path: s.Path, Err: r.NoStart}
	case !r.Ended && !r.Started:
		hint := "cage.Main must come first in main and in TestMain"
		if dead := (*exec.ExitError)(nil); errors.As(waited, &dead) && dead.Sys().(syscall.WaitStatus).Signal() == unix.SIGSYS {
			hint = hintFilter
		}
		return nil, &stepError{Step: "set up the inside", Text: strings.TrimSpace(orEnded(waited).Error() + " " + firstLine(stderr.kept)), Hint: hint}
	case !r.Ended:
		return nil, fmt.Errorf("cage: the guard ended before the program: %w", orEnded(waited))
	}
	res := &Result{
		ExitCode: -1, TimedOut: r.TimedOut || r.Stopped, Exceeded: r.Exceeded, Duration: r.Duration, Kind: s.Kind,
		Stdout: stdout.kept, Stderr: stderr.kept, Dropped: stdout.dropped + stderr.dropped,
	}
	switch status := syscall.WaitStatus(r.Status); {
	case status.Signaled():
		res.Signal = unix.SignalName(status.Signal())
	case status.Exited():
		res.ExitCode = status.ExitStatus()
	}
	return res, nil
}

func orEnded(err error) error {
	if err == nil {
		return errors.New("it ended without a word")
	}
	return err
}

func firstLine(b []byte) string {
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}

// attributes are those with which the guard starts.
func (s *spec) attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true}
	switch {
	case s.Kind == Landlock && s.User != nil:
		groups := make([]uint32, len(s.User.Groups))
		for i, g := range s.User.Groups {
			groups[i] = uint32(g)
		}
		a.Credential = &syscall.Credential{Uid: uint32(s.User.UID), Gid: uint32(s.User.GID), Groups: groups}
	case s.Kind == Namespaces:
		a.Cloneflags = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
		if s.User == nil {
			uid, gid := os.Geteuid(), os.Getegid()
			a.Cloneflags |= unix.CLONE_NEWUSER
			a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
			a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
			a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP}
		}
	}
	return a
}

// startFailed says what the kernel's refusal of a guard means.
func (s *spec) startFailed(err error) error {
	hint := ""
	switch {
	case errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EUSERS):
		hint = "user.max_user_namespaces or another limit of /proc/sys/user forbids it"
	case s.Kind == Landlock && s.User != nil && errors.Is(err, unix.EPERM):
		hint = "root may not become another user here: in a systemd unit CapabilityBoundingSet= needs CAP_SETUID and CAP_SETGID"
	case s.Kind == Namespaces && errors.Is(err, unix.EPERM):
		hint = "a container, a chroot, kernel.unprivileged_userns_clone or a systemd unit's RestrictNamespaces= forbids it"
	}
	return step(err, hint, "start the inside")
}

// read takes the guard's lines; the last one counts.
func read(from io.Reader) report {
	var last report
	for dec := json.NewDecoder(io.LimitReader(from, 64<<10)); ; {
		var r report
		if dec.Decode(&r) != nil {
			return last
		}
		r.Started = r.Started || last.Started
		last = r
	}
}

// capped keeps the first max bytes and counts the rest.
type capped struct {
	max     int
	kept    []byte
	dropped int64
}

func (c *capped) Write(p []byte) (int, error) {
	n := min(len(p), c.max-len(c.kept))
	c.kept = append(c.kept, p[:n]...)
	c.dropped += int64(len(p) - n)
	return len(p), nil
}
