package cage

import "os"

// marker is argv[0] of a process that is the inside of a cage.
const marker = "rocm-nightly-cage"

// The two processes of an inside. They look like flags that nobody has, so that
// a program which does not call Main fails and does not do its job once more.
const (
	asGuard   = "-cage-guard"
	asProgram = "-cage-program"
)

// Main must be called first in main and in TestMain. In a process that Run
// started as the inside of a cage it does all that there is to do and returns
// the exit code and true: the caller exits with it and does nothing else. In
// any other it returns false at once.
func Main() (code int, inside bool) {
	if len(os.Args) != 2 || os.Args[0] != marker {
		return 0, false
	}
	switch os.Args[1] {
	case asGuard:
		return guard(), true
	case asProgram:
		return enter(), true
	}
	return 2, true
}
