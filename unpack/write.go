package unpack

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

const (
	// chunkSize is the size of one write. Kernels with large folios reward
	// writes of a megabyte and more: the 32 KiB of io.Copy cost three times
	// as much system time.
	chunkSize = 1 << 20
	// buffers bounds what is between the decompressor and the disk: 32 MiB.
	buffers = 32
	// jobChunks is how far the reader may be ahead of the writer of one file.
	jobChunks = 8
)

// job is one file on its way to a writer. file and err are the writer's once
// chunks is closed.
type job struct {
	file   *manifest.File
	chunks chan chunk
	err    error // why the content ends early
}

type chunk struct {
	data   []byte
	pooled bool // data goes back to the free buffers
}

// file reads one regular file and hands it to a writer.
func (u *unpacker) file(name string, hdr *tar.Header, content io.Reader) error {
	if err := u.claim(name, manifest.Regular); err != nil {
		return err
	}
	if hdr.Size > u.o.Limits.MaxBytes-u.bytes {
		return fmt.Errorf("%w: more than %d bytes in all (raise unpack.max_bytes if this is right)", ErrRefused, u.o.Limits.MaxBytes)
	}
	u.bytes += hdr.Size
	f := &manifest.File{Path: name, Kind: manifest.Regular, Mode: fileMode(hdr.Mode), Size: hdr.Size, MTime: hdr.ModTime.Unix()}
	u.files = append(u.files, f)
	u.progress()

	first, err := u.fill(content, hdr.Size)
	if err != nil {
		return err
	}
	if bytes.HasPrefix(first.data, []byte("\x7fELF")) {
		f.ELF = &manifest.ELF{}
	}
	if u.o.Wants != nil && hdr.Size <= MaxEdit && u.o.Wants(name, first.data) {
		return u.edited(f, first, content)
	}
	return u.stream(f, first, content)
}

// progress reports every few entries: often enough to be smooth, seldom
// enough to cost nothing.
func (u *unpacker) progress() {
	if u.o.Event != nil && u.entries%64 == 0 {
		u.o.Event(Event{Bytes: u.bytes, Entries: u.entries})
	}
}

// fileMode reduces the builder's permission bits to what a file of a prefix
// can have: readable by all, writable by nobody, executable or not.
func fileMode(mode int64) manifest.Mode {
	if mode&0o111 != 0 {
		return 0o555
	}
	return 0o444
}

// fill reads up to a chunk of a file of which left bytes remain.
func (u *unpacker) fill(content io.Reader, left int64) (chunk, error) {
	if left == 0 {
		return chunk{}, nil
	}
	var buf []byte
	select {
	case buf = <-u.free:
	case <-u.ctx.Done():
		return chunk{}, u.ctx.Err()
	}
	if buf == nil {
		buf = make([]byte, chunkSize)
	}
	n, err := io.ReadFull(content, buf[:min(left, chunkSize)])
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return chunk{}, truncated(err)
	}
	return chunk{buf[:n], true}, nil
}

// stream passes a file's chunks on as they come.
func (u *unpacker) stream(f *manifest.File, c chunk, content io.Reader) error {
	j := &job{file: f, chunks: make(chan chunk, jobChunks)}
	if err := send(u, u.jobs, j); err != nil {
		return err
	}
	defer close(j.chunks)
	j.err = u.feed(j, c, content)
	return j.err
}

func (u *unpacker) feed(j *job, c chunk, content io.Reader) error {
	left := j.file.Size
	for {
		left -= int64(len(c.data))
		if err := send(u, j.chunks, c); err != nil || left == 0 {
			return err
		}
		var err error
		if c, err = u.fill(content, left); err != nil {
			return err
		}
	}
}

// edited reads a small file whole and passes on what Edit makes of it.
func (u *unpacker) edited(f *manifest.File, first chunk, content io.Reader) error {
	data := make([]byte, f.Size)
	n := copy(data, first.data)
	if first.pooled {
		u.free <- first.data[:cap(first.data)]
	}
	if _, err := io.ReadFull(content, data[n:]); err != nil && f.Size > int64(n) {
		return truncated(err)
	}
	out, rules, err := u.o.Edit(f.Path, fs.FileMode(f.Mode), data)
	if err != nil {
		return err
	}
	if len(rules) > 0 {
		f.Before = hexSum(data)
		f.Edits = rules
		data = out
	}
	f.Size = int64(len(data))
	j := &job{file: f, chunks: make(chan chunk, 1)}
	j.chunks <- chunk{data: data}
	close(j.chunks)
	return send(u, u.jobs, j)
}

// send passes v on unless the work has been given up.
func send[T any](u *unpacker, ch chan<- T, v T) error {
	select {
	case ch <- v:
		return nil
	case <-u.ctx.Done():
		return u.ctx.Err()
	}
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// write is one writer: it takes files until there are no more.
func (u *unpacker) write() error {
	for j := range u.jobs {
		if err := u.writeFile(j); err != nil {
			return &EntryError{j.file.Path, err}
		}
	}
	return nil
}

// writeFile writes, hashes and times one file.
func (u *unpacker) writeFile(j *job) (err error) {
	out, err := u.root.OpenFile(j.file.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := u.copyChunks(out, j); err != nil {
		return err
	}
	if err := out.Chmod(fs.FileMode(j.file.Mode)); err != nil {
		return err
	}
	mtime := time.Unix(j.file.MTime, 0)
	return chtimes(out, mtime)
}

// copyChunks writes the chunks of a file in order. A chunk of zeros becomes a
// hole: GPU code archives and databases have long runs of them.
func (u *unpacker) copyChunks(out *os.File, j *job) error {
	h := sha256.New()
	var off, written int64
	for {
		var c chunk
		var ok bool
		select {
		case c, ok = <-j.chunks:
		case <-u.ctx.Done():
			return u.ctx.Err()
		}
		if !ok {
			break
		}
		h.Write(c.data)
		if len(c.data) < chunkSize || !zero(c.data) {
			if _, err := out.WriteAt(c.data, off); err != nil {
				return err
			}
			written = off + int64(len(c.data))
		}
		off += int64(len(c.data))
		if c.pooled {
			u.free <- c.data[:cap(c.data)]
		}
	}
	if j.err != nil {
		return j.err
	}
	if written < off {
		if err := out.Truncate(off); err != nil {
			return err
		}
	}
	j.file.SHA256 = hex.EncodeToString(h.Sum(nil))
	return nil
}

func zero(p []byte) bool { return len(bytes.TrimLeft(p, "\x00")) == 0 }
