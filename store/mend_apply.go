package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// errOccupied says that a directory is where a file should be.
var errOccupied = errors.New("a directory that is not empty is in its place (move it away)")

// Apply puts the good copies in their places, and mends what needs none: links,
// further names, modes, times and capabilities. What cannot be mended is noted, and
// the rest goes on.
func (m *Mending) Apply(ctx context.Context) (*Mended, error) {
	if err := m.apply(ctx); err != nil {
		return &m.res, fmt.Errorf("repair %s: %w", m.v.Generation, err)
	}
	return &m.res, nil
}

func (m *Mending) apply(ctx context.Context) error {
	disk := m.slot.store.disk
	links, err := m.links(ctx)
	if err != nil {
		return err
	}
	all := append(m.copies, links...)
	if len(all) > 0 { // the bytes before the names
		if err := disk.syncFS(m.staging.Dir()); err != nil {
			return err
		}
	}
	slices.SortStableFunc(all, func(a, b waiting) int { return cmp.Compare(a.item.path, b.item.path) })
	replaced := map[*item]bool{}
	for _, w := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := m.place(w); err != nil {
			m.note(w.item, err)
			continue
		}
		replaced[w.item] = true
		m.res.Entries++
	}
	if m.trusted() {
		m.twins(replaced)
	}
	m.inodes(replaced)
	m.times()
	if m.res.Entries > 0 {
		return disk.syncFS(m.v.Prefix)
	}
	return nil
}

// place renames a good copy over what is there.
func (m *Mending) place(w waiting) error {
	return m.in(w.item, func(dir *os.File, base string) error {
		err := unix.Renameat(int(m.temp.Fd()), w.name, int(dir.Fd()), base)
		if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.ENOTEMPTY) {
			return err
		}
		if err := unix.Unlinkat(int(dir.Fd()), base, unix.AT_REMOVEDIR); err != nil {
			return errOccupied
		}
		return unix.Renameat(int(m.temp.Fd()), w.name, int(dir.Fd()), base)
	})
}

// links makes the symlinks that are missing or lead elsewhere.
func (m *Mending) links(ctx context.Context) ([]waiting, error) {
	if !m.trusted() {
		return nil, nil
	}
	var made []waiting
	for i := range m.v.list.entries {
		e := &m.v.list.entries[i]
		if e.kind != manifest.Symlink || e.found.bad == 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m.next++
		name := strconv.Itoa(m.next)
		at := int(m.temp.Fd())
		if err := unix.Symlinkat(e.link, at, name); err != nil {
			return nil, err
		}
		ts := unix.NsecToTimespec(e.mtime * 1e9)
		err := unix.UtimesNanoAt(at, name, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
		if err == nil && os.Geteuid() == 0 {
			err = unix.Fchownat(at, name, int(m.owner.Uid), int(m.owner.Gid), unix.AT_SYMLINK_NOFOLLOW)
		}
		if err != nil {
			return nil, err
		}
		m.label(name, e)
		made = append(made, waiting{e, name})
	}
	return made, nil
}

// twins gives inodes their further names: those that are missing or another file's,
// and those of what was replaced.
func (m *Mending) twins(replaced map[*item]bool) {
	for i := range m.v.list.entries {
		e := &m.v.list.entries[i]
		if e.same == "" {
			continue
		}
		first := m.v.list.first(e)
		switch {
		case first.found.bad&wantsBytes != 0 && !replaced[first]:
			continue // there is nothing to be the same as
		case e.found.bad == 0 && !replaced[first]:
			continue
		}
		if err := m.twin(first, e); err != nil {
			m.note(e, err)
			continue
		}
		m.res.Entries++
	}
}

// twin makes e a name of what first is.
func (m *Mending) twin(first, e *item) error {
	m.next++
	w := waiting{e, strconv.Itoa(m.next)}
	dir, err := openBeneath(m.at, path.Dir(first.path))
	if err != nil {
		return err
	}
	err = unix.Linkat(int(dir.Fd()), path.Base(first.path), int(m.temp.Fd()), w.name, 0)
	dir.Close() // opened for reading
	if err != nil {
		return err
	}
	return m.place(w)
}

// times gives directories the times that they are listed with, which a repair that
// was killed between a rename and this had no time for.
func (m *Mending) times() {
	if !m.trusted() {
		return
	}
	for i := range m.v.list.entries {
		e := &m.v.list.entries[i]
		if e.kind != manifest.Dir {
			continue
		}
		dir, err := openBeneath(m.at, e.path)
		if err != nil {
			continue // what it is instead was said
		}
		var st unix.Stat_t
		if unix.Fstat(int(dir.Fd()), &st) == nil && st.Mtim.Nano() != e.mtime*1e9 {
			_ = setTime(dir, e.mtime) // nothing goes by it
		}
		dir.Close() // opened for reading
	}
}

// inodes mends modes, times and capabilities of files whose bytes are right: those
// are the inode's, and right for all of its names.
func (m *Mending) inodes(replaced map[*item]bool) {
	mend := func(e *item) {
		const own = flawMode | flawOwner | flawTime | flawCapability
		if e.kind == manifest.Dir || e.kind == manifest.Symlink || e.same != "" || e.found.bad&own == 0 || e.found.bad&^own != 0 || replaced[e] {
			return
		}
		if err := m.in(e, func(dir *os.File, base string) error { return m.inode(dir, base, e) }); err != nil {
			m.note(e, err)
			return
		}
		m.res.Entries++
	}
	for i := range m.v.lists {
		mend(&m.v.lists[i])
	}
	if !m.trusted() {
		return
	}
	for i := range m.v.list.entries {
		mend(&m.v.list.entries[i])
	}
}

// inode mends one inode, if it is still the one that was looked at.
func (m *Mending) inode(dir *os.File, base string, e *item) error {
	f, err := openPath(dir, base)
	if err != nil {
		return err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	if st.Ino != e.found.ino || st.Dev != e.found.dev || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return errors.New("it was replaced meanwhile")
	}
	if e.found.bad&flawCapability != 0 {
		if err := unix.Removexattr(fdPath(f), capability); err != nil && !errors.Is(err, unix.ENODATA) {
			return err
		}
	}
	if e.found.bad&flawOwner != 0 {
		if err := unix.Chown(fdPath(f), int(m.owner.Uid), int(m.owner.Gid)); err != nil {
			return fmt.Errorf("give it back to its owner: %w", err)
		}
	}
	if err := chmod(f, e.mode); err != nil { // which chown has changed
		return err
	}
	return setTime(f, e.mtime)
}
