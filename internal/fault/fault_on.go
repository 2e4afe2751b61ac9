//go:build faults

package fault

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Enabled says whether points can be armed.
const Enabled = true

// variable arms one point of the process.
const variable = "ROCM_NIGHTLY_FAULT"

// trace in place of a name has every passage of every point said.
const trace = "trace"

// errnos are the kinds that are errors of a system call.
var errnos = map[string]syscall.Errno{
	"EIO": syscall.EIO, "ENOSPC": syscall.ENOSPC, "EDQUOT": syscall.EDQUOT, "EROFS": syscall.EROFS, "EINTR": syscall.EINTR,
}

// armed is what the environment says, and how often the point is still to be passed.
var armed = sync.OnceValue(func() *fuse { return parse(os.Getenv(variable)) })

type fuse struct {
	name, kind string

	mu   sync.Mutex
	left int
}

// parse reads NAME[#N]:KIND.
func parse(text string) *fuse {
	name, kind, _ := strings.Cut(text, ":")
	name, count, numbered := strings.Cut(name, "#")
	f := &fuse{name: name, kind: kind, left: 1}
	if n, err := strconv.Atoi(count); numbered && err == nil {
		f.left = n
	}
	return f
}

// hit returns the kind if the point is to fail at this passage, "" otherwise.
func (f *fuse) hit(name string) string {
	if f.name == trace {
		fmt.Fprintf(os.Stderr, "fault point %s: passed\n", name)
	}
	if f.name != name {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left--
	if f.left != 0 {
		return ""
	}
	fmt.Fprintf(os.Stderr, "fault point %s: %s\n", name, f.kind)
	return f.kind
}

// Point is a step that fails if it is armed. EINTR is for who makes bare system
// calls: package os repeats them itself.
func Point(name string) error {
	if kind := armed().hit(name); kind != "EINTR" {
		return fail(name, kind)
	}
	return nil
}

// Do is Point, and do where that did not fail.
func Do(name string, do func() error) error {
	if err := Point(name); err != nil {
		return err
	}
	return do()
}

// Call is a system call that fails if it is armed.
func Call(name string) error { return fail(name, armed().hit(name)) }

// Write writes b to w; if the point is armed, half of it alone, but for short,
// where the other half follows, as package os has it follow.
func Write(name string, w io.Writer, b []byte) (int, error) {
	kind := armed().hit(name)
	if kind == "" {
		return w.Write(b)
	}
	n, err := w.Write(b[:len(b)/2])
	if err != nil {
		return n, err
	}
	if kind != "short" && kind != "EINTR" {
		return n, fail(name, kind)
	}
	m, err := w.Write(b[len(b)/2:])
	return n + m, err
}

// fail makes kind happen.
func fail(name, kind string) error {
	if kind == "exit" {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // it is delivered in a moment
	}
	if errno, ok := errnos[kind]; ok {
		return fmt.Errorf("fault point %s: %w", name, errno)
	}
	return nil
}
