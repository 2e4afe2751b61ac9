package unpack

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"

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

// job is one file on its way to a writer. A file of one chunk is sent whole:
// most files are, and a channel for each would cost more than the file.
type job struct {
	file  *manifest.File
	first chunk
	// more brings the other chunks, and is closed after the last. Where the
	// file cannot be read to its end it stays open, and the context ends.
	more chan chunk
}

type chunk struct {
	data   []byte
	pooled bool // data goes back to the free buffers
}

// file reads one regular file and hands it to a writer.
func (u *unpacker) file(name string, hdr *tar.Header, content io.Reader) error {
	f := &manifest.File{Path: name, Kind: manifest.Regular, Mode: fileMode(hdr.Mode), Size: hdr.Size, MTime: clampTime(hdr.ModTime)}
	if err := u.claim(f); err != nil {
		return err
	}
	if hdr.Size > u.o.Limits.MaxBytes-u.bytes {
		return fmt.Errorf("%w: more than %d bytes in all (raise unpack.max_bytes if this is right)", ErrRefused, u.o.Limits.MaxBytes)
	}
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
	buf = buf[:min(left, chunkSize)]
	return chunk{buf, true}, u.content(content, buf)
}

// content reads just p of a file. What comes out is judged as it comes: a file
// of holes claims any size with a few bytes of tar, and a large file may well
// stand at the beginning, when little has been taken.
func (u *unpacker) content(content io.Reader, p []byte) error {
	n, err := io.ReadFull(content, p)
	u.bytes += int64(n)
	if err == io.EOF && len(p) > 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return truncated(err)
	}
	return u.src.judge(u.bytes)
}

// stream passes a file's chunks on as they come.
func (u *unpacker) stream(f *manifest.File, first chunk, content io.Reader) error {
	left := f.Size - int64(len(first.data))
	j := job{file: f, first: first}
	if left > 0 {
		j.more = make(chan chunk, jobChunks)
	}
	if err := send(u, u.jobs, j); err != nil || left == 0 {
		return err
	}
	for left > 0 {
		c, err := u.fill(content, left)
		if err != nil {
			return err
		}
		left -= int64(len(c.data))
		if err := send(u, j.more, c); err != nil {
			return err
		}
	}
	close(j.more)
	return nil
}

// edited reads a small file whole and passes on what Edit makes of it.
func (u *unpacker) edited(f *manifest.File, first chunk, content io.Reader) error {
	data := make([]byte, f.Size)
	n := copy(data, first.data)
	if first.pooled {
		u.free <- first.data[:cap(first.data)]
	}
	if err := u.content(content, data[n:]); err != nil {
		return err
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
	return send(u, u.jobs, job{file: f, first: chunk{data: data}})
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
	h := sha256.New()
	for j := range u.jobs {
		h.Reset()
		if err := u.writeFile(j, h); err != nil {
			return &EntryError{j.file.Path, err}
		}
	}
	return nil
}

// writeFile writes, hashes and times one file.
func (u *unpacker) writeFile(j job, h hash.Hash) (err error) {
	out, err := u.root.OpenFile(j.file.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := u.copyChunks(out, j, h); err != nil {
		return err
	}
	j.file.SHA256 = hex.EncodeToString(h.Sum(nil))
	if err := out.Chmod(fs.FileMode(j.file.Mode)); err != nil {
		return err
	}
	return chtimes(out, j.file.MTime)
}

// copyChunks writes the chunks of a file in order, and hashes them.
func (u *unpacker) copyChunks(out *os.File, j job, h hash.Hash) error {
	var off, written int64
	for c, ok := j.first, true; ok; {
		h.Write(c.data)
		if !hole(c.data) {
			if _, err := out.WriteAt(c.data, off); err != nil {
				return err
			}
			written = off + int64(len(c.data))
		}
		off += int64(len(c.data))
		if c.pooled {
			u.free <- c.data[:cap(c.data)]
		}
		if j.more == nil {
			break
		}
		select {
		case c, ok = <-j.more:
		case <-u.ctx.Done():
			return u.ctx.Err()
		}
	}
	if written < off {
		return out.Truncate(off)
	}
	return nil
}

// hole says whether a chunk is not worth writing: an empty one, or a whole one
// of zeros. GPU code archives and databases have long runs of them.
func hole(p []byte) bool {
	return len(p) == 0 || len(p) == chunkSize && len(bytes.TrimLeft(p, "\x00")) == 0
}
