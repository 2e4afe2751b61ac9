package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// SELinux says where labels are read from. The zero value is this machine.
type SELinux struct {
	FS  string // where selinuxfs is mounted; "": /sys/fs/selinux
	Usr string // the directory whose labels are taken; "": /usr
}

const selinuxAttr = "security.selinux"

// maxLabel bounds a label; the kernel's own bound is a page.
const maxLabel = 4096

// labelKind is what a path is for SELinux. Where an inode has several names the
// highest counts.
type labelKind int

// The kinds, and below /usr what has the label of each.
const (
	labelUsr   labelKind = iota // /usr
	labelShare                  // /usr/share
	labelLib                    // /usr/lib
	labelBin                    // /usr/bin
	labelKinds
)

// kindOf is the kind of a path in a prefix, by the names of the directories that
// it is in and its own. The file contexts in systemd/selinux say the same.
func kindOf(path string) labelKind {
	kind := labelUsr
	for part := range strings.SplitSeq(path, "/") {
		switch part {
		case "bin", "sbin", "libexec":
			return labelBin
		case "lib", "lib32", "lib64":
			kind = labelLib
		case "share":
			kind = max(kind, labelShare)
		}
	}
	return kind
}

// labeller gives labels. It is nil where there is no SELinux.
type labeller struct {
	types [labelKinds]string // of each kind
	whole [labelKinds]string // the labels that they are from, for what has none
}

// labeller reads the labels of the machine's own programs and libraries: no
// policy needs to be known.
func (s *Store) labeller() (*labeller, error) {
	o := s.SELinux
	if o.FS == "" {
		o.FS = "/sys/fs/selinux"
	}
	if o.Usr == "" {
		o.Usr = "/usr"
	}
	if _, err := os.Stat(filepath.Join(o.FS, "enforce")); err != nil {
		return nil, nil // not in the kernel, or off
	}
	l := &labeller{}
	for kind, dir := range [labelKinds]string{labelUsr: "", labelShare: "share", labelLib: "lib", labelBin: "bin"} {
		label, err := labelOf(filepath.Join(o.Usr, dir), unix.Getxattr)
		if noLabels(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the label of %s: %w", filepath.Join(o.Usr, dir), err)
		}
		l.whole[kind], l.types[kind] = label, typeOf(label)
		if l.types[kind] == "" {
			return nil, fmt.Errorf("read the label of %s: %.100q is none", filepath.Join(o.Usr, dir), label)
		}
	}
	return l, nil
}

// noLabels reports whether an error says that a file, or its file system, has
// no labels: NFS, or what is mounted with context=.
func noLabels(err error) bool {
	return errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS)
}

// labelOf reads a label without the NUL at its end.
func labelOf(path string, get func(path, attr string, dest []byte) (int, error)) (string, error) {
	var buf [maxLabel]byte
	n, err := get(path, selinuxAttr, buf[:])
	if err != nil {
		return "", err
	}
	return strings.TrimRight(string(buf[:n]), "\x00"), nil
}

// typeOf is the third part of user:role:type:level.
func typeOf(label string) string {
	parts := strings.SplitN(label, ":", 4)
	if len(parts) < 3 {
		return ""
	}
	return parts[2]
}

// withType is label with another type: its user, role and level stay, which
// only the privileged may change.
func withType(label, t string) string {
	parts := strings.SplitN(label, ":", 4)
	if len(parts) < 3 {
		return ""
	}
	parts[2] = t
	return strings.Join(parts, ":")
}

// set gives path, itself and not what it leads to, the type of a kind, unless it
// has it.
func (l *labeller) set(path string, kind labelKind) (changed bool, err error) {
	have, err := labelOf(path, unix.Lgetxattr)
	if err != nil && !errors.Is(err, unix.ENODATA) {
		return false, err
	}
	want := withType(have, l.types[kind])
	switch {
	case want == "":
		want = l.whole[kind]
	case want == have:
		return false, nil
	}
	return true, unix.Lsetxattr(path, selinuxAttr, append([]byte(want), 0), 0)
}

// Labelled is what a pass over a tree did.
type Labelled struct {
	Entries int    // looked at
	Changed int    // got another label
	Trouble string // why it gave up, "" if it did not: the tree is usable without
}

// Label gives what is staged the SELinux types of the machine's own /usr:
// programs those of /usr/bin, libraries those of /usr/lib. Without it confined
// services and containers could not run what is installed below /var/lib. It
// comes before Reuse, which shares only files of the same label, so that
// generations that share an inode agree about it; of several names of one inode
// in the tree, a program's counts before a library's. Where there is no SELinux
// it does nothing, and where labels cannot be set it gives up: neither is an
// error.
func (st *Staging) Label(ctx context.Context) (Labelled, error) {
	l, err := st.slot.store.labeller()
	if err != nil {
		return Labelled{Trouble: err.Error()}, nil
	}
	if l == nil {
		return Labelled{}, nil
	}
	p := &labelPass{labeller: l, ctx: ctx, root: st.dir, inodes: map[inode]labelKind{}}
	err = filepath.WalkDir(st.dir, p.visit)
	for path, id := range p.later {
		if err == nil {
			err = p.give(path, p.inodes[id])
		}
	}
	switch {
	case err == nil, noLabels(err):
		return p.done, nil
	case ctx.Err() != nil:
		return p.done, fmt.Errorf("label: %w", ctx.Err())
	}
	p.done.Trouble = err.Error()
	return p.done, nil
}

// labelPass is one Label.
type labelPass struct {
	*labeller
	ctx    context.Context
	root   string
	done   Labelled
	inodes map[inode]labelKind // of files with several names, the highest kind
	later  map[string]inode    // one name of each
}

func (p *labelPass) visit(path string, e fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	if err := p.ctx.Err(); err != nil {
		return err
	}
	p.done.Entries++
	kind := kindOf(strings.TrimPrefix(path, p.root))
	if e.Type().IsRegular() {
		fi, err := e.Info()
		if err != nil {
			return err
		}
		if st := statOf(fi); st.Nlink > 1 {
			id := inode{st.Dev, st.Ino}
			if _, seen := p.inodes[id]; !seen {
				if p.later == nil {
					p.later = map[string]inode{}
				}
				p.later[path] = id
			}
			p.inodes[id] = max(p.inodes[id], kind)
			return nil
		}
	}
	return p.give(path, kind)
}

func (p *labelPass) give(path string, kind labelKind) error {
	changed, err := p.set(path, kind)
	if err != nil {
		return &fs.PathError{Op: "set the SELinux label of", Path: path, Err: err}
	}
	if changed {
		p.done.Changed++
	}
	return nil
}

// labelDirs gives the directories of the slot the type of /usr, which what is
// made in them inherits. What goes wrong shows in Label.
func (sl *Slot) labelDirs() {
	l, err := sl.store.labeller()
	if l == nil || err != nil {
		return
	}
	for _, dir := range []string{filepath.Dir(sl.path()), sl.path(), sl.path(generationsName)} {
		if fi, err := os.Lstat(dir); err == nil && fi.IsDir() {
			if _, err := l.set(dir, labelUsr); err != nil {
				return
			}
		}
	}
}
