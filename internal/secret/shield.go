package secret

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Shield runs do while no other process of this user can look into this one: its
// environment, its memory, what it has open (PR_SET_DUMPABLE of prctl(2), and
// "PTRACE ACCESS MODE CHECKING" of ptrace(2)). What do starts has no part in
// that, and root sees everything. Do not start anything in a user namespace of
// its own from it.
func Shield(do func() error) error {
	was, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	}
	if err != nil {
		return fmt.Errorf("keep this process from the sight of others: %w", err)
	}
	defer func() {
		if was == 1 { // 2 cannot be set, nor was it us who made it so
			_ = unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
		}
	}()
	return do()
}
