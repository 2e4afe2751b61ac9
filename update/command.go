package update

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/audit/smoke"
	"github.com/rocm-nightly/rocm-nightly/internal/cage"
	"github.com/rocm-nightly/rocm-nightly/internal/environ"
	"github.com/rocm-nightly/rocm-nightly/internal/plain"
)

// The values of Health.Sandbox.
const (
	SandboxOn  = "on"  // in a cage, or not at all; the default
	SandboxOff = "off" // as this process, with its rights
)

// Health is the user's own check of a generation. The zero value has none.
type Health struct {
	Command []string      // the program, absolute or looked up in the prefix's bin and the system's, and its arguments
	Timeout time.Duration // of each of the two checks; 0: a minute
	Sandbox string        // SandboxOn ("" too) or SandboxOff
}

func (h Health) on() bool { return len(h.Command) > 0 }

func (h Health) timeout() time.Duration {
	if h.Timeout <= 0 {
		return time.Minute
	}
	return h.Timeout
}

// The phases of a check, as the command finds them in ROCM_NIGHTLY_PHASE.
const (
	phaseBefore = "before" // current still leads to what was active
	phaseAfter  = "after"
)

// The results of a check.
const (
	checkPassed = "passed"
	checkFailed = "failed"
	checkNotRun = "not-run" // nothing is known: there was no cage, say
)

// Checkup is one run of the health command.
type Checkup struct {
	Phase   string  `json:"phase"`            // before or after the switch
	Command string  `json:"command"`          // the program; its arguments are the config's business
	Prefix  string  `json:"prefix"`           // that was checked
	Status  string  `json:"status"`           // passed, failed or not-run
	Detail  string  `json:"detail,omitempty"` // why it did not pass
	Sandbox string  `json:"sandbox"`          // off, or the kind of cage; "" if nothing was run
	Seconds float64 `json:"seconds"`
	Output  string  `json:"output,omitempty"` // the end of what it wrote, stdout first

	noCage bool // it was not run for want of a cage
}

// subject is what is to be checked.
type subject struct {
	phase    string
	prefix   string // as the command sees it
	dir      string // where that really is
	version  string
	previous string // directory of what was active before; "" if nothing was
}

// maxCommand bounds a program that is copied into the cage, in bytes.
const maxCommand = 64 << 20

// systemPath is where commands are looked up behind the prefix's own.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// checkup runs the health command. An error is that of ctx, or that of a disk.
func (t *task) checkup(ctx context.Context, s subject) (*Checkup, error) {
	h := t.r.o.Health
	c := &Checkup{Phase: s.phase, Command: h.Command[0], Prefix: s.prefix}
	work, err := os.MkdirTemp("", "rocm-nightly-health-")
	if err != nil {
		return nil, fmt.Errorf("make room for the health command: %w", err)
	}
	defer func() {
		if err := os.RemoveAll(work); err != nil {
			t.r.o.Log.Warn("what the health command left could not be removed", "error", err)
		}
	}()
	if err := os.Chmod(work, 0o755); err != nil { // for the user of the cage
		return nil, fmt.Errorf("make room for the health command: %w", err)
	}
	program, err := h.program(s.prefix)
	if err != nil {
		c.Status, c.Detail = checkFailed, plain.Text(err.Error())
		return c, nil
	}
	var res *cage.Result
	if h.Sandbox == SandboxOff {
		res, err = alone(ctx, program, h.Command[1:], t.healthEnv(s, work), work, h.timeout())
	} else {
		res, err = t.caged(ctx, s, program, work)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	c.noCage = errorsAs[*cage.NotRunError](err)
	// That our own program cannot be started says nothing about the generation.
	var start *cage.StartError
	if errors.As(err, &start) && !within(program, s.prefix) {
		err = &cage.NotRunError{Reason: fmt.Sprintf("%v (is it there and executable, its interpreter too, and is %s mounted noexec?)", start, os.TempDir())}
	}
	c.judge(res, err, h.timeout())
	return c, nil
}

// program finds the command.
func (h Health) program(prefix string) (string, error) {
	name := h.Command[0]
	if filepath.IsAbs(name) {
		return name, nil
	}
	for _, dir := range append([]string{filepath.Join(prefix, "bin")}, strings.Split(systemPath, ":")...) {
		file := filepath.Join(dir, name)
		if fi, err := os.Stat(file); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("health.command: %s is neither in %s/bin nor in %s: name it with its whole path", name, prefix, systemPath)
}

// healthEnv is all that the command finds in its environment.
func (t *task) healthEnv(s subject, home string) []string {
	env := []string{"PATH=" + systemPath, "LANG=C.UTF-8"}
	if home != "" {
		env = append(env, "HOME="+home, "TMPDIR="+home)
	}
	if e, err := environ.Read(s.prefix); err == nil {
		env = e.At(s.prefix).Enter(env)
	} else { // made by an older version
		env[0] = "PATH=" + filepath.Join(s.prefix, "bin") + ":" + systemPath
		env = append(env, "ROCM_PATH="+s.prefix)
	}
	return append(env,
		"ROCM_NIGHTLY_PREFIX="+s.prefix, "ROCM_NIGHTLY_VERSION="+s.version, "ROCM_NIGHTLY_TARGET="+t.out.target,
		"ROCM_NIGHTLY_SLOT="+t.slot.Name(), "ROCM_NIGHTLY_PHASE="+s.phase, "ROCM_NIGHTLY_PREVIOUS="+s.previous)
}

// What a command on a GPU may use, as smoke's own checks there.
const gpuMemory, gpuProcesses = 16 << 30, 1024

// caged runs the command in a cage that sees the prefix, and nothing that is not
// everybody's. A program that lies elsewhere is copied to work.
func (t *task) caged(ctx context.Context, s subject, program, work string) (*cage.Result, error) {
	run := cage.Run
	if t.r.o.SmokeRunner != nil {
		run = t.r.o.SmokeRunner.Run
	}
	c := cage.Command{Args: t.r.o.Health.Command[1:], Timeout: t.r.o.Health.timeout(), ReadOnly: []string{s.dir}, Env: t.healthEnv(s, "")}
	if s.prefix != s.dir {
		c.ReadOnly = append(c.ReadOnly, s.prefix)
	}
	if s.previous != "" {
		c.ReadOnly = append(c.ReadOnly, s.previous)
	}
	if smoke.Usable() == nil {
		c.Devices, c.Memory, c.Processes = []string{"/dev/kfd"}, gpuMemory, gpuProcesses
		if _, err := os.Stat("/dev/dri"); err == nil {
			c.Devices = append(c.Devices, "/dev/dri")
		}
	}
	c.Path = program
	if !visible(program, s.prefix, s.dir) {
		var err error
		if c.Path, err = copied(program, work); err != nil {
			return nil, err
		}
		c.ReadOnly = append(c.ReadOnly, work)
	}
	return run(ctx, c)
}

// visible reports whether a cage has a file anyway.
func visible(file string, dirs ...string) bool {
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		real = file
	}
	for _, dir := range dirs { // by its own name: a wrapper must find its tree
		if within(file, dir) {
			return true
		}
	}
	for _, dir := range []string{"/usr", "/bin", "/sbin", "/nix/store", "/gnu/store"} {
		if within(real, dir) {
			return true
		}
	}
	return false
}

// within reports whether file is below dir; both are clean.
func within(file, dir string) bool { return strings.HasPrefix(file, dir+"/") }

// copied puts a program into dir: what lies beside it is nobody's business.
func copied(program, dir string) (to string, err error) {
	in, err := os.Open(program)
	if err != nil {
		return "", err
	}
	defer in.Close() // opened for reading
	fi, err := in.Stat()
	if err != nil {
		return "", err
	}
	if !fi.Mode().IsRegular() || fi.Mode()&0o111 == 0 {
		return "", &cage.StartError{Path: program, Err: fs.ErrPermission}
	}
	to = filepath.Join(dir, filepath.Base(program))
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o555)
	if err != nil {
		return "", err
	}
	n, err := io.Copy(out, io.LimitReader(in, maxCommand+1))
	if err == nil && n > maxCommand {
		err = fmt.Errorf("%s has more than %d bytes", program, maxCommand)
	}
	return to, errors.Join(err, out.Chmod(0o555), out.Close())
}

// judge says what became of the command.
func (c *Checkup) judge(res *cage.Result, err error, limit time.Duration) {
	var start *cage.StartError
	var not *cage.NotRunError
	switch {
	case errors.As(err, &start):
		c.Status, c.Detail = checkFailed, start.Error()
	case errors.As(err, &not):
		c.Status, c.Detail = checkNotRun, not.Reason
	case err != nil:
		c.Status, c.Detail = checkNotRun, err.Error()
	case res.TimedOut:
		c.Status, c.Detail = checkFailed, fmt.Sprintf("it was not done after %s and was killed", limit)
	case res.Exceeded != "":
		c.Status, c.Detail = checkFailed, "it was killed for its use of "+res.Exceeded
	case res.Signal != "":
		c.Status, c.Detail = checkFailed, "it was ended by "+res.Signal
	case res.ExitCode != 0:
		c.Status, c.Detail = checkFailed, fmt.Sprintf("exit status %d", res.ExitCode)
	default:
		c.Status = checkPassed
	}
	if res != nil {
		c.Sandbox, c.Seconds = res.Kind, float64(res.Duration.Milliseconds())/1000
		c.Output = ending(string(res.Stdout), string(res.Stderr))
	}
	c.Detail = plain.Text(c.Detail)
}

// Bounds of what is kept of the output: of each stream, and of a line in it.
const maxSaid, maxSaidLine = 8 << 10, 500

// ending is the end of what a command wrote, fit to be shown.
func ending(streams ...string) string {
	var lines []string
	for _, text := range streams {
		if cut := len(text) - maxSaid; cut > 0 {
			text = text[cut:]
		}
		for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
			lines = append(lines, plain.Cut(strings.ReplaceAll(strings.TrimRight(line, "\r\t "), "\t", "    "), maxSaidLine))
		}
	}
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return l == "" }), "\n")
}

// said is the result in one line: why, and the last thing that was written.
func (c *Checkup) said() string {
	text := c.Detail
	if i := strings.LastIndex(c.Output, "\n"); c.Output != "" {
		text += ": " + c.Output[i+1:]
	}
	return text
}
