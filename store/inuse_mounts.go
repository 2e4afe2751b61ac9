package store

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ns is a mount namespace.
type ns struct {
	mounts mounts
	uses   mask // what is mounted in it
}

// namespace finds the mount namespace of p, and looks at what is mounted in it
// if it is the first process of it.
func (k *looker) namespace(p *proc) error {
	var buf [64]byte
	n, err := unix.Readlinkat(p.dir, "ns/mnt", buf[:])
	if err != nil || n == 0 {
		if denied(err) {
			return err
		}
		return nil
	}
	id := string(buf[:n])
	k.found.mu.Lock()
	p.ns = k.found.namespaces[id]
	k.found.mu.Unlock()
	if p.ns == nil {
		space, err := k.mounted(p)
		if err != nil {
			return err
		}
		k.found.mu.Lock()
		p.ns = space
		k.found.namespaces[id] = space
		k.found.mu.Unlock()
		p.shown = space.uses
	}
	return nil
}

// mounted reads the mounts that p sees, and whose they are.
func (k *looker) mounted(p *proc) (*ns, error) {
	fd, err := unix.Openat(p.dir, "mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &ns{}, onlyDenied(err)
	}
	f := os.NewFile(uintptr(fd), "mountinfo")
	defer f.Close()
	all, err := readMounts(f)
	if err != nil {
		return &ns{}, onlyDenied(err)
	}
	space := &ns{mounts: all}
	for i := range all {
		space.uses |= k.x.mounts(&all[i], p)
	}
	return space, nil
}

func onlyDenied(err error) error {
	if denied(err) {
		return err
	}
	return nil
}

// mounts tells which generations a mount shows: by the directory that is mounted,
// by what is found there, and by the layers of an overlay.
func (x *index) mounts(m *mount, p *proc) mask {
	var all mask
	for _, h := range x.homes {
		if m.dev == h.super {
			if m.root == "/" && !h.odd {
				continue // the whole file system
			}
			for i, where := range h.where {
				if where != "" && below(m.root, where) {
					all |= 1 << i
				}
			}
			if st, err := p.stat(m.point); err == nil && st.dev == h.dev && st.mode&unix.S_IFMT == unix.S_IFDIR {
				all |= h.files[st.ino]
			}
		}
		for _, dir := range m.layers() {
			if st, err := statAt(unix.AT_FDCWD, dir, 0); err == nil && st.dev == h.dev {
				all |= h.files[st.ino]
			}
		}
	}
	for _, dir := range m.layers() {
		all |= x.deeper(dir)
	}
	return all
}

// deeper is the generation that path lies in.
func (x *index) deeper(path string) mask {
	for i, dir := range x.dirs {
		if dir != "" && below(path, dir) {
			return 1 << i
		}
	}
	return 0
}

// mountedHere counts what somebody has mounted on a directory of a generation:
// to delete the generation would delete what is in there.
func (x *index) mountedHere(found *findings) {
	own, err := mountsOf(filepath.Join(procDir, "self/mountinfo"))
	if err != nil {
		return
	}
	for _, m := range own {
		found.add(x.deeper(m.point), 0, func() string { return "" }, UseMount)
	}
}
