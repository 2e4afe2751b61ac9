package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// Mending is the repair of one generation, in use or not. Good copies wait in a
// staging directory of the slot until Apply has made them durable and renames each
// to its place: no file that is there is ever written to, for it may be one of
// other generations too, or mapped by a program. Whatever ends it, each entry is as
// it was or whole, and the next run removes the rest.
type Mending struct {
	slot    *Slot
	v       *Verification
	at      *os.File // the generation
	staging *Staging
	temp    *os.File // the staging directory
	next    int
	owner   unix.Stat_t // of the directory of the generations
	labels  *labeller   // nil: no SELinux

	wanted map[[32]byte][]*item // what has no good copy yet, by digest
	copies []waiting
	bad    map[inode]bool // damaged inodes
	res    Mended
}

// waiting is a good copy, by its name in the staging directory.
type waiting struct {
	item *item
	name string
}

// Mended says what a Mending did.
type Mended struct {
	Entries int          // that are as they should be now
	From    []MendedFrom // where their content came from
	Notes   []string     // what could not be done, in words
}

// MendedFrom counts the good copies of one source.
type MendedFrom struct {
	Source string `json:"source"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
}

// Mend begins to repair what Verify found. The caller holds run.lock, and ends it
// with Close.
func (s *Store) Mend(ctx context.Context, v *Verification) (*Mending, error) {
	m, err := s.mend(ctx, v)
	if err != nil {
		return nil, fmt.Errorf("repair %s: %w", v.Generation, err)
	}
	return m, nil
}

func (s *Store) mend(ctx context.Context, v *Verification) (m *Mending, err error) {
	m = &Mending{v: v, wanted: map[[32]byte][]*item{}, bad: map[inode]bool{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.Close())
		}
	}()
	if m.slot, err = s.FindSlot(v.Slot); err != nil {
		return m, err
	}
	if m.at, err = os.OpenFile(v.Prefix, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0); err != nil {
		return m, err
	}
	if err := unix.Fstatat(int(m.at.Fd()), "..", &m.owner, 0); err != nil {
		return m, err
	}
	if m.staging, err = m.slot.Stage(ctx); err != nil {
		return m, err
	}
	if m.temp, err = os.OpenFile(m.staging.Dir(), os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0); err != nil {
		return m, err
	}
	m.labels, _ = m.slot.store.labeller() // without labels it is mended all the same, as it is installed
	m.want()
	return m, nil
}

// Close ends the repair. What was not applied is thrown away.
func (m *Mending) Close() error {
	for _, f := range []*os.File{m.at, m.temp} {
		if f != nil {
			f.Close() // opened for reading
		}
	}
	if m.staging == nil {
		return nil
	}
	return m.staging.Abort()
}

// trusted reports whether files.jsonl is what it was: what it lists may be mended.
func (m *Mending) trusted() bool {
	return m.v.list != nil && m.v.lists[1].found.bad&^(flawMode|flawOwner) == 0
}

// want finds what needs bytes.
func (m *Mending) want() {
	for i := range m.v.lists {
		if e := &m.v.lists[i]; e.found.bad&(wantsBytes|flawList) != 0 && m.v.sealed[i] != [32]byte{} {
			e.sum = m.v.sealed[i]
			m.wanted[e.sum] = append(m.wanted[e.sum], e)
		}
	}
	if !m.trusted() {
		return
	}
	for i := range m.v.list.entries {
		e := &m.v.list.entries[i]
		if e.kind != manifest.Regular || e.same != "" || e.found.bad&wantsBytes == 0 {
			continue
		}
		m.wanted[e.sum] = append(m.wanted[e.sum], e)
		if e.found.ino != 0 {
			m.bad[inode{e.found.dev, e.found.ino}] = true
		}
	}
}

// Wanted is how many files have no good copy yet.
func (m *Mending) Wanted() int {
	n := 0
	for _, items := range m.wanted {
		n += len(items)
	}
	return n
}

// Missing lists the files that have no good copy yet, by path.
func (m *Mending) Missing() []string {
	var paths []string
	for _, items := range m.wanted {
		for _, e := range items {
			paths = append(paths, e.path)
		}
	}
	slices.Sort(paths)
	return paths
}

// Directories mends directories, which come before what is in them: it says how
// many were missing, something else, or of another mode.
func (m *Mending) Directories(ctx context.Context) (int, error) {
	n := 0
	if m.v.top.found.bad != 0 {
		if err := errors.Join(m.own(m.at), chmod(m.at, m.v.top.mode)); err != nil {
			return 0, fmt.Errorf("repair %s: %w", m.v.Generation, err)
		}
		n++
	}
	if !m.trusted() {
		return n, nil
	}
	for i := range m.v.list.entries { // parents sort before what is in them
		e := &m.v.list.entries[i]
		if e.kind != manifest.Dir || e.found.bad == 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return n, err
		}
		if err := m.in(e, func(dir *os.File, base string) error { return m.directory(dir, base, e) }); err != nil {
			m.note(e, err)
			continue
		}
		n++
	}
	if n > 0 {
		if err := m.slot.store.disk.syncFS(m.v.Prefix); err != nil {
			return n, fmt.Errorf("repair %s: %w", m.v.Generation, err)
		}
	}
	m.res.Entries += n
	return n, nil
}

// directory makes one directory what it should be.
func (m *Mending) directory(dir *os.File, base string, e *item) error {
	at := int(dir.Fd())
	if e.found.bad&flawKind != 0 {
		if err := unix.Unlinkat(at, base, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if e.found.bad&(flawKind|flawMissing) != 0 {
		if err := unix.Mkdirat(at, base, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	f, err := openPath(dir, base)
	if err != nil {
		return err
	}
	defer f.Close()
	if m.labels != nil {
		_, _ = m.labels.set(fdPath(dir)+"/"+base, kindOf(e.path))
	}
	return errors.Join(m.own(f), chmod(f, e.mode), setTime(f, e.mtime))
}

// label gives a copy the SELinux type that the installed file had: what it inherits
// from the staging directory is that of no program. Of several names of an inode the
// highest kind counts, as when it was installed.
func (m *Mending) label(name string, e *item) {
	if m.labels == nil {
		return
	}
	kind := kindOf(e.path)
	if m.trusted() {
		for i := range m.v.list.entries {
			if twin := &m.v.list.entries[i]; twin.same == e.path {
				kind = max(kind, kindOf(twin.path))
			}
		}
	}
	_, _ = m.labels.set(fdPath(m.temp)+"/"+name, kind) // as in an install, no error
}

// note says of an entry that it could not be mended.
func (m *Mending) note(e *item, err error) {
	m.res.Notes = append(m.res.Notes, fmt.Sprintf("%s could not be mended: %v", e.path, err))
}

// in runs do with the directory that an entry is in, and gives that back the time
// that it had.
func (m *Mending) in(e *item, do func(dir *os.File, base string) error) error {
	parent := filepath.Dir(e.path)
	dir, err := openBeneath(m.at, parent)
	if err != nil {
		return err
	}
	defer dir.Close() // opened for reading
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return err
	}
	was := st.Mtim
	if d := m.v.list; d != nil {
		if of := d.at(parent); of != nil {
			was = unix.NsecToTimespec(of.mtime * 1e9)
		}
	}
	err = do(dir, filepath.Base(e.path))
	return cmp.Or(err, unix.UtimesNanoAt(unix.AT_FDCWD, fdPath(dir), []unix.Timespec{was, was}, 0))
}

// fdPath is a path to what is open, whatever has come into its place since.
func fdPath(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// openPath opens what has a name in dir for a look, whatever it is and forbids.
func openPath(dir *os.File, base string) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), base, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: base, Err: err}
	}
	return os.NewFile(uintptr(fd), base), nil
}

func chmod(f *os.File, mode uint32) error { return unix.Chmod(fdPath(f), mode) }

// setTime sets both times of what is open, in Unix seconds.
func setTime(f *os.File, seconds int64) error {
	ts := unix.NsecToTimespec(seconds * 1e9)
	return unix.UtimesNanoAt(unix.AT_FDCWD, fdPath(f), []unix.Timespec{ts, ts}, 0)
}

// own gives what root has made, or finds to be another user's, to the store's owner.
func (m *Mending) own(f *os.File) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return unix.Chown(fdPath(f), int(m.owner.Uid), int(m.owner.Gid))
}

// VerifyAgain verifies a generation once more after a repair: what was damaged is
// read, and the rest compared by size, time and inode.
func (s *Store) VerifyAgain(ctx context.Context, was *Verification) (*Verification, error) {
	p := &prover{store: s, o: VerifyOptions{Fast: was.seal != nil}, known: map[inode]proof{}, unsealed: was.Method == MethodManifest}
	p.ready()
	v, err := p.verify(ctx, &was.gen, was.seal)
	if err == nil && !v.Gone {
		v.Method = was.Method
		err = s.nameShared(ctx, v)
	}
	if err != nil {
		return nil, fmt.Errorf("verify %s: %w", was.Generation, err)
	}
	return v, nil
}
