package unpack

import (
	"fmt"
	"os"
	"path"
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
func chtimes(f *os.File, unixTime int64) error {
	// The way of futimens(3) before utimensat knew AT_EMPTY_PATH (Linux 5.8).
	return utimes(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(int(f.Fd())), unixTime, 0)
}

// lutimes sets both times of a symlink itself. Its directory is opened through
// root, so that no other link is followed on the way.
func lutimes(root *os.Root, name string, unixTime int64) error {
	dir, err := root.Open(path.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	return utimes(int(dir.Fd()), path.Base(name), unixTime, unix.AT_SYMLINK_NOFOLLOW)
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
