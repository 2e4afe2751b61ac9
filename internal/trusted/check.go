package trusted

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxLinks bounds how many symlinks lead to one file, as the kernel does.
const maxLinks = 40

// Check reports whether the file or directory at name is trusted. The error is an
// *Error if it is not, and matches fs.ErrNotExist if it is not there.
func (r Rule) Check(name string) error {
	_, err := r.walk(name, false)
	return err
}

// CheckNearest is Check for what may not be there yet: then the directory in which
// it would be made is what counts.
func (r Rule) CheckNearest(name string) error {
	abs, err := filepath.Abs(name)
	if err != nil {
		return fmt.Errorf("find out who may write %s: %w", name, err)
	}
	for {
		err := r.Check(abs)
		if !errors.Is(err, fs.ErrNotExist) || abs == "/" {
			return err
		}
		abs = filepath.Dir(abs)
		if _, err := os.Lstat(abs); err == nil {
			_, err := r.walk(abs, true) // in a directory such as /tmp what is made is ours
			return err
		}
	}
}

// ReadFile reads a trusted regular file of at most max bytes. What the caller of the
// program has opened for it already (/dev/stdin, /dev/fd/3) may be a pipe, and is the
// caller's whatever leads to it. /dev/null is empty.
func (r Rule) ReadFile(name string, max int64) (b []byte, err error) {
	// Not blocking: what is at name may be a pipe that nobody writes to.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if isNull(info) {
		return nil, nil // whoever writes there, nobody reads it
	}
	handed := handedOver(name)
	if !info.Mode().IsRegular() && (!handed || info.Mode()&fs.ModeNamedPipe == 0) {
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	if err := r.opened(name, f, info, handed); err != nil {
		return nil, err
	}
	b, err = io.ReadAll(io.LimitReader(f, max+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if int64(len(b)) > max {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, max)
	}
	return b, nil
}

// isNull reports whether info is that of /dev/null: "no file", to many scripts.
func isNull(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode()&fs.ModeCharDevice != 0 && uint64(st.Rdev) == unix.Mkdev(1, 3)
}

// handedOver reports whether name stands for a descriptor that the process has.
func handedOver(name string) bool {
	return name == "/dev/stdin" || strings.HasPrefix(name, "/dev/fd/") || strings.HasPrefix(name, "/proc/self/fd/")
}

// opened looks at what was opened, and that it is what name leads to.
func (r Rule) opened(name string, f *os.File, info fs.FileInfo, handed bool) error {
	if handed {
		if info.Mode()&fs.ModeNamedPipe != 0 {
			return nil // the other end is whose it is
		}
		return r.inode(name, name, info, func(attr string, dest []byte) (int, error) { return unix.Fgetxattr(int(f.Fd()), attr, dest) }, false)
	}
	found, err := r.walk(name, false)
	if err != nil {
		return err
	}
	if !os.SameFile(info, found) {
		return fmt.Errorf("%s was replaced while it was read; try again", name)
	}
	return nil
}

// walk follows name from the root of the file system to what it names, which may be
// a directory on the way to more (way).
func (r Rule) walk(name string, way bool) (fs.FileInfo, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("find out who may write %s: %w", name, err)
	}
	at, rest, links := "/", abs[1:], 0
	info, err := r.step(name, at, end(rest))
	for err == nil && rest != "" {
		var part string
		part, rest, _ = strings.Cut(rest, "/")
		switch part {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			if info, err = os.Lstat(at); err != nil {
				return nil, err
			}
			continue
		}
		next := filepath.Join(at, part)
		if info, err = r.step(name, next, end(rest)); err != nil {
			return nil, err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return nil, fmt.Errorf("%s: too many symlinks lead to it", name)
		}
		to, err := os.Readlink(next)
		if err != nil {
			return nil, err
		}
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = to + "/" + rest
	}
	if err != nil {
		return nil, err
	}
	// The last step may have been "..", or a link to it.
	return info, r.inode(name, at, info, lget(at), way)
}

// end reports whether rest leads nowhere else.
func end(rest string) bool {
	return strings.Trim(strings.ReplaceAll("/"+rest+"/", "/./", "/"), "/") == ""
}

func lget(path string) func(string, []byte) (int, error) {
	return func(attr string, dest []byte) (int, error) { return unix.Lgetxattr(path, attr, dest) }
}

// step looks at one name on the way.
func (r Rule) step(name, path string, last bool) (fs.FileInfo, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	link := info.Mode()&fs.ModeSymlink != 0
	if last && !link || !r.Root() {
		return info, nil // walk looks at the end; but for root the way does not count
	}
	return info, r.inode(name, path, info, lget(path), true)
}

// inode looks at owner, mode and access control list. On the way to a file (way)
// the directory of everybody may be passed, of which entries only their owners take.
func (r Rule) inode(name, path string, info fs.FileInfo, get func(string, []byte) (int, error), way bool) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("find out who may write %s: this system does not say", path)
	}
	bad := func(why, try string) error { return &Error{Name: name, Path: path, Why: why, Try: try, UID: -1} }
	if !r.owner(st.Uid) {
		try := fmt.Sprintf("chown %s %s, if what is in it is yours; or run this as that user", r.name(), word(path))
		return &Error{Name: name, Path: path, Why: fmt.Sprintf("belongs to the user %d", st.Uid), Try: try, UID: int(st.Uid)}
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil // a link has no mode of its own
	}
	if way && info.Mode()&fs.ModeSticky != 0 {
		return nil
	}
	mode := info.Mode().Perm()
	acl, err := readACL(get)
	if err != nil {
		return fmt.Errorf("find out who may write %s: %w", path, err)
	}
	w := writers{group: mode&0o020 != 0, other: mode&0o002 != 0}
	if acl != nil {
		if w, err = parseACL(acl); err != nil {
			return fmt.Errorf("find out who may write %s: %w", path, err)
		}
	}
	switch {
	case w.other:
		return bad(fmt.Sprintf("can be written by everybody (mode %#o)", mode), "chmod go-w "+word(path))
	case w.group && !r.group(st.Gid):
		return bad(fmt.Sprintf("can be written by the group %d (mode %#o)", st.Gid, mode), "chmod g-w "+word(path))
	}
	for _, id := range w.users {
		if !r.owner(id) {
			return bad(fmt.Sprintf("can be written by the user %d, by its access control list", id), "setfacl -b "+word(path))
		}
	}
	for _, id := range w.groups {
		if !r.group(id) {
			return bad(fmt.Sprintf("can be written by the group %d, by its access control list", id), "setfacl -b "+word(path))
		}
	}
	return nil
}

// name is who should own a file, for a command.
func (r Rule) name() string {
	if r.Root() {
		return "root"
	}
	return fmt.Sprint(r.UID)
}
