package store

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// looker looks at processes, one after the other.
type looker struct {
	x     *index
	found *findings
	lines *bufio.Reader
	dents []byte
}

func newLooker(x *index, found *findings) *looker {
	return &looker{x: x, found: found, lines: bufio.NewReaderSize(nil, maxMapLine), dents: make([]byte, direntBytes/4)}
}

// proc is a process, or a thread of one that shares less with it.
type proc struct {
	pid   int    // of the process
	dir   int    // /proc/PID or /proc/PID/task/TID, held: the number may be reused
	ns    *ns    // its mount namespace; nil if that cannot be seen
	shown mask   // what is mounted in it, of the first process that is seen there
	root  int    // its root directory, opened when it is needed; -1: not yet, -2: it cannot be
	name  string // of /proc/PID
}

// process looks at everything that a process has. One that ends meanwhile has
// nothing.
func (k *looker) process(pid int) {
	name := procDir + "/" + strconv.Itoa(pid)
	dir, err := unix.Open(name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		if denied(err) {
			k.stranger(pid, -1)
		}
		return
	}
	defer unix.Close(dir)
	p := &proc{pid: pid, dir: dir, root: -1, name: name}
	defer p.close()
	// What it runs says more than what it could see: the mounts come last.
	defer func() { k.use(p, p.shown, UseMount) }()
	err = k.namespace(p)
	if err == nil {
		err = k.memory(p)
	}
	if err == nil {
		err = k.files(p)
	}
	if err == nil {
		err = k.threads(p)
	}
	if denied(err) {
		k.stranger(pid, dir)
	}
}

// denied reports that something is there which this user may not see.
func denied(err error) bool { return errors.Is(err, fs.ErrPermission) }

func (p *proc) close() {
	if p.root >= 0 {
		_ = unix.Close(p.root)
	}
}

// program is the name of the process.
func (p *proc) program() string {
	b, err := os.ReadFile(p.name + "/comm")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// use records what p was found to use.
func (k *looker) use(p *proc, m mask, how string) { k.found.add(m, p.pid, p.program, how) }

// memory looks at the program of p and at what it maps.
func (k *looker) memory(p *proc) error {
	if err := k.link(p, p.dir, "exe", UseExe); err != nil {
		return err
	}
	fd, err := unix.Openat(p.dir, "maps", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "maps")
	defer f.Close()
	return eachMapping(f, k.lines, func(m mapping) {
		if owners := k.mapped(p, m); owners != 0 {
			k.use(p, owners, UseMaps)
		}
	})
}

// mapped tells whose a mapped file is.
func (k *looker) mapped(p *proc, m mapping) mask {
	var all mask
	for _, h := range k.x.homes {
		if m.dev == h.super {
			if owners := h.files[m.ino]; owners != 0 {
				all |= k.whose(p, h, m.ino, string(m.path), owners)
				continue
			}
			all |= k.deletedFrom(m.path)
		}
		if h.odd && len(m.path) > 0 && m.path[0] == '/' {
			// What maps shows of an overlay was the file below it, until Linux 6.8.
			if st, err := p.stat(string(m.path)); err == nil && st.dev == h.dev {
				all |= k.whose(p, h, st.ino, string(m.path), h.files[st.ino])
			}
		}
	}
	return all
}

// deletedSuffix ends the name of a file that has none any more.
const deletedSuffix = " (deleted)"

// deletedFrom tells from which generation a file was deleted, replaced by a
// repair say: who maps it is a program of that generation all the same.
func (k *looker) deletedFrom(name []byte) mask {
	was, ok := strings.CutSuffix(string(name), deletedSuffix)
	if !ok {
		return 0
	}
	for i, dir := range k.x.dirs {
		if dir != "" && below(was, dir) {
			return 1 << i
		}
	}
	return 0
}

// files looks at what p has open, and at its working and root directories.
func (k *looker) files(p *proc) error {
	if err := k.link(p, p.dir, "cwd", UseCwd); err != nil {
		return err
	}
	if err := k.link(p, p.dir, "root", UseRoot); err != nil {
		return err
	}
	fd, err := unix.Openat(p.dir, "fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return eachEntry(fd, k.dents, func(e dirent) error { return k.link(p, fd, string(e.name), UseFD) })
}

// link looks at what one of the kernel's links leads to.
func (k *looker) link(p *proc, dir int, name, how string) error {
	st, err := statAt(dir, name, 0)
	if denied(err) {
		return err
	}
	if err != nil {
		return nil // closed meanwhile, or there is none: a thread of the kernel
	}
	for _, h := range k.x.homes {
		owners := h.files[st.ino]
		if st.dev != h.dev || owners == 0 {
			continue
		}
		if st.mode&unix.S_IFMT != unix.S_IFDIR && st.links != 1 {
			var buf [unix.PathMax]byte
			n, err := unix.Readlinkat(dir, name, buf[:])
			if err != nil {
				n = 0
			}
			owners = k.whose(p, h, st.ino, string(buf[:n]), owners)
		}
		k.use(p, owners, how)
	}
	return nil
}

// whose tells through which generation p uses an inode that those of m have. The
// name that the kernel gives is believed only where it leads to the inode; all
// of m are meant where it is not known.
func (k *looker) whose(p *proc, h *home, ino uint64, name string, m mask) mask {
	if !strings.HasPrefix(name, "/") {
		return m
	}
	if st, err := statAt(unix.AT_FDCWD, name, unix.AT_SYMLINK_NOFOLLOW); err == nil && st.dev == h.dev && st.ino == ino {
		return k.x.owner(name, m)
	}
	st, err := p.stat(name)
	if err != nil || st.ino != ino {
		return m
	}
	if st.dev != h.dev {
		return 0 // of another subvolume, whose inodes have the same numbers
	}
	if p.ns != nil {
		if on := p.ns.mounts.holding(0, name); on != nil && on.dev == h.super {
			return h.ownerInside(on.inside(name), m)
		}
	}
	return m
}

// stat looks at what p finds under a name. No link is followed: the tree may be
// somebody's who would lead us elsewhere.
func (p *proc) stat(name string) (stat, error) {
	if p.root == -1 {
		fd, err := unix.Openat(p.dir, "root", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if p.root = fd; err != nil {
			p.root = -2
		}
	}
	if p.root < 0 {
		return stat{}, fs.ErrPermission
	}
	fd, err := unix.Openat2(p.root, name, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return stat{}, err
	}
	defer unix.Close(fd)
	return statAt(fd, "", unix.AT_EMPTY_PATH)
}

// What kcmp(2) compares.
const (
	kcmpFiles = 2
	kcmpFS    = 3
)

// threads looks at those threads that have other open files or directories than
// their process, and at all where the first has ended before them.
func (k *looker) threads(p *proc) error {
	fd, err := unix.Openat(p.dir, "task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var others []int
	err = eachEntry(fd, k.dents, func(e dirent) error {
		if tid, err := strconv.Atoi(string(e.name)); err == nil && tid != p.pid {
			others = append(others, tid)
		}
		return nil
	})
	if err != nil || len(others) == 0 {
		return err
	}
	ended := errors.Is(statErr(p.dir, "exe"), fs.ErrNotExist)
	for _, tid := range others {
		if !ended && same(p.pid, tid, kcmpFiles) && same(p.pid, tid, kcmpFS) {
			continue
		}
		if err := k.thread(p, fd, tid, ended); err != nil {
			return err
		}
	}
	return nil
}

func statErr(dir int, name string) error {
	_, err := statAt(dir, name, 0)
	return err
}

// same reports that two threads have something in common. Where the kernel does
// not say, they are looked at.
func same(a, b int, what uintptr) bool {
	r, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), what, 0, 0, 0)
	return errno == 0 && r == 0
}

func (k *looker) thread(p *proc, tasks, tid int, memory bool) error {
	dir, err := unix.Openat(tasks, strconv.Itoa(tid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil // ended
	}
	defer unix.Close(dir)
	t := &proc{pid: p.pid, dir: dir, root: -1, name: p.name}
	defer t.close()
	if err := k.namespace(t); err != nil {
		return err
	}
	p.shown |= t.shown
	if memory {
		if err := k.memory(t); err != nil {
			return err
		}
	}
	return k.files(t)
}
