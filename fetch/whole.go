package fetch

import (
	"net/http"
	"time"
)

// Whole is a download that is whole and on disk: its segments are the files
// 0000, 0001, … of Dir, four digits or more, each of PartSize bytes but the
// last, and each was synced before it had its name.
type Whole struct {
	Dir          string
	Size         int64 // of the tarball, bytes
	PartSize     int64 // bytes
	URL          string
	ETag         string
	LastModified time.Time // UTC; zero if the server sent none
}

// FindWhole looks for a whole download in a spool. It is nil where there is
// none. A spool that a download is using may be whole a moment later.
func FindWhole(dir string) *Whole {
	s := &spool{dir: dir}
	st, err := s.readState()
	if err != nil || st.Schema != stateSchema || st.Size < 1 || st.PartSize < 1 || segmentCount(st.Size, st.PartSize) > maxSegments {
		return nil
	}
	s.state = st
	n := segmentCount(st.Size, st.PartSize)
	for i := range int(n) {
		if !s.isWhole(s.name(i), i) {
			return nil
		}
	}
	w := &Whole{Dir: dir, Size: st.Size, PartSize: st.PartSize, URL: st.URL, ETag: st.ETag}
	if at, err := http.ParseTime(st.Modified); err == nil {
		w.LastModified = at.UTC()
	}
	return w
}

// PartSize returns the length in bytes of every segment but the last, 0 for a
// file:// release, which is in no spool.
func (d *Download) PartSize() int64 {
	if d.local != nil {
		return 0
	}
	return d.spool.state.PartSize
}
