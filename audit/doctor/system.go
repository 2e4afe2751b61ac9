package doctor

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
)

// System is a machine and the process that asks. FS is needed; what else is
// left out is not looked at.
type System struct {
	// FS is the root directory. Links in it are followed as the kernel would,
	// and never above it. FileInfo.Sys should be a *syscall.Stat_t.
	FS      fs.FS
	UID     int
	GID     int
	Groups  []int    // supplementary groups of the process
	Environ []string // NAME=VALUE
	Kernel  string   // uname -r
	Memlock int64    // RLIMIT_MEMLOCK in bytes; -1 is unlimited, 0 unknown

	// Xattr reads an extended attribute; its error is of no interest.
	Xattr func(name, attr string) ([]byte, error)
	// Try opens a device for reading and writing, and closes it.
	Try func(name string) error
	// Space tells what is free where a directory is.
	Space func(dir string) (diskspace.Space, error)
	// Missing lists the libraries and commands of the host that a ROCm tree
	// lacks, with what needs them.
	Missing func(ctx context.Context, dir string) ([]Missing, error)
}

// Missing is something of the host that a tree lacks.
type Missing struct {
	Name     string // libatomic.so.1, python3
	By       string // the first that needs it
	Required bool   // something that a user starts does not work
}

// Limits of what is read.
const (
	maxText  = 4 << 20
	maxNames = 1 << 16
	maxHops  = 40
)

var errLoop = errors.New("too many links")

// resolve follows every link of an absolute name, inside the machine. It returns
// the name in the form that FS takes.
func (s *System) resolve(name string, last bool) (string, fs.FileInfo, error) {
	todo := strings.Split(name, "/")
	at, hops := ".", 0
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, part)
		info, err := fs.Lstat(s.FS, next)
		if err != nil {
			return "", nil, err
		}
		if info.Mode().Type() != fs.ModeSymlink || !last && len(todo) == 0 {
			at = next
			continue
		}
		if hops++; hops > maxHops {
			return "", nil, errLoop
		}
		target, err := fs.ReadLink(s.FS, next)
		if err != nil {
			return "", nil, err
		}
		if path.IsAbs(target) {
			at = "."
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	info, err := fs.Lstat(s.FS, at)
	return at, info, err
}

// stat follows links; lstat does not follow the last.
func (s *System) stat(name string) (fs.FileInfo, error) {
	_, info, err := s.resolve(name, true)
	return info, err
}

func (s *System) lstat(name string) (fs.FileInfo, error) {
	_, info, err := s.resolve(name, false)
	return info, err
}

func (s *System) exists(name string) bool {
	_, err := s.stat(name)
	return err == nil
}

// gone reports whether a name leads to nothing for certain: what stands behind a
// directory that may not be read is not known to be gone.
func (s *System) gone(name string) bool {
	_, err := s.stat(name)
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errLoop)
}

// closed reports whether a directory is there, or may be, and may not be read.
func (s *System) closed(dir string) bool {
	at, _, err := s.resolve(dir, true)
	if err == nil {
		_, err = fs.ReadDir(s.FS, at)
	}
	return errors.Is(err, fs.ErrPermission)
}

func (s *System) isDir(name string) bool {
	info, err := s.stat(name)
	return err == nil && info.IsDir()
}

// real is the name without links, "" if nothing is there.
func (s *System) real(name string) string {
	at, _, err := s.resolve(name, true)
	if err != nil {
		return ""
	}
	return path.Join("/", at)
}

// link is what a symbolic link says, "" if it is none.
func (s *System) link(name string) string {
	at, info, err := s.resolve(name, false)
	if err != nil || info.Mode().Type() != fs.ModeSymlink {
		return ""
	}
	target, err := fs.ReadLink(s.FS, at)
	if err != nil {
		return ""
	}
	return target
}

// open opens a regular file.
func (s *System) open(name string) (fs.File, error) {
	at, info, err := s.resolve(name, true)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("not a regular file")}
	}
	return s.FS.Open(at)
}

// text reads a file, or what of it is within the limit. It is "" for what
// cannot be read.
func (s *System) text(name string) string {
	t, _ := s.read(name)
	return t
}

func (s *System) read(name string) (string, error) { return s.readUpTo(name, maxText) }

func (s *System) readUpTo(name string, limit int64) (string, error) {
	f, err := s.open(name)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.LimitReader(f, limit))
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	return string(b), nil
}

// line is the text of a file of one line, as sysfs has them.
func (s *System) line(name string) string { return strings.TrimSpace(s.text(name)) }

// list is the sorted names of a directory, none if it cannot be read.
func (s *System) list(dir string) []string {
	at, info, err := s.resolve(dir, true)
	if err != nil || !info.IsDir() {
		return nil
	}
	entries, _ := fs.ReadDir(s.FS, at)
	var names []string
	for _, e := range entries[:min(len(entries), maxNames)] {
		names = append(names, e.Name())
	}
	return names
}

// glob lists what exists of a pattern with at most one * in each part, sorted.
func (s *System) glob(pattern string) []string {
	found := []string{"/"}
	for part := range strings.SplitSeq(strings.Trim(pattern, "/"), "/") {
		var next []string
		for _, dir := range found {
			if !strings.Contains(part, "*") {
				if p := path.Join(dir, part); s.exists(p) {
					next = append(next, p)
				}
				continue
			}
			for _, name := range s.list(dir) {
				if ok, _ := path.Match(part, name); ok {
					next = append(next, path.Join(dir, name))
				}
			}
		}
		if found = next; len(found) > maxNames {
			found = found[:maxNames]
		}
	}
	return found
}

// owner returns the ids of a file; ok is false where the machine does not say.
func owner(info fs.FileInfo) (uid, gid int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st == nil {
		return 0, 0, false
	}
	return int(st.Uid), int(st.Gid), true
}
