package store

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// other starts the test binary as another process in a role, and waits until
// it says that it is ready.
func other(t *testing.T, ctx context.Context, role, root string) (*exec.Cmd, io.WriteCloser) {
	t.Helper()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), "STORE_TEST_ROLE="+role, "STORE_TEST_ROOT="+root)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the other process said %q, %v", line, err)
	}
	return cmd, in
}

func TestTheSecondRunIsToldWhoIsFirst(t *testing.T) {
	s := open(t)
	cmd, in := other(t, t.Context(), "lock", s.Root())
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	var le *LockedError
	if _, err := s.LockRun(t.Context(), "prune"); !errors.As(err, &le) {
		t.Fatalf("%v", err)
	}
	if h := le.Holder; h.PID != cmd.Process.Pid || h.What != "update" || h.Host != host || time.Since(h.Since) > time.Minute || h.BootID != bootID() {
		t.Errorf("%+v", h)
	}
	if took := time.Since(begin); took > 100*time.Millisecond {
		t.Errorf("it took %v to say so", took)
	}
	if !strings.Contains(le.Error(), `"update", pid `) {
		t.Errorf("%v", le)
	}
	// It dies without a word, and its record stays behind.
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	_ = cmd.Wait() // an error: it was killed
	lock, err := s.LockRun(t.Context(), "prune")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.LockRun(t.Context(), "update"); !errors.As(err, &le) || le.Holder.PID != os.Getpid() || le.Holder.What != "prune" {
		t.Errorf("%v", err)
	}
	if err := errors.Join(lock.Release(), lock.Release()); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(s.Root(), runLock)); err != nil || len(b) != 0 {
		t.Errorf("record after release: %q, %v", b, err)
	}
	again, err := s.LockRun(t.Context(), "update")
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Release(); err != nil {
		t.Error(err)
	}
}

func TestADeadHoldersRecordIsNotBelieved(t *testing.T) {
	s := open(t)
	path := filepath.Join(s.Root(), runLock)
	if err := os.MkdirAll(s.Root(), 0o755); err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for name, h := range map[string]Holder{
		"dead process":  {PID: 1 << 30, Host: host, BootID: bootID()},
		"other boot":    {PID: os.Getpid(), Host: host, BootID: "before"},
		"other host":    {PID: os.Getpid(), Host: host + "x", BootID: bootID()},
		"live process":  {PID: os.Getpid(), Host: host, BootID: bootID()},
		"hostile":       {PID: -1, What: strings.Repeat("x", 100<<10)},
		"hostile group": {PID: 0, Host: host},
	} {
		b, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		lock, err := s.LockRun(t.Context(), "update")
		if err != nil {
			t.Errorf("%s: nobody holds the lock, yet: %v", name, err)
			continue
		}
		if err := lock.Release(); err != nil {
			t.Error(err)
		}
	}
	// Held by somebody who has not written who it is.
	fl := openLock(path)
	if ok, err := fl.TryLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	defer fl.Close()
	var le *LockedError
	if _, err := s.LockRun(t.Context(), "update"); !errors.As(err, &le) || !strings.Contains(err.Error(), "fuser") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.LockRun(ctx, "update"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestErrorsSayWhatToTry(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{lockHint(unix.ENOLCK), "--root"},
		{lockHint(&os.PathError{Op: "open", Err: unix.ENOTSUP}), "--root"},
		{lockHint(unix.EACCES), "owner"},
		{lockHint(unix.EROFS), "remount"},
		{&SlotError{Name: "x"}, "try: update"},
		{&SlotError{Have: []string{"a", "b"}}, "a, b"},
		{&GenerationError{Slot: "s", Name: "g", Have: []string{"a", "b"}}, "a, b"},
		{&LinkError{"/opt/rocm", "a directory is there", "move it away"}, "link /opt/rocm: a directory is there (move it away)"},
		{&ExistsError{"g"}, "installed: g"},
	} {
		if !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%q does not say %q", c.err, c.want)
		}
	}
	if err := lockHint(io.EOF); err != io.EOF {
		t.Errorf("%v", err)
	}
}

func TestAnotherUsersStore(t *testing.T) {
	s := open(t)
	sl := s.Slot("nightly", "gfx1151")
	install(t, sl, night(1), night(2))
	dir := t.TempDir()
	lock, err := s.LockRun(t.Context(), "update")
	if err := errors.Join(err, os.Chmod(filepath.Dir(s.Root()), 0o755), lock.Release(), os.Chmod(dir, 0o555)); err != nil {
		t.Fatal(err)
	}
	deny(t, s.Root())
	asNobody(t, func() {
		if g, err := sl.Current(); err != nil || g.Name != night(2) {
			t.Errorf("current: %+v, %v", g, err)
		}
		if gens, err := sl.Generations(); err != nil || len(gens) != 2 {
			t.Errorf("generations: %+v, %v", gens, err)
		}
		_, _, err := sl.Rollback(t.Context())
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "owner") {
			t.Errorf("rollback: %v", err)
		}
		if _, err := s.LockRun(t.Context(), "update"); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("lock: %v", err)
		}
		var le *LinkError
		if err := s.Link(filepath.Join(dir, "rocm"), sl); !errors.As(err, &le) && !errors.Is(err, fs.ErrPermission) {
			t.Errorf("link: %v", err)
		}
	})
	if a := active(t, sl); a != night(2) {
		t.Errorf("active: %s", a)
	}
}

// deny takes the right to write from dir and all below it, for whom other
// users' files are not writable anyway: without root there is no other user.
func deny(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.Type() == fs.ModeSymlink {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		return os.Chmod(p, fi.Mode().Perm()&^0o222)
	})
	if err != nil {
		t.Fatal(err)
	}
}
