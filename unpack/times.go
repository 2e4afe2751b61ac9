package unpack

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Times are kept in whole seconds, and within what every tool that reads them
// can write as a date of four digits. 0 is left out: in a manifest it means
// that no time is known.
const (
	firstTime = 1
	lastTime  = 7258118400 // 2200-01-01T00:00:00Z: nanoseconds in an int64 end in 2262
)

// clampTime is the time, in Unix seconds, that an entry of time t gets, in the
// result and on disk alike.
func clampTime(t time.Time) int64 { return min(max(t.Unix(), firstTime), lastTime) }

// chtimes sets both times of an open file.
func chtimes(fd int, unixTime int64) error {
	err := utimes(fd, "", unixTime, unix.AT_EMPTY_PATH)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		// The way of futimens(3) before Linux 5.8.
		err = utimes(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), unixTime, 0)
	}
	return err
}

// utimes goes round nanoseconds in 64 bits, which end in the year 2262.
func utimes(dirfd int, name string, unixTime int64, flags int) error {
	ts, err := unix.TimeToTimespec(time.Unix(unixTime, 0))
	if err == nil {
		err = unix.UtimesNanoAt(dirfd, name, []unix.Timespec{ts, ts}, flags)
	}
	if err != nil {
		return fmt.Errorf("set times: %w", err)
	}
	return nil
}
