package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// localFile is a tarball that is on this machine already.
type localFile struct {
	ctx  context.Context // of Download, which ends it
	file *os.File
	info fs.FileInfo // when it was opened
	done bool        // EventDone was sent
}

// openLocal opens the regular file at u, which must be called name, and says
// what it is: a release that was made up must not show other files. It never
// waits, as opening a pipe would, and a link does not lead out of the directory.
func openLocal(name string, u *url.URL) (*os.File, *object, error) {
	if filepath.Base(u.Path) != name {
		return nil, nil, &InsecureError{URL: redactURL(u), Reason: "the file is not called " + strconv.Quote(name)}
	}
	root, err := os.OpenRoot(filepath.Dir(filepath.Clean(u.Path)))
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s: %w; list what the mirror has now", redactURL(u), fs.ErrNotExist)
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &SizeError{URL: redactURL(u), Reason: "it is not a regular file"}
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	o := &object{url: u, size: info.Size(), modified: info.ModTime().UTC().Format(http.TimeFormat)}
	if err := o.checkSize(); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, o, nil
}

// beginLocal is begin for a file:// release.
func (c *Client) beginLocal(ctx context.Context, name string, u *url.URL, allow func(Ahead) error) (*Download, error) {
	f, o, err := openLocal(name, u)
	if err != nil {
		return nil, err
	}
	if allow != nil {
		if err := allow(Ahead{Size: o.size, Local: true}); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	d := &Download{client: c, name: name, object: o, local: &localFile{ctx: ctx, file: f, info: info}}
	d.event(EventStart, "")
	return d, nil
}

// readLocal is Read for a file:// release; d.reader.mu is held.
func (d *Download) readLocal(p []byte) (int, error) {
	d.mu.Lock()
	closed, err, left := d.closed, d.err, d.object.size-d.done
	d.mu.Unlock()
	switch {
	case closed:
		return 0, fmt.Errorf("read %s: %w", d.name, errClosed)
	case err != nil:
		return 0, err
	case d.local.ctx.Err() != nil:
		return 0, d.failLocal(context.Cause(d.local.ctx))
	case left == 0:
		return 0, d.endLocal()
	}
	n, err := d.local.file.Read(p[:min(int64(len(p)), left)])
	if n == 0 {
		if err == nil || errors.Is(err, io.EOF) {
			err = d.unchanged() // shorter than it was
			if err == nil {
				err = io.ErrUnexpectedEOF
			}
		}
		return 0, d.failLocal(err)
	}
	if d.reader.pos == 0 && !startsAs(magic(d.object.url.Path), p[:n], d.object.size) {
		return 0, d.failLocal(&NotArchiveError{URL: redactURL(d.object.url), Start: printable(p[:n])})
	}
	d.reader.pos += int64(n)
	d.progressLocal(n)
	return n, nil
}

func (d *Download) progressLocal(n int) {
	d.mu.Lock()
	d.done += int64(n)
	due := false
	if now := d.client.opts.Now(); now.Sub(d.reported) >= progressEvery {
		d.reported, due = now, true
	}
	d.mu.Unlock()
	if due {
		d.event(EventProgress, "")
	}
}

// endLocal returns io.EOF, if what was read is one file and not parts of two.
func (d *Download) endLocal() error {
	if err := d.unchanged(); err != nil {
		return d.failLocal(err)
	}
	d.endChecks()
	if !d.local.done {
		d.local.done = true
		d.event(EventProgress, "")
		d.event(EventDone, "")
	}
	return io.EOF
}

// unchanged returns an error if the file was written to while it was read: a
// mirror should put a new file beside the old one and rename it.
func (d *Download) unchanged() error {
	was, at := d.local.info, redactURL(d.object.url)
	is, err := d.local.file.Stat()
	switch {
	case err != nil:
		return err
	case is.Size() != was.Size():
		return &ChangedError{URL: at, What: "size", Was: strconv.FormatInt(was.Size(), 10), Is: strconv.FormatInt(is.Size(), 10)}
	case !is.ModTime().Equal(was.ModTime()):
		return &ChangedError{URL: at, What: "time", Was: was.ModTime().UTC().Format(time.RFC3339Nano), Is: is.ModTime().UTC().Format(time.RFC3339Nano)}
	}
	return nil
}

// failLocal ends the download; every Read from now on returns the same error.
func (d *Download) failLocal(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = &DownloadError{Name: d.name, Missing: d.object.size - d.done, Err: err}
	return d.err
}

// shutLocal waits for a Read that is under way, and closes the file.
func (d *Download) shutLocal() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.reader.mu.Lock()
	defer d.reader.mu.Unlock()
	if err := d.local.file.Close(); err != nil {
		return fmt.Errorf("close download: %w", err)
	}
	return nil
}
