package cage

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// selfPath is where the guard finds its own program in a root of its own.
const selfPath = "/.rocm-nightly"

// self is the program that the guard starts once more.
func (s *spec) self() string {
	if s.Kind == Namespaces {
		return selfPath
	}
	return "/proc/self/exe"
}

// showSelf puts our own program on a read-only mount, to be started from there.
// As /proc/self/exe it would be on the host's mount, which a user may write to,
// and a process that is still us when it executes what it was told to could be
// made to hand that on ("#!/proc/self/exe").
func (s *spec) showSelf() error {
	path, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	var is, found unix.Stat_t
	if err := unix.Stat("/proc/self/exe", &is); err != nil {
		return err
	}
	fd, err := walk(host, path)
	if err != nil {
		return copySelf() // it is in a directory that we cannot enter
	}
	defer unix.Close(fd)
	if unix.Fstat(fd, &found) != nil || is.Dev != found.Dev || is.Ino != found.Ino {
		return copySelf() // it was replaced while it runs
	}
	if err := s.mountPoint(selfPath, false); err != nil {
		return err
	}
	if err := unix.Mount(descriptor(fd), selfPath, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	return s.restrict(selfPath, unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV)
}

// copySelf copies our own program into the new root, which becomes read-only.
func copySelf() error {
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(selfPath, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(to, from); err != nil {
		to.Close()
		return err
	}
	return to.Close()
}
