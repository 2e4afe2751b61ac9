package cage

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// host is where the host's root is while ours is being made.
const host = "/.host"

const hintMount = "AppArmor's restriction of user namespaces (kernel.apparmor_restrict_unprivileged_userns), a container or a systemd unit forbids it"

// mountAll makes the root that the inside sees: an empty one into which the
// places are bound, and with /proc, /dev and /tmp of its own. We are in a mount
// namespace of our own; nothing of this is seen outside.
func (s *spec) mountAll() *stepError {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return step(err, hintMount, "make mounts private")
	}
	if failed := newRoot(); failed != nil {
		return failed
	}
	if failed := s.mountOwn(); failed != nil {
		return failed
	}
	if failed := s.bindPlaces(); failed != nil {
		return failed
	}
	if err := s.etc(); err != nil {
		return step(err, "", "write /etc")
	}
	if s.home() == privateHome {
		if err := s.makeHome(); err != nil {
			return step(err, "", "make %s", privateHome)
		}
	}
	if err := s.showSelf(); err != nil {
		return step(err, "", "show our own program")
	}
	if err := unix.Unmount(host, unix.MNT_DETACH); err != nil {
		return step(err, "", "leave the host's root")
	}
	os.Remove(host)
	if err := unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
		return step(err, "", "make / read-only")
	}
	// The network is its own and has a loopback that is down; the names are too.
	unix.Sethostname([]byte("cage"))
	return nil
}

// newRoot goes into an empty root with the host's in /.host. It is mounted over
// /usr, which every machine has; what it covers is there again when the root is
// somewhere else.
func newRoot() *stepError {
	const base = "/usr"
	if err := unix.Mount("tmpfs", base, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=512m,mode=0755"); err != nil {
		return step(err, hintMount, "mount a new root")
	}
	if err := os.Mkdir(base+host, 0o755); err != nil {
		return step(err, "", "make a new root")
	}
	if err := unix.PivotRoot(base, base+host); err != nil {
		return step(err, hintMount, "enter the new root")
	}
	if err := unix.Chdir("/"); err != nil {
		return step(err, "", "enter the new root")
	}
	return nil
}

// mountOwn mounts what is the cage's own.
func (s *spec) mountOwn() *stepError {
	size := "size=" + strconv.FormatInt(s.Limits.ScratchSize, 10) + ",nr_inodes=" + strconv.Itoa(maxFiles)
	own := []struct {
		path, kind string
		flags      uintptr
		data, hint string
	}{
		{"/proc", "proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_RDONLY, "", "a container that masks parts of /proc forbids it"},
		{"/dev", "tmpfs", unix.MS_NOSUID | unix.MS_NOEXEC, "size=1m,mode=0755", ""},
		{"/dev/shm", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, "mode=1777," + size, ""},
		{"/tmp", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=1777," + size, ""},
	}
	for _, m := range own {
		if err := os.Mkdir(m.path, 0o755); err != nil {
			return step(err, "", "make %s", m.path)
		}
		if err := unix.Mount(m.kind, m.path, m.kind, m.flags, m.data); err != nil {
			return step(err, m.hint, "mount %s", m.path)
		}
	}
	for name, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"} {
		if err := os.Symlink(target, "/dev/"+name); err != nil {
			return step(err, "", "make /dev/%s", name)
		}
	}
	return nil
}

// bindPlaces binds what can be seen, the outer before the inner, then makes the
// links that are not there already.
func (s *spec) bindPlaces() *stepError {
	places := slices.Clone(s.Places)
	for _, dev := range plainDevices {
		places = append(places, place{Path: dev, Access: device})
	}
	slices.SortStableFunc(places, func(a, b place) int { return strings.Compare(a.Path, b.Path) })
	var bound []string
	for _, p := range places {
		if p.Access == link || p.Access == readable && slices.ContainsFunc(bound, func(dir string) bool { return within(p.Path, dir) }) {
			continue
		}
		if err := s.bind(p); err != nil {
			return step(err, "", "show %s", p.Path)
		}
		if p.Access == readable {
			bound = append(bound, p.Path)
		}
	}
	for _, p := range places {
		if p.Access != link {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(p.Path), 0o755); err != nil {
			return step(err, "", "make %s", filepath.Dir(p.Path))
		}
		// Where its directory was bound the link is there already.
		if err := os.Symlink(p.Target, p.Path); err != nil && !errors.Is(err, os.ErrExist) && !errors.Is(err, unix.EROFS) {
			return step(err, "", "make the link %s", p.Path)
		}
	}
	return nil
}

// bind shows one place under its own name.
func (s *spec) bind(p place) error {
	fd, err := walk(host, p.Path)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if err := s.mountPoint(p.Path, st.Mode&unix.S_IFMT == unix.S_IFDIR); err != nil {
		return err
	}
	if err := unix.Mount(descriptor(fd), p.Path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	// A device node works on a read-only mount; its mode and owner are safe there.
	flags := uintptr(unix.MS_NOSUID | unix.MS_RDONLY)
	switch p.Access {
	case readable:
		flags |= unix.MS_NODEV
	case writable:
		flags = unix.MS_NOSUID | unix.MS_NODEV
	}
	return s.restrict(p.Path, flags)
}

// descriptor is a name for what is open; our own /proc is there by then.
func descriptor(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

func (s *spec) mountPoint(path string, dir bool) error {
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	if dir {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// restrict adds flags to the mount at path and to all below it.
func (s *spec) restrict(path string, flags uintptr) error {
	if !s.Test.Classic {
		attr := unix.MountAttr{}
		for flag, a := range map[uintptr]uint64{unix.MS_RDONLY: unix.MOUNT_ATTR_RDONLY, unix.MS_NOSUID: unix.MOUNT_ATTR_NOSUID, unix.MS_NODEV: unix.MOUNT_ATTR_NODEV} {
			if flags&flag != 0 {
				attr.Attr_set |= a
			}
		}
		err := unix.MountSetattr(unix.AT_FDCWD, path, unix.AT_RECURSIVE, &attr)
		if !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM) {
			return err
		}
	}
	// Before Linux 5.12 each mount is remounted by itself, with the flags that it
	// has: those that a user namespace inherits must not be taken away.
	points, err := mountsBelow(path)
	if err != nil {
		return err
	}
	for _, point := range points {
		var st unix.Statfs_t
		if err := unix.Statfs(point, &st); err != nil {
			return fmt.Errorf("%s: %w", point, err)
		}
		const keep = unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME | unix.MS_RELATIME
		if err := unix.Mount("", point, "", unix.MS_REMOUNT|unix.MS_BIND|uintptr(st.Flags)&keep|flags, ""); err != nil {
			return fmt.Errorf("%s: %w", point, err)
		}
	}
	return nil
}

// mountsBelow lists the mount points at path and below, the outer first, from
// /proc/self/mountinfo (proc_pid_mountinfo(5): the fifth field, blanks and
// backslashes in octal).
func mountsBelow(path string) ([]string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var points []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 4 && within(unescape.Replace(fields[4]), path) {
			points = append(points, unescape.Replace(fields[4]))
		}
	}
	return points, lines.Err()
}

// etc writes the few files of /etc that must not be the host's.
func (s *spec) etc() error {
	if err := os.MkdirAll("/etc", 0o755); err != nil {
		return err
	}
	uid, gid := os.Geteuid(), os.Getegid()
	if s.User != nil {
		uid, gid = s.User.UID, s.User.GID
	}
	files := map[string]string{
		"/etc/passwd":        fmt.Sprintf("root:x:0:0::/:/bin/sh\ncage:x:%d:%d::%s:/bin/sh\n", uid, gid, s.home()),
		"/etc/group":         fmt.Sprintf("root:x:0:\ncage:x:%d:\n", gid),
		"/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
		"/etc/hosts":         "127.0.0.1 localhost\n",
	}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// makeHome makes the private scratch directory, the user's own.
func (s *spec) makeHome() error {
	if err := os.Mkdir(privateHome, 0o700); err != nil {
		return err
	}
	if s.User == nil {
		return nil
	}
	return os.Chown(privateHome, s.User.UID, s.User.GID)
}
