package unpack

import (
	"fmt"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"
)

// chtimes sets both times of an open file.
func chtimes(f *os.File, t time.Time) error {
	ts := unix.NsecToTimeval(t.UnixNano())
	if err := unix.Futimes(int(f.Fd()), []unix.Timeval{ts, ts}); err != nil {
		return fmt.Errorf("set times: %w", err)
	}
	return nil
}

// lutimes sets both times of a symlink itself. Its directory is opened through
// root, so that no other link is followed on the way.
func lutimes(root *os.Root, name string, unixTime int64) error {
	dir, err := root.Open(path.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	ts := unix.NsecToTimespec(time.Unix(unixTime, 0).UnixNano())
	if err := unix.UtimesNanoAt(int(dir.Fd()), path.Base(name), []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("set times: %w", err)
	}
	return nil
}
