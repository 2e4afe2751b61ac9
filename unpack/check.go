package unpack

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
)

// Checked is what Check has seen of a tarball.
type Checked struct {
	Entries int
	Bytes   int64    // decompressed, headers of the archive included
	Checks  []string // as Result has them
}

// Check reads a tarball from r to the very end, as Tree does, and
// writes nothing: every checksum, the lengths and the end of the archive are
// right when it returns without an error. It does not judge what Tree would
// refuse for the sake of the file system, such as names that lead elsewhere.
// Of o, Limits and Decompressor hold.
func Check(ctx context.Context, r io.Reader, o Options) (*Checked, error) {
	l := o.Limits.withDefaults()
	s, err := newStream(ctx, r, l, o.Decompressor)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	c := &Checked{}
	tr := tar.NewReader(s)
	for {
		hdr, err := tr.Next()
		if err == io.EOF {
			if err := s.finish(); err != nil {
				return nil, err
			}
			c.Bytes, c.Checks = s.out, s.checks()
			return c, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("unpack: %w", ctx.Err())
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return nil, fmt.Errorf("unpack: read entry %d of the tarball: %w", c.Entries+1, truncated(err))
		}
		c.Entries++
		if c.Entries > l.MaxEntries || s.out > l.MaxBytes || hdr.Size > l.MaxBytes {
			return nil, &EntryError{hdr.Name, fmt.Errorf("%w: the tarball has more than %d entries or %d bytes (raise unpack.max_entries or unpack.max_bytes if this is right)", ErrRefused, l.MaxEntries, l.MaxBytes)}
		}
	}
}
