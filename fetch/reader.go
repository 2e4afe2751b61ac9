package fetch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"
)

// gzipMagic is how every gzip member begins (RFC 1952, 2.3.1).
const gzipMagic = "\x1f\x8b"

// The others that a name can promise: zstd (RFC 8878, 3.1), xz (The .xz File
// Format, 2.1.1.1). What ends in .tar has nothing to go by so early.
const (
	zstdMagic = "\x28\xb5\x2f\xfd"
	xzMagic   = "\xfd7zXZ\x00"
)

// magic is how a file begins, by its name.
func magic(name string) string {
	switch path.Ext(name) {
	case ".zst":
		return zstdMagic
	case ".xz":
		return xzMagic
	case ".tar":
		return ""
	}
	return gzipMagic
}

// reader is the reading side of a Download.
type reader struct {
	mu   sync.Mutex // held by Read, and by close
	pos  int64      // bytes delivered; written under Download.mu too
	file *os.File   // of segment index, begun for the gen-th time
	of   int
	gen  int

	etag *etagCheck // nil if there is nothing to check, or it is done
}

func (r *reader) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.etag.end()
	r.etag = nil
	return r.drop()
}

func (r *reader) drop() error {
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	return err
}

// Read delivers the next bytes of the tarball as soon as they are there. It
// returns io.EOF only after exactly Size bytes, with every segment synced; a
// failure anywhere in the download is a *DownloadError, at once.
func (d *Download) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	r := &d.reader
	r.mu.Lock()
	defer r.mu.Unlock()
	if d.local != nil {
		return d.readLocal(p)
	}
	for {
		i, n, gen, err := d.readable()
		if err == io.EOF {
			d.endChecks()
		}
		if err != nil {
			return 0, err
		}
		got, err := d.readSegment(p[:min(int64(len(p)), n)], i, gen)
		if err != nil {
			return 0, d.fail(err, false)
		}
		if got == 0 {
			continue // the segment was begun anew just now
		}
		if r.pos == 0 {
			if err := d.checkMagic(p[:got]); err != nil {
				return 0, err
			}
		}
		d.mu.Lock()
		r.pos += int64(got)
		d.mu.Unlock()
		r.etag.write(p[:got])
		return got, nil
	}
}

// endChecks notes what the stream was checked against; d.reader.mu is held.
func (d *Download) endChecks() {
	d.mu.Lock()
	ended := d.checked != nil
	d.mu.Unlock()
	if ended {
		return
	}
	passed := d.reader.etag.passed()
	d.reader.etag = nil
	d.mu.Lock()
	d.checked = passed
	d.mu.Unlock()
}

// readable waits until there is something to read: n bytes in segment i.
func (d *Download) readable() (i int, n int64, gen int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	pos := d.reader.pos
	for {
		switch {
		case d.closed:
			return 0, 0, 0, fmt.Errorf("read %s: %w", d.name, errClosed)
		case d.err != nil:
			return 0, 0, 0, d.err
		case pos == d.object.size && d.complete:
			return 0, 0, 0, io.EOF
		case pos < d.object.size:
			i = int(pos / d.spool.state.PartSize)
			seg := &d.segments[i]
			if n = seg.off + seg.avail - pos; n > 0 {
				return i, n, seg.gen, nil
			}
		}
		d.changed.Wait()
	}
}

// readSegment reads from the file of segment i at the reader's position. It
// returns 0 bytes, and no error, when the file was begun anew meanwhile.
func (d *Download) readSegment(p []byte, i, gen int) (int, error) {
	r := &d.reader
	if r.file != nil && (r.of != i || r.gen != gen) {
		if err := r.drop(); err != nil {
			return 0, fmt.Errorf("close segment: %w", err)
		}
	}
	if r.file == nil {
		f, err := d.openSegment(i)
		if err != nil {
			return 0, d.unlessAnew(i, gen, err)
		}
		r.file, r.of, r.gen = f, i, gen
	}
	n, err := r.file.ReadAt(p, r.pos-d.segments[i].off)
	if n > 0 || err == nil {
		return n, nil
	}
	if err == io.EOF {
		err = fmt.Errorf("segment %s: %w: something else has shortened it", r.file.Name(), io.ErrUnexpectedEOF)
	}
	return 0, d.unlessAnew(i, gen, err)
}

// unlessAnew drops an error that comes of a segment that was begun anew.
func (d *Download) unlessAnew(i, gen int, err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.segments[i].gen != gen {
		return nil
	}
	return err
}

// openSegment opens segment i under the name that it has now. A worker may
// rename it at any time; an open file follows.
func (d *Download) openSegment(i int) (*os.File, error) {
	f, err := os.Open(d.spool.partPath(i))
	if errors.Is(err, fs.ErrNotExist) {
		f, err = os.Open(d.spool.path(i))
	}
	if err != nil {
		return nil, fmt.Errorf("open segment: %w", err)
	}
	return f, nil
}

// checkMagic refuses, before the first byte is delivered, what is no gzip
// file, or not what its name says: a login page comes with status 200 and any
// content type.
func (d *Download) checkMagic(start []byte) error {
	if startsAs(magic(d.object.url.Path), start, d.object.size) {
		return nil
	}
	return d.fail(&NotArchiveError{URL: redactURL(d.object.url), ContentType: d.object.contentType, Start: printable(start)}, true)
}

// startsAs looks at the first bytes of a file, be it but one of them.
func startsAs(magic string, start []byte, size int64) bool {
	n := min(len(start), len(magic))
	if magic == zstdMagic && len(start) > 0 && start[0]>>4 == 5 {
		return true // a frame that is skipped, as pzstd's first
	}
	return string(start[:n]) == magic[:n] && size >= int64(len(magic))
}

// fail ends the download for a reason that the reader found.
func (d *Download) fail(err error, poisoned bool) error {
	d.mu.Lock()
	if d.err == nil {
		d.err = d.wrap(err)
	}
	d.poisoned = d.poisoned || poisoned
	err = d.err
	d.changed.Broadcast()
	d.mu.Unlock()
	d.cancel(err)
	return err
}
