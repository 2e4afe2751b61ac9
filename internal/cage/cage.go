package cage

import (
	"context"
	"fmt"
	"time"
)

// The kinds of cage, as Result.Kind and Probe name them.
const (
	Namespaces = "namespaces"
	Landlock   = "landlock"
)

// What a Command is bounded by where it does not say otherwise.
const (
	DefaultTimeout     = time.Minute
	DefaultMaxOutput   = 64 << 10
	DefaultMemory      = 4 << 30
	DefaultProcesses   = 256 // and 8 for each processor
	DefaultFileSize    = 2 << 30
	DefaultScratchSize = 1 << 30
)

// Command is one program and all that it may see and use.
type Command struct {
	Path string   // absolute
	Args []string // without the program's name, which is Path
	// Env is the environment, NAME=value, and there is no other: HOME and TMPDIR
	// are the scratch directory, PATH is /usr/bin:/bin and LANG is C where Env
	// does not name them.
	Env []string
	Dir string // the working directory; "": the scratch directory

	// ReadOnly lists directories that can be read and executed beside the
	// system's own, each under the path given: symlinks on the way are there too.
	// The tree is one. What would let in a whole system (/, /home, /run) is
	// refused.
	ReadOnly []string
	// Devices lists device nodes and directories of them (/dev/kfd, /dev/dri) that
	// can be opened. What sysfs says of GPUs can be read when there is one. One that
	// this machine does not have is an error.
	Devices []string
	// Scratch is a directory that MakeScratch made, writable inside and kept
	// afterwards, for what one run leaves to the next. As root it is given to the
	// user of the cage. What is in it afterwards is as trusted as the program was:
	// it may be full of links, so that files in it are opened by os.Root or not at
	// all. RemoveScratch removes it. "": a private one that is gone afterwards.
	Scratch string

	Stdin     []byte
	MaxOutput int // bytes kept of stdout and stderr, of each; 0: DefaultMaxOutput

	Timeout time.Duration // 0: DefaultTimeout
	// Memory bounds what all processes together use, in bytes, looked at many
	// times a second, and at once what each can ask for (RLIMIT_DATA); 0:
	// DefaultMemory. What each has reserved is not bounded: GPU runtimes reserve
	// address space by the terabyte.
	Memory int64
	// SparseMemory leaves out the bound per process, for programs that map far
	// more writable memory than they use: those with AddressSanitizer. It is
	// implied by Devices.
	SparseMemory bool
	Processes    int   // processes and threads at a time; 0: DefaultProcesses
	FileSize     int64 // bytes of one file; 0: DefaultFileSize
	ScratchSize  int64 // bytes in the scratch directory and /tmp; 0: DefaultScratchSize

	// User is whom to become when started as root; nil: DefaultUser. It is not
	// looked at otherwise: a cage made by a user is that user's.
	User *User

	// Only makes one kind of cage or none. "": namespaces, else landlock.
	Only string

	test hooks
}

// hooks is what only this package's tests set.
type hooks struct {
	ABI     int  // the newest Landlock ABI to know of; 0: the kernel's
	Classic bool // mount without mount_setattr, as before Linux 5.12
	NoWall  bool // no seccomp filter: what namespaces keep out by themselves
	Probe   bool // set up everything, then run nothing
}

// Result is what became of a program that was started.
type Result struct {
	ExitCode int    // -1 when it was ended by a signal
	Signal   string // the signal's name, such as SIGSEGV; "" when it exited
	TimedOut bool   // Timeout passed; everything was killed
	// Exceeded is the bound that everything was killed for: "memory",
	// "processes" or "scratch"; "" when there was none.
	Exceeded       string
	Stdout, Stderr []byte // the first MaxOutput bytes of each
	Dropped        int64  // bytes of output beyond that
	Duration       time.Duration
	Kind           string // Namespaces or Landlock
}

// NotRunError says that nothing was run, because there was no cage to run it
// in, and what would change that.
type NotRunError struct{ Reason string }

func (e *NotRunError) Error() string { return "not run: " + e.Reason }

// StartError says that the cage was there and the program could not be
// started: it does not exist, is not executable, or has an interpreter that
// does not exist.
type StartError struct {
	Path string
	Err  error // a syscall.Errno
}

func (e *StartError) Error() string { return fmt.Sprintf("start %s: %v", e.Path, e.Err) }
func (e *StartError) Unwrap() error { return e.Err }

// Run runs c in a cage and waits for its end. A program that fails, is killed
// or runs out of time is a Result; a StartError is one that did not start. Where
// no cage can be made the error is a NotRunError and nothing of c was run. When
// ctx ends everything is killed and the error is that of ctx.
func Run(ctx context.Context, c Command) (*Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	spec, err := c.spec()
	if err != nil {
		return nil, err
	}
	return spec.run(ctx)
}

// Probe makes a cage, runs nothing in it, and says of which kind it is. The
// error is a NotRunError with the reason when there is none.
func Probe(ctx context.Context) (kind string, err error) {
	r, err := Run(ctx, Command{Path: "/", test: hooks{Probe: true}})
	if err != nil {
		return "", err
	}
	return r.Kind, nil
}
