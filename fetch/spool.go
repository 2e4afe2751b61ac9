package fetch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/fault"
	"github.com/rocm-nightly/rocm-nightly/internal/schema"
)

const (
	stateName   = "state.json"
	stateSchema = 1
	partSuffix  = ".part"
	maxState    = 1 << 20 // bytes
	maxSegments = 1 << 16
)

// stateFormat is how state.json of another schema is read. Its steps and
// stateSchema go together.
var stateFormat = schema.Format{Name: stateName, Else: "remove the spool, and the download begins again"}

// state is state.json of a spool: of which object the segments are.
type state struct {
	Schema   int    `json:"schema"`
	URL      string `json:"url"` // without credentials and query
	ETag     string `json:"etag"`
	Modified string `json:"last_modified"`
	Size     int64  `json:"size"`      // bytes
	PartSize int64  `json:"part_size"` // bytes; fixed for the life of the spool
}

// same reports whether the segments of s are of the object o.
func (s state) same(o *object) bool {
	if s.Schema != stateSchema || s.URL != redactURL(o.url) || s.Size != o.size || s.ETag != o.etag {
		return false
	}
	if s.PartSize < 1 || segmentCount(s.Size, s.PartSize) > maxSegments {
		return false
	}
	if o.strong() {
		return true
	}
	return o.modified != "" && s.Modified == o.modified
}

// spool is the directory that holds the segments of one tarball. It is
// locked against other downloads while it is open.
type spool struct {
	dir   string
	lock  *os.File // the directory itself
	state state
}

// entryRE matches the names that a spool gives to segments.
var entryRE = regexp.MustCompile(`^([0-9]{4,})(\.part)?$`)

// errNotSpool protects a directory of the user's from being cleaned.
var errNotSpool = errors.New("it holds files named like segments but no " + stateName + ", so it is no spool of a download (empty it, or name another directory)")

func openSpool(dir string) (*spool, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open spool %s: %w", dir, err)
	}
	if err := os.MkdirAll(abs, 0o755); err != nil {
		return nil, fmt.Errorf("create spool: %w", err)
	}
	lock, err := os.Open(abs)
	if err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = errors.New("another download is using it")
	}
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("lock spool %s: %w", abs, err)
	}
	return &spool{dir: abs, lock: lock}, nil
}

// close gives up the lock.
func (s *spool) close() error { return s.lock.Close() }

func (s *spool) name(i int) string     { return fmt.Sprintf("%04d", i) }
func (s *spool) path(i int) string     { return filepath.Join(s.dir, s.name(i)) }
func (s *spool) partPath(i int) string { return s.path(i) + partSuffix }

// segmentCount returns how many parts a size takes: 0 for 0. A part may be of
// any size, as state.json says it.
func segmentCount(size, part int64) int64 {
	n := size / part
	if size%part != 0 {
		n++
	}
	return n
}

// segmentSize returns the length of segment i in bytes.
func (s *spool) segmentSize(i int) int64 {
	return min(s.state.PartSize, s.state.Size-int64(i)*s.state.PartSize)
}

// prepare makes the spool one of o and returns which segments it already
// has. Whole segments of the same object are kept, and their size with them;
// everything else that an earlier run left is removed.
func (s *spool) prepare(o *object, partSize int64) ([]bool, error) {
	kept, err := s.adopt(o)
	if err != nil || kept != nil {
		return kept, err
	}
	if err := s.clear(); err != nil {
		return nil, err
	}
	if !o.ranges {
		partSize = o.size
	}
	partSize = max(partSize, segmentCount(o.size, maxSegments))
	s.state = state{Schema: stateSchema, URL: redactURL(o.url), ETag: o.etag, Modified: o.modified, Size: o.size, PartSize: partSize}
	raw, err := json.MarshalIndent(s.state, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write spool state: %w", err)
	}
	if err := fault.Point("fetch.spool.state"); err != nil {
		return nil, fmt.Errorf("write spool state: %w", err)
	}
	if err := renameio.WriteFile(filepath.Join(s.dir, stateName), append(raw, '\n'), 0o644); err != nil {
		return nil, fmt.Errorf("write spool state: %w", err)
	}
	return make([]bool, segmentCount(o.size, partSize)), errors.Join(fault.Point("fetch.spool.ready"), s.sync())
}

// adopt keeps what is of o. It returns nil when there is nothing to keep.
func (s *spool) adopt(o *object) ([]bool, error) {
	st, err := s.readState()
	if err != nil || !st.same(o) || !o.ranges && st.PartSize != o.size {
		return nil, err
	}
	s.state = st
	kept := make([]bool, segmentCount(st.Size, st.PartSize))
	err = s.each(func(name string, i int, part bool) error {
		if !part && i < len(kept) && s.isWhole(name, i) {
			kept[i] = true
			return nil
		}
		return os.Remove(filepath.Join(s.dir, name))
	})
	if err != nil {
		return nil, err
	}
	return kept, nil
}

// isWhole reports whether a directory entry is segment i, of its full size.
func (s *spool) isWhole(name string, i int) bool {
	p := filepath.Join(s.dir, name)
	fi, err := os.Lstat(p)
	return err == nil && p == s.path(i) && fi.Mode().IsRegular() && fi.Size() == s.segmentSize(i)
}

// readState returns the zero state, which is of no object, when state.json
// is damaged. One of a newer program is an error: its segments are worth keeping. Without a state.json there must be no segments.
func (s *spool) readState() (state, error) {
	var st state
	p := filepath.Join(s.dir, stateName)
	fi, err := os.Lstat(p)
	if errors.Is(err, fs.ErrNotExist) {
		return st, s.each(func(string, int, bool) error {
			return fmt.Errorf("use spool %s: %w", s.dir, errNotSpool)
		})
	}
	if err != nil {
		return st, fmt.Errorf("read spool state: %w", err)
	}
	if !fi.Mode().IsRegular() || fi.Size() > maxState {
		return st, nil
	}
	raw, err := os.ReadFile(p)
	if err != nil {
		return st, fmt.Errorf("read spool state: %w", err)
	}
	raw, err = stateFormat.Read(raw)
	if errors.Is(err, schema.ErrNewer) {
		return st, fmt.Errorf("read %s: %w", p, err)
	}
	if err != nil || json.Unmarshal(raw, &st) != nil {
		return state{}, nil
	}
	return st, nil
}

// each calls f for every segment and every part in the directory. Other
// files are not the spool's and are left alone.
func (s *spool) each(f func(name string, i int, part bool) error) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("read spool: %w", err)
	}
	for _, e := range entries {
		m := entryRE.FindStringSubmatch(e.Name())
		if m == nil || e.IsDir() {
			continue
		}
		i, err := strconv.Atoi(m[1])
		if err != nil {
			continue // longer than any number of ours
		}
		if err := f(e.Name(), i, m[2] != ""); err != nil {
			return err
		}
	}
	return nil
}

// clear removes the segments, then the state: a crash in between leaves
// nothing that could be taken for segments of something else.
func (s *spool) clear() error {
	err := s.each(func(name string, _ int, _ bool) error { return os.Remove(filepath.Join(s.dir, name)) })
	if err = errors.Join(err, fault.Point("fetch.spool.clear")); err != nil {
		return fmt.Errorf("clear spool: %w", err)
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("clear spool: %w", err)
	}
	for _, e := range entries {
		// renameio's temporary files are named after their target.
		if e.Name() == stateName || strings.HasPrefix(e.Name(), "."+stateName) {
			if err := os.Remove(filepath.Join(s.dir, e.Name())); err != nil {
				return fmt.Errorf("clear spool: %w", err)
			}
		}
	}
	return s.sync()
}

// commit makes the part of segment i a segment, once its bytes are on disk.
func (s *spool) commit(i int) error {
	f, err := os.Open(s.partPath(i))
	if err != nil {
		return fmt.Errorf("sync segment: %w", err)
	}
	defer f.Close() // opened for reading
	fi, err := f.Stat()
	if err = errors.Join(err, fault.Point("fetch.part.written")); err != nil {
		return fmt.Errorf("sync segment: %w", err)
	}
	if fi.Size() != s.segmentSize(i) {
		return fmt.Errorf("%w: %d of %d bytes on disk", errAgain, fi.Size(), s.segmentSize(i))
	}
	// grab drops the error of its Close. A write that failed late is reported
	// here: Linux tells it to the first sync after it, on any descriptor.
	if err := fdatasync(f); err != nil {
		return &fs.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
	}
	if err := fault.Do("fetch.part.rename", func() error { return os.Rename(s.partPath(i), s.path(i)) }); err != nil {
		return fmt.Errorf("finish segment: %w", err)
	}
	return errors.Join(fault.Point("fetch.part.named"), s.sync())
}

// fdatasync makes the bytes of f durable, however often a signal cuts that short.
func fdatasync(f *os.File) error {
	for {
		err := fault.Call("fetch.part.sync")
		if err == nil {
			err = unix.Fdatasync(int(f.Fd()))
		}
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// sync makes the names in the directory durable.
func (s *spool) sync() error {
	if err := s.lock.Sync(); err != nil {
		return fmt.Errorf("sync spool: %w", err)
	}
	return nil
}
