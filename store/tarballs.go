package store

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// The names of kept tarballs.
const (
	tarballsName     = "tarballs"
	tarballName      = "tarball.json" // the record, among the parts
	tarballDigestSep = "@"            // before the digest in the name of a second one of a file name; no file name has it
	keepingPrefix    = ".keeping-"    // a copy on its way from another file system
)

// tarballSchema is the version of tarball.json that this package writes.
const tarballSchema = 1

// Bounds of tarball.json.
const (
	maxTarballLen   = 16 << 20 // bytes
	maxTarballParts = 1 << 16  // as many as a download may have
	maxTarballSlots = 1 << 10
)

// EventTarball is the Kind of an Event about a kept tarball that is of no use.
const EventTarball = "tarball"

// Tarball is a tarball that is kept as the parts in which it was downloaded:
// 0000, 0001, … in Dir, each of PartSize bytes but the last, beside the record
// tarball.json.
type Tarball struct {
	Channel string
	Name    string // file name, as AMD lists it
	Dir     string // absolute
	Size    int64  // bytes
	Digest  release.Digest
	Kept    time.Time // when a slot last installed it, or else when it was kept; UTC

	Slots    []string         // those that want it, by name
	PartSize int64            // bytes
	Parts    []release.Digest // of each part: they tell where damage is

	entry LedgerEntry
	wants map[string]time.Time
}

// Pin returns what the ledger's line of the tarball says.
func (t *Tarball) Pin() (release.Pin, error) { return t.entry.Pin() }

// Entry returns the ledger's line of the tarball.
func (t *Tarball) Entry() LedgerEntry { return t.entry }

// tarballRecord is the content of tarball.json.
type tarballRecord struct {
	Schema   int                  `json:"schema"`
	Pin      LedgerEntry          `json:"pin"`
	Kept     time.Time            `json:"kept"`
	Slots    map[string]time.Time `json:"slots,omitempty"` // who wants it, and since which installation
	PartSize int64                `json:"part_size"`
	Parts    []release.Digest     `json:"parts"` // SHA-256 of 0000, 0001, …
}

// TarballType is the type of a tarball.json, for those who describe it.
func TarballType() reflect.Type { return reflect.TypeFor[tarballRecord]() }

// parseTarball decodes a tarball.json. An error that matches ErrNewer means
// that the directory must be left alone; any other, that it is damaged.
func parseTarball(b []byte) (*tarballRecord, error) {
	if len(b) > maxTarballLen {
		return nil, fmt.Errorf("longer than %d bytes", maxTarballLen)
	}
	b, err := tarballFormat.Read(b)
	if err != nil {
		return nil, err
	}
	var r tarballRecord
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, err
	}
	return &r, r.check()
}

// check refuses what KeepTarball does not write.
func (r *tarballRecord) check() (err error) {
	if r.Schema != tarballSchema {
		return errors.New("no schema")
	}
	if r.Pin, err = checkPin(r.Pin); err != nil {
		return err
	}
	if err := checkChannel(r.Pin.Channel); err != nil {
		return err
	}
	n := partCount(r.Pin.Size, r.PartSize)
	if n < 1 || n > maxTarballParts || int64(len(r.Parts)) != n {
		return fmt.Errorf("%d parts of %d bytes are no tarball of %d", len(r.Parts), r.PartSize, r.Pin.Size)
	}
	for i := range r.Parts {
		if r.Parts[i], err = release.ParseDigest(string(r.Parts[i])); err != nil {
			return fmt.Errorf("part %d: %w", i, err)
		}
	}
	if len(r.Slots) > maxTarballSlots {
		return fmt.Errorf("%d slots", len(r.Slots))
	}
	for slot := range r.Slots {
		if err := checkName("slot", slot); err != nil {
			return err
		}
	}
	return nil
}

func (r *tarballRecord) encode() ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return nil, err
	}
	if b.Len() > maxTarballLen {
		return nil, fmt.Errorf("its record has more than %d bytes", maxTarballLen)
	}
	return b.Bytes(), nil
}

func (r *tarballRecord) tarball(dir string) *Tarball {
	t := &Tarball{
		Channel: r.Pin.Channel, Name: r.Pin.Name, Dir: dir, Size: r.Pin.Size, Digest: r.Pin.Digest, Kept: r.Kept.UTC(),
		Slots: slices.Sorted(maps.Keys(r.Slots)), PartSize: r.PartSize, Parts: r.Parts, entry: r.Pin, wants: r.Slots,
	}
	for _, at := range r.Slots {
		if at.After(t.Kept) {
			t.Kept = at.UTC()
		}
	}
	return t
}

// partCount returns how many parts a size takes; 0 for what is no size.
func partCount(size, part int64) int64 {
	if size < 1 || part < 1 {
		return 0
	}
	return (size-1)/part + 1
}

// partName is the name of part i, as a download writes it.
func partName(i int) string { return fmt.Sprintf("%04d", i) }

// partSize returns the length of part i in bytes.
func (t *Tarball) partSize(i int) int64 { return min(t.PartSize, t.Size-int64(i)*t.PartSize) }

// TarballsDir returns the directory that holds the kept tarballs. It need not
// exist, and may be a link to another file system.
func (s *Store) TarballsDir() string { return filepath.Join(s.root, tarballsName) }

// tarballDir returns where a tarball is kept; a second one of its name, with
// other bytes, has digest in its name.
func (s *Store) tarballDir(channel, name string, digest release.Digest) string {
	base := spoolName(name)
	if digest != "" {
		base += tarballDigestSep + digest.Encoded()[:16]
	}
	return filepath.Join(s.TarballsDir(), spoolName(channel), base)
}

// Tarballs returns what is kept, the last installed first. What has no record
// that can be read is told to Event and left out. It takes no lock.
func (s *Store) Tarballs() ([]Tarball, error) {
	found, bad, err := s.scanTarballs("", "")
	for _, b := range bad {
		s.event(EventTarball, "", b.Dir, "%v", b)
	}
	return found, err
}

// DamagedTarballs returns what is in the place of a kept tarball, and of no use:
// its record is lost, damaged or of a newer program. It takes no lock.
func (s *Store) DamagedTarballs() ([]*TarballError, error) {
	_, bad, err := s.scanTarballs("", "")
	return bad, err
}

// KeptTarball returns the kept tarball of that file name, nil if there is none.
// Where the name has had several contents, that is the one last installed. It
// takes no lock.
func (s *Store) KeptTarball(channel, name string) (*Tarball, error) {
	return s.KeptDigest(channel, name, "")
}

// KeptDigest is KeptTarball for one content of the name; "" is any.
func (s *Store) KeptDigest(channel, name string, digest release.Digest) (*Tarball, error) {
	found, bad, err := s.scanTarballs(channel, name)
	for _, b := range bad {
		s.event(EventTarball, "", b.Dir, "%v", b)
	}
	for i := range found {
		if digest == "" || found[i].Digest == digest {
			return &found[i], err
		}
	}
	return nil, err
}

// TarballError says what is wrong with a kept tarball.
type TarballError struct {
	Dir   string
	Name  string   // file name of the tarball, "" where the record does not say
	Parts []string // names of the parts that are damaged; empty if it is the record
	Err   error
}

func (e *TarballError) Error() string {
	if len(e.Parts) == 0 {
		return fmt.Sprintf("the kept tarball %s has no usable record: %v", e.Dir, e.Err)
	}
	return fmt.Sprintf("the kept tarball %s is damaged in %s: %v", e.Dir, strings.Join(last(e.Parts, 8), ", "), e.Err)
}

// Unwrap returns the cause.
func (e *TarballError) Unwrap() error { return e.Err }

// scanTarballs reads the records of one name, or of all where name is "".
func (s *Store) scanTarballs(channel, name string) (found []Tarball, bad []*TarballError, err error) {
	channels := []string{spoolName(channel)}
	if name == "" {
		if channels, err = s.tarballChannels(); err != nil {
			return nil, nil, fmt.Errorf("list kept tarballs: %w", err)
		}
	}
	for _, ch := range channels {
		dirs, err := subdirectories(filepath.Join(s.TarballsDir(), ch))
		if err != nil {
			return nil, nil, fmt.Errorf("list kept tarballs: %w", err)
		}
		for _, base := range dirs {
			file, _, _ := strings.Cut(base, tarballDigestSep)
			if name != "" && file != spoolName(name) {
				continue
			}
			dir := filepath.Join(s.TarballsDir(), ch, base)
			t, err := readTarball(dir)
			switch {
			case errors.Is(err, fs.ErrNotExist) && !isRealDir(dir): // removed meanwhile
			case err != nil:
				bad = append(bad, &TarballError{Dir: dir, Err: err})
			case spoolName(t.Name) != file || spoolName(t.Channel) != ch:
				bad = append(bad, &TarballError{Dir: dir, Name: t.Name, Err: fmt.Errorf("it is of %s in channel %s", t.Name, t.Channel)})
			default:
				found = append(found, *t)
			}
		}
	}
	slices.SortFunc(found, func(a, b Tarball) int { return cmp.Or(b.Kept.Compare(a.Kept), cmp.Compare(a.Dir, b.Dir)) })
	return found, bad, nil
}

// tarballChannels lists the channels of which something is kept. That of one may
// be a link to another file system, as the directory of all may.
func (s *Store) tarballChannels() ([]string, error) {
	entries, err := os.ReadDir(s.TarballsDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if fi, err := os.Stat(filepath.Join(s.TarballsDir(), e.Name())); err == nil && fi.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// subdirectories lists the real directories in dir that do not hide.
func subdirectories(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// isRealDir reports whether path is a directory, and no link to one.
func isRealDir(path string) bool {
	fi, err := os.Lstat(path)
	return err == nil && fi.IsDir()
}

// readTarball reads the record in dir.
func readTarball(dir string) (*Tarball, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := openRegular(root, tarballName)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxTarballLen+1))
	if err != nil {
		return nil, err
	}
	r, err := parseTarball(b)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", tarballName, err)
	}
	return r.tarball(dir), nil
}
