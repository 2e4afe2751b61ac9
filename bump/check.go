package bump

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rocm-nightly/rocm-nightly/bump/body"
	"github.com/rocm-nightly/rocm-nightly/bump/forge"
	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

const (
	maxTail     = 64 << 10 // bytes of a command's output that are kept
	maxTailLine = 40       // lines of it that a body shows
)

// CheckError says that a check command of the config failed, so that nothing
// was pushed.
type CheckError struct {
	Command string        // for people
	Tail    string        // the end of what it printed, without secrets
	Timeout time.Duration // which it ran into; 0 if it did not
	err     error
}

func (e *CheckError) Error() string {
	why := e.err.Error()
	if e.Timeout > 0 {
		why = fmt.Sprintf("it ran for longer than %s", e.Timeout)
	}
	last := strings.TrimSpace(e.Tail)
	if i := strings.LastIndexByte(last, '\n'); i >= 0 {
		last = last[i+1:]
	}
	if last != "" {
		why += ": " + oneLine(last)
	}
	return fmt.Sprintf("check %s: %s; nothing was pushed (run it in a checkout with the change: rocm-nightly bump --write)", e.Command, why)
}

// Unwrap returns how the command ended.
func (e *CheckError) Unwrap() error { return e.err }

// check runs the config's commands in the edited checkout, once a life.
func (l *life) check(ctx context.Context) error {
	if len(l.repo.Check) == 0 || l.checked || l.o.DryRun {
		return nil
	}
	l.event("check", fmt.Sprintf("run %d check commands", len(l.repo.Check)))
	dir, err := os.MkdirTemp(l.scratch, "check-*")
	if err != nil {
		return fmt.Errorf("make checkout for checks: %w", err)
	}
	tree, home := filepath.Join(dir, "checkout"), filepath.Join(dir, "home")
	if err := errors.Join(os.Mkdir(tree, 0o755), os.Mkdir(home, 0o700)); err != nil {
		return fmt.Errorf("make checkout for checks: %w", err)
	}
	if err := l.checkout(ctx, tree); err != nil {
		return err
	}
	if err := l.runChecks(ctx, tree, home); err != nil {
		return err
	}
	l.checked = true
	return removeAll(dir)
}

// runChecks runs the commands. They are of our user, and may run what the
// repository holds: while they do, the copy of the ssh key is not on the disk, and
// this process, whose environment may hold the token, cannot be looked into.
func (l *life) runChecks(ctx context.Context, tree, home string) error {
	back, err := hideKey(l.scratch)
	if err != nil {
		return fmt.Errorf("hide the ssh key from check commands: %w", err)
	}
	err = secret.Shield(func() error {
		for _, argv := range l.repo.Check {
			c, err := l.runCheck(ctx, argv, tree, home)
			l.checks = append(l.checks, c)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, back())
}

// checkout writes the base's tree with the change to dir. The objects come by
// git, even where commits are made without it.
func (l *life) checkout(ctx context.Context, dir string) error {
	from, is := l.up.(*gitPlace)
	if !is {
		if err := l.startGit(ctx); err != nil {
			return err
		}
		from = newGitPlace(l.git, l.remote, "check")
		if err := from.look(ctx, l.base); err != nil {
			return err
		}
		if from.seen[l.base] != l.baseAt.ID {
			return fmt.Errorf("check out %s: %w", l.base, forge.ErrMoved)
		}
	}
	tree, err := from.Tree(ctx, forge.NewCommit{Parent: l.baseAt.ID, Files: l.change.files})
	if err != nil {
		return err
	}
	return from.git.materialise(ctx, tree, dir)
}

func (l *life) runCheck(ctx context.Context, argv []string, dir, home string) (body.Check, error) {
	c := body.Check{Command: oneLine(strings.Join(argv, " "))}
	bin, err := l.program(argv[0], dir)
	if err != nil {
		return c, &CheckError{Command: c.Command, err: err}
	}
	limited, cancel := context.WithTimeout(ctx, l.repo.CheckTimeout)
	defer cancel()
	cmd := exec.CommandContext(limited, bin, argv[1:]...)
	cmd.Dir, cmd.Env = dir, l.checkEnv(home)
	tail := &tailBuffer{}
	cmd.Stdout, cmd.Stderr = tail, tail
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killDelay
	began := time.Now()
	err = cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it succeeded, and left something running that holds its output
	}
	if cmd.Process != nil {
		killLeftovers(cmd.Process.Pid, home)
	}
	c.Seconds = time.Since(began).Round(100 * time.Millisecond).Seconds()
	c.Tail = scrub(strings.ToValidUTF8(string(tail.text), "�"), l.secrets)
	if err == nil {
		c.Passed = true
		c.Tail = lastLines(c.Tail, maxTailLine)
		return c, nil
	}
	if ctx.Err() != nil {
		return c, fmt.Errorf("check %s: %w", c.Command, ctx.Err())
	}
	failure := &CheckError{Command: c.Command, Tail: c.Tail, err: err}
	if limited.Err() != nil {
		failure.Timeout = l.repo.CheckTimeout
	}
	return c, failure
}

// program finds a command: by its path, below the checkout if that is
// relative, or in PATH.
func (l *life) program(name, dir string) (string, error) {
	switch {
	case filepath.IsAbs(name):
		return name, nil
	case strings.Contains(name, "/"):
		return filepath.Join(dir, name), nil
	}
	bin, err := lookPath(l.o.Env("PATH"), name)
	if err != nil {
		return "", fmt.Errorf("find %s in PATH: %w", oneLine(name), err)
	}
	return bin, nil
}

// checkEnv is the whole environment of a check command: no token is in it.
func (l *life) checkEnv(home string) []string {
	s := summaryOf(l.repo.Name, l.change.edits, l.change.pins, "")
	env := []string{
		"PATH=" + l.o.Env("PATH"), "HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8",
		"ROCM_NIGHTLY_BUMP_NAME=" + l.repo.Name,
		"ROCM_NIGHTLY_BUMP_BASE=" + l.base,
		"ROCM_NIGHTLY_BUMP_OLD=" + s.Old,
		"ROCM_NIGHTLY_BUMP_NEW=" + s.New,
		"ROCM_NIGHTLY_BUMP_TARGETS=" + strings.Join(s.Targets, " "),
		"ROCM_NIGHTLY_BUMP_FILES=" + strings.Join(l.change.paths(), " "),
	}
	for i, kv := range env {
		env[i] = strings.ReplaceAll(kv, "\x00", "")
	}
	return env
}

// tailBuffer keeps the last maxTail bytes.
type tailBuffer struct{ text []byte }

func (b *tailBuffer) Write(p []byte) (int, error) {
	b.text = append(b.text, p...)
	if extra := len(b.text) - maxTail; extra > 0 {
		b.text = append(b.text[:0], b.text[extra:]...)
	}
	return len(p), nil
}

func lastLines(text string, n int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(len(all)-n, 0):], "\n")
}
