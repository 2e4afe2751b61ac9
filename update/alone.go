package update

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/cage"
)

// maxHeard bounds what is kept of each stream of a command, in bytes.
const maxHeard = 64 << 10

// afterwards is how long what a command has left running, out of reach, may keep
// us waiting with its output open.
const afterwards = time.Second

// alone runs a program as this process, in a process group of its own that ends
// with it. What goes into a session of its own outlives it: no cage, no walls.
func alone(ctx context.Context, program string, args, env []string, dir string, limit time.Duration) (*cage.Result, error) {
	// The death signal is bound to the thread that starts the program.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	outs, err := newHearing()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(timed, program, args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = env, dir, outs.w[0], outs.w[1]
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
	began := time.Now()
	err = cmd.Start()
	if err != nil {
		outs.end()
		return nil, &cage.StartError{Path: program, Err: errors.Unwrap(err)}
	}
	// Before it is waited for, so that its number is nobody else's yet.
	err = ended(cmd.Process.Pid)
	kerr := killGroup(cmd.Process.Pid)
	werr := cmd.Wait()
	outs.end()
	if err = errors.Join(err, kerr); err != nil {
		return nil, fmt.Errorf("end the health command: %w", err)
	}
	err = werr
	res := &cage.Result{Kind: SandboxOff, Stdout: outs.said[0].last, Stderr: outs.said[1].last, Duration: time.Since(began)}
	res.TimedOut = ctx.Err() == nil && timed.Err() != nil
	var exit *exec.ExitError
	switch {
	case err == nil, res.TimedOut:
	case errors.As(err, &exit):
		res.ExitCode = exit.ExitCode()
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			res.Signal = ws.Signal().String()
		}
	default:
		return nil, err
	}
	return res, nil
}

func killGroup(pid int) error {
	err := syscall.Kill(-pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// ended waits for the end of a process, and leaves its number to it.
func ended(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// hearing reads two streams of a command: pipes of our own, so that what the
// command leaves running does not keep its end from being seen.
type hearing struct {
	r, w [2]*os.File
	said [2]heard
	done sync.WaitGroup
}

func newHearing() (*hearing, error) {
	h := &hearing{}
	for i := range h.r {
		var err error
		if h.r[i], h.w[i], err = os.Pipe(); err != nil {
			h.end()
			return nil, fmt.Errorf("hear the health command: %w", err)
		}
		h.done.Go(func() {
			_, _ = io.Copy(&h.said[i], h.r[i]) // its end, or that of our patience
		})
	}
	return h, nil
}

// end stops listening when everything was read, or soon.
func (h *hearing) end() {
	for i := range h.r {
		if h.r[i] != nil {
			_ = h.w[i].Close()
			_ = h.r[i].SetReadDeadline(time.Now().Add(afterwards))
		}
	}
	h.done.Wait()
	for _, r := range h.r {
		if r != nil {
			_ = r.Close()
		}
	}
}

// heard keeps the end of what is written to it.
type heard struct{ last []byte }

func (h *heard) Write(p []byte) (int, error) {
	h.last = append(h.last, p...)
	if over := len(h.last) - maxHeard; over > maxHeard {
		h.last = append(h.last[:0], h.last[over:]...)
	}
	return len(p), nil
}
