package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// RebuildTarballs writes the records of kept tarballs anew that are lost or
// damaged, where the parts have a digest that the ledger has of the name: the
// generations that were made of it want it again. What was there of a record lies
// beside it, as tarball.json.broken. Of what cannot be rebuilt Event is told why,
// and it is left; a record of a newer program is none of that. Only tarballs whose
// record cannot be read are read. The caller holds run.lock.
func (s *Store) RebuildTarballs(ctx context.Context) error {
	_, bad, err := s.scanTarballs("", "")
	if err != nil {
		return err
	}
	for _, b := range bad {
		if b.Name != "" || errors.Is(b.Err, ErrNewer) {
			continue // another tarball's, or a newer program's
		}
		err := s.asOwner(func() error { return s.rebuildTarball(ctx, b.Dir) })
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("rebuild the record of %s: %w", b.Dir, ctx.Err())
		case err != nil:
			s.event(EventTarball, "", b.Dir, "%v; it cannot be rebuilt: %v", b, err)
		default:
			s.event(EventTarball, "", b.Dir, "its record was lost, and was made anew of its parts and the ledger")
		}
	}
	return nil
}

// rebuildTarball is RebuildTarballs of one directory.
func (s *Store) rebuildTarball(ctx context.Context, dir string) error {
	name, _, _ := strings.Cut(filepath.Base(dir), tarballDigestSep)
	pins, err := s.FindPins(name)
	if err != nil {
		return err
	}
	err = errors.New("the ledger knows no tarball of that name and size")
	for i := len(pins) - 1; i >= 0; i-- {
		pin := pins[i]
		d, ok := partsOf(dir, pin.Size)
		if !ok || spoolName(pin.Channel) != filepath.Base(filepath.Dir(dir)) {
			continue
		}
		if d.Sums, err = sumParts(ctx, d, pin); err != nil {
			continue // of another content of the name, perhaps
		}
		return s.rewriteRecord(dir, &tarballRecord{Schema: tarballSchema, Pin: pin, Kept: s.now(), PartSize: d.PartSize, Parts: d.Sums, Slots: s.madeOf(pin.Digest)})
	}
	return err
}

// rewriteRecord puts a record in place of one that is of no use.
func (s *Store) rewriteRecord(dir string, rec *tarballRecord) error {
	b, err := rec.encode()
	if err != nil {
		return err
	}
	path := filepath.Join(dir, tarballName)
	if _, err := os.Lstat(path); err == nil {
		if err := os.Rename(path, path+".broken"); err != nil {
			return err
		}
	}
	return s.disk.writeFile(path, b)
}

// partsOf tells the size of the parts of a tarball of so many bytes by that of the
// first, and whether all are there.
func partsOf(dir string, size int64) (Download, bool) {
	fi, err := os.Lstat(filepath.Join(dir, partName(0)))
	if err != nil || !fi.Mode().IsRegular() {
		return Download{}, false
	}
	n := partCount(size, fi.Size())
	if n < 1 || n > maxTarballParts {
		return Download{}, false
	}
	last, err := os.Lstat(filepath.Join(dir, partName(int(n-1))))
	if err != nil || last.Size() != size-(n-1)*fi.Size() {
		return Download{}, false
	}
	return Download{Dir: dir, PartSize: fi.Size()}, true
}

// madeOf are the slots that have a generation of a tarball, and since when.
func (s *Store) madeOf(digest release.Digest) map[string]time.Time {
	wants := map[string]time.Time{}
	slots, err := s.Slots()
	if err != nil {
		return wants // nobody is known to want it: it stays
	}
	for _, sl := range slots {
		gens, err := sl.Generations()
		if err != nil {
			continue
		}
		for i := range gens {
			m, err := gens[i].Manifest()
			if err == nil && release.Digest(m.Digest) == digest && gens[i].Installed.After(wants[sl.Name()]) {
				wants[sl.Name()] = gens[i].Installed
			}
		}
	}
	return wants
}
