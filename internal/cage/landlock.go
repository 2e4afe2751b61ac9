package cage

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// minABI is the first Landlock that holds truncation back (Linux 6.2).
const minABI = 3

const hintLandlock = "Linux 6.2 or later with landlock among its security modules is needed; in a container or a systemd unit a seccomp filter may forbid it"

// What the kinds of access are in Landlock's rights (landlock(7)).
const (
	rightsFile  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	rightsRead  = rightsFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	rightsWrite = rightsRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO
	rightsDevice = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	rightsABI3   = 1<<15 - 1 // all up to TRUNCATE
)

// landlockFiles is what more can be read where /etc and /proc are the host's:
// names of users, and what the machine is. Nothing of other processes.
var landlockFiles = []string{"/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/filesystems"}

// abi is the newest Landlock that the kernel and we know.
func (s *spec) abi() (int, error) {
	v, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, errno
	}
	if s.Test.ABI != 0 {
		v = min(v, uintptr(s.Test.ABI))
	}
	return int(v), nil
}

// rulesetAttr is struct landlock_ruleset_attr of ABI 6; older kernels take the
// part of it that they know.
type rulesetAttr struct{ fs, net, scoped uint64 }

// ruleset makes what the program may reach, and returns its descriptor.
func (s *spec) ruleset() (int, *stepError) {
	abi, err := s.abi()
	if err != nil {
		return 0, step(err, hintLandlock, "ask for Landlock")
	}
	if abi < minABI {
		return 0, step(fmt.Errorf("version %d of it, which cannot keep files from being cut off", abi), hintLandlock, "ask for Landlock")
	}
	attr := rulesetAttr{fs: rightsABI3}
	size := unsafe.Sizeof(attr.fs)
	if abi >= 4 {
		attr.net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		size += unsafe.Sizeof(attr.net)
	}
	if abi >= 5 {
		attr.fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if abi >= 6 {
		attr.scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
		size += unsafe.Sizeof(attr.scoped)
	}
	fd, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return 0, step(errno, hintLandlock, "make a Landlock ruleset")
	}
	unix.CloseOnExec(int(fd))
	for _, p := range s.landlockPlaces() {
		if err := allow(int(fd), p, attr.fs); err != nil {
			return 0, step(err, fmt.Sprintf("uid %d has to be able to reach it: chmod o+x the directories above it", os.Geteuid()), "show %s", p.Path)
		}
	}
	return int(fd), nil
}

func (s *spec) landlockPlaces() []place {
	places := append([]place{}, s.Places...)
	places = append(places, existing(landlockFiles...)...)
	for _, path := range plainDevices {
		places = append(places, place{Path: path, Access: device})
	}
	// Of processes the program sees itself: threads ask for their stack there. It
	// does not see what it starts, and not the host's network and mounts, which are
	// in the same directory.
	self := "/proc/" + strconv.Itoa(os.Getpid())
	for _, name := range []string{"/maps", "/stat", "/statm", "/status"} {
		places = append(places, place{Path: self + name, Access: readable})
	}
	return append(places, place{Path: s.home(), Access: writable})
}

// allow adds the rule for one place. A link needs none: what counts is where
// it leads.
func allow(rules int, p place, handled uint64) error {
	if p.Access == link {
		return nil
	}
	fd, err := walk("/", p.Path)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	dir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	rule := unix.LandlockPathBeneathAttr{Parent_fd: int32(fd)}
	switch p.Access {
	case writable:
		rule.Allowed_access = rightsWrite
	case device:
		rule.Allowed_access = rightsDevice | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
		if dir {
			rule.Allowed_access |= unix.LANDLOCK_ACCESS_FS_READ_DIR
		}
	default:
		rule.Allowed_access = rightsFile
		if dir {
			rule.Allowed_access = rightsRead
		}
	}
	rule.Allowed_access &= handled
	return raw6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(rules), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)))
}

// landlockRestrict puts this thread, and what it executes, under the rules.
func landlockRestrict(rules int) error {
	err := raw(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(rules), 0, 0)
	if errors.Is(err, unix.E2BIG) {
		return fmt.Errorf("%w: 16 Landlocks lie over this process already", err)
	}
	return err
}
