package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/fault"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// Download is a tarball as its download has left it on disk: see KeepTarball.
type Download struct {
	Dir      string           // of the parts 0000, 0001, …, all of them synced
	PartSize int64            // bytes of every part but the last
	Sums     []release.Digest // of each part, where the digest of the whole was settled while they were found out; nil: all is read
}

// KeepTarball keeps a whole download for a slot ("" for none that is here): its
// directory is renamed to where kept tarballs are, or copied where that is on
// another file system, and in either case it is gone from where it was. What
// was kept of the same bytes before is replaced, and whoever wanted it still
// does. Bytes that do not have the digest of pin are a *release.MismatchError,
// and stay where they are. Whatever ends it, what there is is a whole download
// or a kept tarball. The caller holds run.lock.
func (s *Store) KeepTarball(ctx context.Context, pin LedgerEntry, d Download, slot string) (*Tarball, error) {
	err := s.giveBackAll() // a download is whose process made it
	var t *Tarball
	if err == nil {
		err = s.asOwner(func() (err error) {
			t, err = s.keepTarball(ctx, pin, d, slot)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("keep the tarball %s: %w", pin.Name, lockHint(err))
	}
	return t, nil
}

func (s *Store) keepTarball(ctx context.Context, pin LedgerEntry, d Download, slot string) (*Tarball, error) {
	pin, err := checkPin(pin)
	if err != nil {
		return nil, err
	}
	now := s.now()
	pin.Schema = ledgerSchema
	if pin.FirstSeen.IsZero() {
		pin.FirstSeen = now
	}
	rec := &tarballRecord{Schema: tarballSchema, Pin: pin, Kept: now, PartSize: d.PartSize, Parts: d.Sums, Slots: map[string]time.Time{}}
	if rec.Parts == nil {
		if rec.Parts, err = sumParts(ctx, d, pin); err != nil {
			return nil, err
		}
	}
	t := rec.tarball(d.Dir)
	root, err := os.OpenRoot(d.Dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := errors.Join(rec.check(), t.publish(root)); err != nil {
		return nil, err
	}
	to, old, err := s.placeFor(pin)
	if err != nil {
		return nil, err
	}
	inherit(rec, old)
	inherit(rec, wantedBefore(d.Dir, pin.Digest))
	if slot != "" {
		rec.Slots[slot] = now
	}
	b, err := rec.encode()
	if err != nil {
		return nil, err
	}
	if err := s.disk.mkdirAll(filepath.Dir(to)); err != nil {
		return nil, err
	}
	if err := s.disk.writeFile(filepath.Join(d.Dir, tarballName), b); err != nil {
		return nil, err
	}
	if err := s.moveTarball(ctx, d.Dir, to, rec); err != nil {
		return nil, err
	}
	return rec.tarball(to), nil
}

// inherit takes over who wants the same bytes.
func inherit(rec *tarballRecord, old *Tarball) {
	if old != nil && old.Digest == rec.Pin.Digest {
		maps.Copy(rec.Slots, old.wants)
	}
}

// wantedBefore is the tarball that a download was before a part of it was
// damaged and fetched again; nil if it was none.
func wantedBefore(dir string, digest release.Digest) *Tarball {
	t, err := readTarball(dir)
	if err != nil || t.Digest != digest {
		return nil
	}
	return t
}

// sumParts reads a download, and computes the digests of its parts.
func sumParts(ctx context.Context, d Download, pin LedgerEntry) ([]release.Digest, error) {
	n := partCount(pin.Size, d.PartSize)
	if n < 1 || n > maxTarballParts {
		return nil, fmt.Errorf("parts of %d bytes are no tarball of %d", d.PartSize, pin.Size)
	}
	root, err := os.OpenRoot(d.Dir)
	if err != nil {
		return nil, err
	}
	t := &Tarball{Name: pin.Name, Dir: d.Dir, Size: pin.Size, PartSize: d.PartSize, Parts: make([]release.Digest, n)}
	parts := &partsReader{t: t, root: root}
	defer parts.Close() // opened for reading
	sums := NewPartSums(d.PartSize)
	v := release.NewVerifiedReader(&ctxReader{ctx, parts}, release.Expectation{Digest: pin.Digest, Source: "what was verified"})
	if _, err := io.CopyBuffer(sums, v, make([]byte, 1<<20)); err != nil {
		return nil, err
	}
	return sums.Sums(), nil
}

// publish makes sure that every part is there, of its length, and readable by
// everybody.
func (t *Tarball) publish(root *os.Root) error {
	for i := range t.Parts {
		f, err := t.openPart(root, i)
		if err != nil {
			return err
		}
		if err := errors.Join(readable(f, fileMode), f.Close()); err != nil {
			return err
		}
	}
	for name, mode := range map[string]fs.FileMode{".": dirMode, "state.json": fileMode} { // the second is the download's
		f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := errors.Join(readable(f, mode), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// readable gives f a mode, unless it has it: whose file it is not need not set it.
func readable(f *os.File, mode fs.FileMode) error {
	fi, err := f.Stat()
	if err != nil || fi.Mode().Perm() == mode {
		return err
	}
	return f.Chmod(mode)
}

// placeFor finds the name under which a tarball is kept, and what is kept there
// of the same bytes. Other bytes of its name keep theirs.
func (s *Store) placeFor(pin LedgerEntry) (dir string, old *Tarball, err error) {
	for _, digest := range []release.Digest{"", pin.Digest} {
		dir = s.tarballDir(pin.Channel, pin.Name, digest)
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		t, err := readTarball(dir)
		switch {
		case errors.Is(err, ErrNewer): // whatever it is, it is left alone
		case err == nil && t.Digest == pin.Digest:
			return dir, t, nil
		case err != nil && digest != "":
			return dir, nil, nil // of these bytes, without a record: replaced
		}
	}
	dir = s.tarballDir(pin.Channel, pin.Name, "")
	t, err := readTarball(dir)
	switch {
	case errors.Is(err, ErrNewer), err == nil && t.Digest != pin.Digest:
		return s.tarballDir(pin.Channel, pin.Name, pin.Digest), nil, nil
	}
	return dir, nil, nil // free, or held by what has no record
}

// moveTarball gives the download in from its kept name.
func (s *Store) moveTarball(ctx context.Context, from, to string, rec *tarballRecord) error {
	parent := filepath.Dir(to)
	made := from
	err := s.makeWay(to)
	if err == nil {
		err = fault.Do("store.tarball.move", func() error { return renameNew(from, to) })
	}
	if errors.Is(err, unix.EXDEV) {
		made = filepath.Join(parent, keepingPrefix+random())
		if err = s.copyTarball(ctx, from, made, rec); err == nil {
			err = renameNew(made, to)
		}
		if err != nil {
			return errors.Join(err, removeTree(made))
		}
	}
	if err != nil {
		return err
	}
	if err := errors.Join(fault.Point("store.tarball.moved"), s.disk.syncDir(parent)); err != nil {
		return err
	}
	if made != from {
		if err := os.RemoveAll(from); err != nil { // it is kept all the same
			s.event(EventDebris, "", from, "could not be removed: %v", err)
		}
	}
	return s.disk.syncDir(filepath.Dir(from))
}

// makeWay moves what is at a kept name to one that is deleted.
func (s *Store) makeWay(to string) error {
	if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	dying := filepath.Join(filepath.Dir(to), dyingPrefix+random())
	if err := fault.Do("store.tarball.way", func() error { return moveAway(to, dying) }); err != nil {
		return err
	}
	if err := removeTree(dying); err != nil {
		s.event(EventDebris, "", dying, "could not be removed: %v", err)
	}
	return nil
}

// copyTarball copies a download to another file system, durably, and compares
// what was read with the digests of the parts.
func (s *Store) copyTarball(ctx context.Context, from, to string, rec *tarballRecord) error {
	if err := os.Mkdir(to, dirMode); err != nil {
		return err
	}
	if err := os.Chmod(to, dirMode); err != nil {
		return err
	}
	src, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer src.Close()
	t := rec.tarball(from)
	for i := range t.Parts {
		if err := t.copyPart(ctx, src, to, i); err != nil {
			return err
		}
	}
	b, err := rec.encode()
	if err != nil {
		return err
	}
	return s.disk.writeFile(filepath.Join(to, tarballName), b)
}

func (t *Tarball) copyPart(ctx context.Context, src *os.Root, to string, i int) (err error) {
	f, err := t.openPart(src, i)
	if err != nil {
		return err
	}
	defer f.Close()
	out, err := os.OpenFile(filepath.Join(to, partName(i)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	v := release.NewVerifiedReader(&ctxReader{ctx, f}, release.Expectation{Digest: t.Parts[i], Source: "its download"})
	if _, err := io.CopyBuffer(onlyWriter{out}, v, make([]byte, 1<<20)); err != nil {
		return fmt.Errorf("copy %s: %w", partName(i), err)
	}
	return errors.Join(out.Chmod(fileMode), out.Sync())
}

// WantTarball notes that a slot has installed a kept tarball: it is the last one
// of that slot now. The caller holds run.lock.
func (s *Store) WantTarball(t *Tarball, slot string) error {
	rec := t.record()
	rec.Slots[slot] = s.now()
	return s.rewriteTarball(t, rec)
}

// record is what tarball.json says of t; its map is a copy.
func (t *Tarball) record() *tarballRecord {
	rec := &tarballRecord{Schema: tarballSchema, Pin: t.entry, Kept: t.Kept, Slots: maps.Clone(t.wants), PartSize: t.PartSize, Parts: t.Parts}
	if rec.Slots == nil {
		rec.Slots = map[string]time.Time{}
	}
	return rec
}

func (s *Store) rewriteTarball(t *Tarball, rec *tarballRecord) error {
	b, err := rec.encode()
	if err == nil {
		err = s.asOwner(func() error { return s.disk.writeFile(filepath.Join(t.Dir, tarballName), b) })
	}
	if err != nil {
		return fmt.Errorf("note who wants the tarball %s: %w", t.Name, lockHint(err))
	}
	*t = *rec.tarball(t.Dir)
	return nil
}

// ReopenTarball makes a kept tarball a download again, at the path to, which
// must be absent, without the parts that are named: those are fetched anew. Who
// wants it is kept in mind. The caller holds run.lock.
func (s *Store) ReopenTarball(t *Tarball, without []string, to string) error {
	err := s.asOwner(func() error {
		// The parts go first: a download with a damaged one would be believed.
		if err := t.dropParts(without); err != nil {
			return err
		}
		if err := errors.Join(s.disk.syncDir(t.Dir), s.disk.mkdirAll(filepath.Dir(to))); err != nil {
			return err
		}
		if err := renameNew(t.Dir, to); err != nil {
			return err
		}
		return errors.Join(s.disk.syncDir(filepath.Dir(to)), s.disk.syncDir(filepath.Dir(t.Dir)))
	})
	if err != nil {
		return fmt.Errorf("fetch parts of the kept tarball %s again: %w", t.Name, lockHint(err))
	}
	return nil
}

// ShelveTarball takes ReopenTarball back, where the download did not come to its
// end: what is whole of the tarball is kept as it was.
func (s *Store) ShelveTarball(t *Tarball, from string) error {
	if wantedBefore(from, t.Digest) == nil {
		return nil // it was not reopened, or was thrown away
	}
	err := s.giveBackAll()
	if err == nil {
		err = s.asOwner(func() error {
			if err := renameNew(from, t.Dir); err != nil {
				return err
			}
			return errors.Join(s.disk.syncDir(filepath.Dir(t.Dir)), s.disk.syncDir(filepath.Dir(from)))
		})
	}
	if err != nil {
		return fmt.Errorf("put back what is whole of the kept tarball %s: %w", t.Name, lockHint(err))
	}
	return nil
}

func (t *Tarball) dropParts(names []string) error {
	for _, name := range names {
		if !isPartName(name) {
			return fmt.Errorf("%q is no part", name)
		}
		if err := os.Remove(filepath.Join(t.Dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func isPartName(name string) bool {
	var i int
	_, err := fmt.Sscanf(name, "%d", &i)
	return err == nil && i >= 0 && partName(i) == name
}
