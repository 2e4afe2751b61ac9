package secret

import (
	"fmt"
	"os"
	"syscall"
)

// coreFilter says which memory the kernel writes into the core of a process and
// of its children: see core(5).
const coreFilter = "/proc/self/coredump_filter"

// KeepOutOfCores sees to it that no secret lands in a core, of this process or
// of what it starts from now on: their cores are limited to no bytes, and hold
// no memory even where the kernel pipes them to a program, which has no such
// limit. The limit cannot be raised again without root.
//
// Call it before a secret is read. An error leaves things safer than they were,
// but not safe.
func KeepOutOfCores() error {
	limitErr := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	filterErr := os.WriteFile(coreFilter, []byte("0"), 0)
	// A machine without /proc, or a kernel built without cores, writes none.
	if os.IsNotExist(filterErr) {
		filterErr = nil
	}
	if limitErr != nil {
		return fmt.Errorf("keep secrets out of cores: limit their size to nothing: %w", limitErr)
	}
	if filterErr != nil {
		return fmt.Errorf("keep secrets out of cores: leave memory out of them: %w", filterErr)
	}
	return nil
}
