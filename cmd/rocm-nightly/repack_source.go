package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// source is the tarball to repack. close is told how the repack ended.
type source struct {
	io.Reader
	name    string
	close   func(error) error
	expect  []release.Expectation // by files beside it
	checked func() []string       // what was checked on the way, once it has ended; nil: nothing
	size    int64                 // bytes, 0 if not known
	left    func() int64          // bytes that are still to be written to the disk; nil: none

	url, etag string    // of a download; "" for none
	modified  time.Time // as the server says
}

// openSource opens a file, a URL or standard input.
func (a *app) openSource(ctx context.Context, cfg *config.Config, src, prefix string) (*source, error) {
	if src == "-" {
		in, stop := interruptible(ctx, a.stdin)
		return &source{Reader: in, size: restOf(a.stdin), close: func(err error) error { stop(); return err }}, nil
	}
	if u, err := url.Parse(src); err == nil && (u.Scheme == "https" || u.Scheme == "http" || u.Scheme == "file") {
		return a.openURL(ctx, cfg, u, prefix)
	}
	f, err := os.Open(src)
	if err != nil {
		return nil, fmt.Errorf("repack: %w", err)
	}
	return &source{Reader: f, name: filepath.Base(src), size: restOf(f), close: func(err error) error { return errors.Join(err, f.Close()) }}, nil
}

// openURL downloads into a spool beside the prefix. What an interrupted run
// left there is taken up again; it is removed at the end.
func (a *app) openURL(ctx context.Context, cfg *config.Config, u *url.URL, prefix string) (*source, error) {
	client, err := a.fetchClient(cfg, nil)
	if err != nil {
		return nil, err
	}
	s, err := newSpool(u.String(), prefix)
	if err != nil {
		return nil, err
	}
	name := path.Base(u.Path)
	rel := release.Release{Name: name, URL: u.String()}
	dl, err := client.DownloadIf(ctx, rel, s.dir, func(ahead fetch.Ahead) error {
		return a.repackRoom(prefix, name, diskspace.Incompressible(ahead.Bytes()), ahead.Size)
	})
	if err != nil {
		return nil, errors.Join(err, s.end(!hopeless(err)))
	}
	in := &source{url: u.String(), etag: dl.ETag(), modified: dl.LastModified(), Reader: dl, name: name, checked: dl.Checked, size: dl.Size(), left: dl.Left, close: func(err error) error {
		return errors.Join(err, dl.Close(), s.end(unfinished(err)))
	}}
	if in.expect, err = a.beside(ctx, client, rel); err != nil {
		return nil, in.close(err)
	}
	return in, nil
}

// restOf returns how much of a regular file is still to be read, in bytes; 0 of
// anything else, of which nobody knows.
func restOf(r io.Reader) int64 {
	f, ok := r.(*os.File)
	if !ok {
		return 0
	}
	fi, err := f.Stat()
	if err != nil || !fi.Mode().IsRegular() {
		return 0
	}
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0
	}
	return max(0, fi.Size()-at)
}

// beside asks for the digest files beside a tarball.
func (a *app) beside(ctx context.Context, client *fetch.Client, rel release.Release) ([]release.Expectation, error) {
	expect, notes, err := client.SideDigests(ctx, rel)
	for _, n := range notes {
		a.log(a.stderr).Warn("a digest file is of no use", "because", n)
	}
	return expect, err
}

// spool is where a URL is downloaded to.
type spool struct {
	dir  string
	made []string // parents that the download makes, the innermost first
}

// newSpool names the spool of a URL for a prefix, and makes nothing yet.
func newSpool(url, prefix string) (*spool, error) {
	abs, err := filepath.Abs(prefix)
	if err != nil {
		return nil, fmt.Errorf("find a place for the download: %w", err)
	}
	parent := filepath.Dir(abs)
	id := sha256.Sum256([]byte(filepath.Base(abs) + "\x00" + url))
	s := &spool{dir: filepath.Join(parent, fmt.Sprintf(".rocm-nightly-download-%x", id[:16]))}
	for dir := parent; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		s.made = append(s.made, dir)
	}
	return s, nil
}

// end removes the spool, unless another run is to go on with what is in it, and
// the parents that nothing is in.
func (s *spool) end(keep bool) error {
	err := s.remove(keep)
	for _, dir := range s.made {
		if os.Remove(dir) != nil {
			break // the prefix, the spool or somebody else is in it
		}
	}
	return err
}

// remove removes the spool under its lock: it may be another run's by now.
func (s *spool) remove(keep bool) error {
	if keep { // if there is anything to keep
		if entries, err := os.ReadDir(s.dir); err != nil || len(entries) > 0 {
			return nil
		}
	}
	dir, err := os.Open(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove the download: %w", err)
	}
	defer dir.Close() // opened for reading
	if unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return nil
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("remove the download: %w", err)
	}
	return nil
}

// hopeless reports whether a download that could not begin never will, so that
// what an earlier run has of it is of no use either.
func hopeless(err error) bool {
	status, ok := errors.AsType[*fetch.StatusError](err)
	return ok && status.Gone() || isA[*fetch.NotArchiveError](err) || isA[*fetch.InsecureError](err) ||
		isA[*fetch.SizeError](err) || isA[*fetch.EncodingError](err)
}

// unfinished reports whether a repack ended because its download did, or it was
// interrupted, and the rest can still be fetched.
func unfinished(err error) bool {
	if isA[*fetch.NotArchiveError](err) || isA[*fetch.ChangedError](err) {
		return false
	}
	return isA[*fetch.DownloadError](err) || errors.Is(err, context.Canceled)
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// interruptible reads r in a goroutine, so that a Read ends with ctx even while
// r says nothing: a terminal or a pipe cannot be told to give up. stop ends the
// goroutine, at the latest when its Read of r returns.
func interruptible(ctx context.Context, r io.Reader) (in io.Reader, stop func()) {
	ctx, stop = context.WithCancel(ctx)
	s := &stream{ctx: ctx, full: make(chan chunk), free: make(chan []byte, 2)}
	for range cap(s.free) {
		s.free <- make([]byte, 256<<10)
	}
	go s.pump(r)
	return s, stop
}

// stream passes chunks from its goroutine to its reader, and back for reuse.
type stream struct {
	ctx        context.Context
	full       chan chunk
	free       chan []byte
	buf, ahead []byte // what the reader holds, and what of it is still to be read
	err        error
}

type chunk struct {
	buf []byte
	n   int
	err error
}

func (s *stream) pump(r io.Reader) {
	for {
		select {
		case <-s.ctx.Done():
			return
		case buf := <-s.free:
			n, err := r.Read(buf)
			select {
			case <-s.ctx.Done():
				return
			case s.full <- chunk{buf, n, err}:
			}
			if err != nil {
				return
			}
		}
	}
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	for len(s.ahead) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		if s.buf != nil {
			s.free <- s.buf
			s.buf = nil
		}
		select {
		case <-s.ctx.Done():
			s.err = s.ctx.Err()
		case c := <-s.full:
			s.buf, s.ahead, s.err = c.buf, c.buf[:c.n], c.err
		}
	}
	n := copy(p, s.ahead)
	s.ahead = s.ahead[n:]
	return n, nil
}
