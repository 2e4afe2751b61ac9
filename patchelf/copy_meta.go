package patchelf

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

type unixStat = syscall.Stat_t

// dress gives the copy what else belongs to a file. It comes after the last
// write to it, which takes setuid bits and capabilities away.
func (c *copying) dress(t *os.File) error {
	mode := c.info.Mode().Perm()
	if c.same {
		if c.own(t) {
			mode = c.info.Mode()
		}
	}
	if err := t.Chmod(mode); err != nil {
		return err
	}
	if err := c.attributes(t); err != nil {
		return err
	}
	if c.o.KeepTime {
		return keepTime(int(t.Fd()), c.info)
	}
	return nil
}

// own gives the copy the owner of the original, as far as that is permitted,
// and tells whether it has both user and group.
func (c *copying) own(t *os.File) bool {
	st, ok := c.info.Sys().(*unixStat)
	if !ok {
		return false
	}
	fd := int(t.Fd())
	if unix.Fchown(fd, int(st.Uid), int(st.Gid)) == nil {
		return true
	}
	_ = unix.Fchown(fd, -1, int(st.Gid)) // a group of the user's may be given
	var now unix.Stat_t
	if unix.Fstat(fd, &now) == nil && now.Uid == st.Uid && now.Gid == st.Gid {
		return true
	}
	c.lost = append(c.lost, "owner")
	return false
}

// attributes copies the extended attributes, access lists among them. A copy
// under another name gets those that carry no privilege.
func (c *copying) attributes(t *os.File) error {
	names, err := listAttributes(c.src)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !c.same && !strings.HasPrefix(name, "user.") {
			continue
		}
		value, err := getAttribute(c.src, name)
		if err == nil {
			if now, err := getAttribute(t, name); err == nil && bytes.Equal(now, value) {
				continue // a label that a new file gets anyhow
			}
			err = unix.Fsetxattr(int(t.Fd()), name, value, 0)
		}
		switch {
		case err == nil, errors.Is(err, unix.ENODATA):
		case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EINVAL):
			c.lost = append(c.lost, name)
		default:
			return fmt.Errorf("copy attribute %s: %w", name, err)
		}
	}
	return nil
}

func listAttributes(f *os.File) ([]string, error) {
	b, err := attributeBytes(func(b []byte) (int, error) { return unix.Flistxattr(int(f.Fd()), b) })
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list attributes: %w", err)
	}
	return strings.FieldsFunc(string(b), func(r rune) bool { return r == 0 }), nil
}

func getAttribute(f *os.File, name string) ([]byte, error) {
	return attributeBytes(func(b []byte) (int, error) { return unix.Fgetxattr(int(f.Fd()), name, b) })
}

// attributeBytes calls get with room for what it says that there is. Linux
// bounds both a list and a value to 64 KiB.
func attributeBytes(get func([]byte) (int, error)) ([]byte, error) {
	b := make([]byte, 256)
	n, err := get(b)
	if errors.Is(err, unix.ERANGE) {
		b = make([]byte, 64<<10)
		n, err = get(b)
	}
	if err != nil {
		return nil, err
	}
	return b[:n], nil
}

const capability = "security.capability"

// capabilityOf returns the file capabilities of f, nil if it has none. Writing
// to a file takes them away.
func capabilityOf(f *os.File) []byte {
	b, err := getAttribute(f, capability)
	if err != nil {
		return nil
	}
	return b
}

// effective tells whether this process has a capability (CAP_...).
func effective(capability uint) bool {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return true // try it
	}
	return data[capability/32].Effective&(1<<(capability%32)) != 0
}

// mayRestoreMode tells whether this process may give a file its mode back: to
// setuid bits the owner has a right, to setgid bits an owner in the group.
func mayRestoreMode(info fs.FileInfo) bool {
	st, ok := info.Sys().(*unixStat)
	if !ok || info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) == 0 {
		return true
	}
	if int(st.Uid) != os.Geteuid() && !effective(unix.CAP_FOWNER) {
		return false
	}
	if info.Mode()&fs.ModeSetgid == 0 || effective(unix.CAP_FSETID) || int(st.Gid) == os.Getegid() {
		return true
	}
	groups, err := os.Getgroups()
	return err == nil && slices.Contains(groups, int(st.Gid))
}

// restore gives a file that was written to what writing took from it.
func restore(f *os.File, was fs.FileInfo, caps []byte) error {
	now, err := f.Stat()
	if err != nil {
		return err
	}
	if now.Mode() != was.Mode() {
		if err := f.Chmod(was.Mode()); err != nil {
			return err
		}
	}
	if caps != nil && capabilityOf(f) == nil {
		if err := unix.Fsetxattr(int(f.Fd()), capability, caps, 0); err != nil {
			return fmt.Errorf("restore %s: %w", capability, err)
		}
	}
	return nil
}
