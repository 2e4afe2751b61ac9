package priority

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// The levels.
const (
	Normal = "normal" // as it was started
	Low    = "low"    // nice 10, the last of the best-effort disk priorities
	Idle   = "idle"   // nice 19, the disk when nobody else wants it
)

// level is what a level means to the kernel: see setpriority(2) and ioprio_set(2).
type level struct{ nice, ioprio int }

// The fields of an I/O priority, of linux/ioprio.h.
const (
	whoProcess      = 1
	classShift      = 13
	classBestEffort = 2
	classIdle       = 3
	lastOfClass     = 7
)

var levels = map[string]level{
	Low:  {10, classBestEffort<<classShift | lastOfClass},
	Idle: {19, classIdle << classShift},
}

// maxRounds bounds how often the threads are gone through: until there is none that
// was made meanwhile by one that had not been changed yet.
const maxRounds = 10

// Set gives every thread of this process a level; new threads have that of the one
// that makes them. Normal changes nothing. An error says what of it the kernel refused:
// the process goes on all the same.
func Set(name string) error {
	l, known := levels[name]
	if !known {
		if name == Normal || name == "" {
			return nil
		}
		return fmt.Errorf("set the priority: %q is not one of %s, %s and %s", name, Normal, Low, Idle)
	}
	done := map[int]bool{}
	for range maxRounds {
		tids, err := threads()
		if err != nil {
			return fmt.Errorf("set the priority: %w", err)
		}
		fresh := false
		for _, tid := range tids {
			if done[tid] {
				continue
			}
			done[tid], fresh = true, true
			if err := l.set(tid); err != nil && !errors.Is(err, unix.ESRCH) { // it has ended
				return fmt.Errorf("set the priority: thread %d: %w", tid, err)
			}
		}
		if !fresh {
			return nil
		}
	}
	return nil
}

// threads lists those of this process.
func threads() ([]int, error) {
	entries, err := fs.ReadDir(os.DirFS("/proc/self"), "task")
	if err != nil {
		return nil, err
	}
	var tids []int
	for _, e := range entries {
		tid, err := strconv.Atoi(e.Name())
		if err != nil {
			return nil, err
		}
		tids = append(tids, tid)
	}
	return tids, nil
}

func (l level) set(tid int) error {
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, tid)
	if err != nil {
		return err
	}
	if nice := 20 - raw; nice < l.nice { // the system call counts from 40 down to 1
		if err := unix.Setpriority(unix.PRIO_PROCESS, tid, l.nice); err != nil {
			return err
		}
	}
	now, err := ioprio(tid)
	if err != nil {
		return err
	}
	// Class 0 is none: as nice says. The higher the number, the later its turn.
	if now>>classShift != 0 && now >= l.ioprio {
		return nil
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOPRIO_SET, whoProcess, uintptr(tid), uintptr(l.ioprio)); errno != 0 {
		return errno
	}
	return nil
}

func ioprio(tid int) (int, error) {
	r, _, errno := unix.Syscall(unix.SYS_IOPRIO_GET, whoProcess, uintptr(tid), 0)
	if errno != 0 {
		return 0, errno
	}
	return int(r), nil
}
