package store

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mapping is a file that a process maps: a line of /proc/PID/maps (proc(5)).
type mapping struct {
	dev  uint64
	ino  uint64
	path []byte // "" if there is none; valid until the next line
}

// parseMapping reads a line such as
//
//	7f0c1e000000-7f0c1e022000 r--p 00000000 fe:00 1311 /usr/lib/libc.so.6
//
// of which the device is in hexadecimal and the inode is not. ok is false for
// what maps no file, and for what is no such line.
func parseMapping(line []byte) (m mapping, ok bool) {
	for range 3 {
		if _, line, ok = bytes.Cut(line, []byte{' '}); !ok {
			return m, false
		}
	}
	dev, line, ok := bytes.Cut(line, []byte{' '})
	if !ok {
		return m, false
	}
	major, minor, ok := bytes.Cut(dev, []byte{':'})
	if !ok {
		return m, false
	}
	a, err := strconv.ParseUint(string(major), 16, 32)
	b, berr := strconv.ParseUint(string(minor), 16, 32)
	if err != nil || berr != nil {
		return m, false
	}
	ino, name, _ := bytes.Cut(line, []byte{' '})
	if m.ino, err = strconv.ParseUint(string(ino), 10, 64); err != nil || m.ino == 0 {
		return m, false
	}
	m.dev, m.path = unix.Mkdev(uint32(a), uint32(b)), bytes.TrimLeft(name, " ")
	return m, true
}

// maxMapLine bounds a line of maps, in bytes: a path of the kernel's, in which a
// line feed takes four.
const maxMapLine = 64 << 10

// eachMapping calls do for every mapping of a file, one after the other the same
// only once.
func eachMapping(r io.Reader, buf *bufio.Reader, do func(mapping)) error {
	buf.Reset(r)
	var last mapping
	for {
		line, err := buf.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return errors.New("a line that is too long")
		}
		if m, ok := parseMapping(bytes.TrimSuffix(line, []byte{'\n'})); ok && (m.ino != last.ino || m.dev != last.dev) {
			last = m
			do(m)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// mount is a line of /proc/PID/mountinfo (proc(5)).
type mount struct {
	id      uint64
	dev     uint64
	root    string // of the mount, in the file system
	point   string // where it is mounted, as its process sees it
	options string // of the mount
	kind    string // ext4, overlay, …
	super   string // the options of the file system
}

// parseMount reads a line such as
//
//	36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
func parseMount(line string) (m mount, ok bool) {
	left, right, ok := strings.Cut(line, " - ")
	if !ok {
		return m, false
	}
	f := strings.Split(left, " ")
	if len(f) < 6 {
		return m, false
	}
	id, err := strconv.ParseUint(f[0], 10, 64)
	a, b, _ := strings.Cut(f[2], ":")
	major, aerr := strconv.ParseUint(a, 10, 32)
	minor, berr := strconv.ParseUint(b, 10, 32)
	if err != nil || aerr != nil || berr != nil {
		return m, false
	}
	m = mount{id: id, dev: unix.Mkdev(uint32(major), uint32(minor)), root: unescapeMount(f[3]), point: unescapeMount(f[4]), options: f[5]}
	m.root = strings.TrimSuffix(m.root, "//deleted")
	if g := strings.SplitN(right, " ", 3); len(g) == 3 {
		m.kind, m.super = g[0], g[2]
	}
	return m, true
}

// unescapeMount turns \040 and its like into what they stand for.
func unescapeMount(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// mounts are those of one mount namespace, in the kernel's order: what hides
// another comes after it.
type mounts []mount

// maxMounts bounds how much is read of a mountinfo, in bytes. fs.mount-max is
// 100,000.
const maxMounts = 64 << 20

func mountsOf(name string) (mounts, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readMounts(f)
}

func readMounts(r io.Reader) (mounts, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxMounts))
	if err != nil {
		return nil, err
	}
	var all mounts
	for line := range strings.SplitSeq(string(text), "\n") {
		if m, ok := parseMount(line); ok {
			all = append(all, m)
		}
	}
	return all, nil
}

// holding returns the mount that path lies in: that of the given identity if it
// is known, else the one with the longest name. nil if there is none.
func (all mounts) holding(id uint64, path string) *mount {
	var best *mount
	for i := range all {
		m := &all[i]
		if id != 0 && m.id == id && below(path, m.point) {
			return m
		}
		if below(path, m.point) && (best == nil || len(m.point) >= len(best.point)) {
			best = m
		}
	}
	return best
}

// firstBelow returns a mount at dir or below it; nil if there is none.
func (all mounts) firstBelow(dir string) *mount {
	for i := range all {
		if below(all[i].point, dir) {
			return &all[i]
		}
	}
	return nil
}

// inside is the path in the file system of what has the given path.
func (m *mount) inside(name string) string {
	rest := strings.TrimPrefix(name, m.point)
	return path.Join(m.root, rest)
}

// layers are the directories that an overlay is made of, as they were named when
// it was mounted.
func (m *mount) layers() []string {
	if m.kind != "overlay" {
		return nil
	}
	var dirs []string
	for o := range strings.SplitSeq(m.super, ",") {
		key, value, _ := strings.Cut(o, "=")
		switch key {
		case "lowerdir", "lowerdir+", "datadir+", "upperdir":
			for dir := range strings.SplitSeq(unescapeMount(value), ":") {
				if path.IsAbs(dir) {
					dirs = append(dirs, path.Clean(dir))
				}
			}
		}
	}
	return dirs
}
