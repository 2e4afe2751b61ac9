package fetch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// Ahead is what a download will take of the file system of its spool, in bytes.
type Ahead struct {
	Size  int64 // of the tarball
	Kept  int64 // of it, in the spool already
	Stale int64 // in the spool, and removed before anything is written
	Local bool  // file://: it is read where it is, and nothing is written
}

// Bytes is what will be written, beyond what is freed before.
func (a Ahead) Bytes() int64 {
	if a.Local {
		return 0
	}
	return max(0, a.Size-a.Kept-a.Stale)
}

// Ahead asks what a download of rel into the spool dir would take. It
// makes and changes nothing; what another download does in the spool at this
// moment may change the answer.
func (c *Client) Ahead(ctx context.Context, rel release.Release, dir string) (Ahead, error) {
	u, err := c.parseURL(rel.URL)
	if err != nil {
		return Ahead{}, fmt.Errorf("look at %s: %w", rel.Name, withHint(err))
	}
	o, err := c.look(ctx, rel.Name, u)
	if err != nil {
		return Ahead{}, fmt.Errorf("look at %s: %w", rel.Name, withHint(err))
	}
	if isFile(u) {
		return Ahead{Size: o.size, Local: true}, nil
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Ahead{}, fmt.Errorf("look at spool %s: %w", dir, err)
	}
	return (&spool{dir: abs}).ahead(o), nil
}

// ahead tells what of o is in the spool, and what there goes. What cannot be
// read is as good as absent: prepare reports it.
func (s *spool) ahead(o *object) Ahead {
	a := Ahead{Size: o.size}
	st, err := s.readState()
	usable := err == nil && st.same(o) && (o.ranges || st.PartSize == o.size)
	looked := &spool{dir: s.dir, state: st}
	_ = s.each(func(name string, i int, part bool) error {
		if usable && !part && int64(i) < segmentCount(st.Size, st.PartSize) && looked.isWhole(name, i) {
			a.Kept += looked.segmentSize(i)
			return nil
		}
		if fi, err := os.Lstat(filepath.Join(s.dir, name)); err == nil && fi.Mode().IsRegular() {
			a.Stale += fi.Size()
		}
		return nil
	})
	return a
}
