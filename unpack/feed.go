package unpack

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// jobsAhead is how many files may wait for a writer. What they hold is bounded
// by the pool.
const jobsAhead = 256

// job is one file on its way to a writer. A file of one chunk is sent whole:
// most files are, and a channel for each would cost more than the file.
type job struct {
	file  *manifest.File
	first chunk
	// more brings the other chunks, and is closed after the last. There is room
	// in it for all blocks: a slow writer of one file does not hold up the
	// files behind it. Where the file cannot be read to its end it stays open,
	// and the context ends.
	more chan chunk
}

// file reads one regular file and hands it to a writer.
func (u *unpacker) file(name string, hdr *tar.Header, content io.Reader) error {
	f := &manifest.File{Path: name, Kind: manifest.Regular, Mode: fileMode(hdr.Mode), Size: hdr.Size, MTime: clampTime(hdr.ModTime)}
	reason := u.omit(name, manifest.Regular, hdr.Size)
	if err := u.claim(f, reason); err != nil {
		return err
	}
	if hdr.Size > u.o.Limits.MaxBytes-u.bytes {
		return fmt.Errorf("%w: more than %d bytes in all (raise unpack.max_bytes if this is right)", ErrRefused, u.o.Limits.MaxBytes)
	}
	u.progress()
	if reason != "" {
		return u.skip(content, hdr.Size)
	}

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
	c, err := u.pool.take(u.ctx, left)
	if err != nil {
		return chunk{}, err
	}
	if err := u.content(content, c.data); err != nil {
		c.done()
		return chunk{}, err
	}
	return c, nil
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
		j.more = make(chan chunk, blocksOut)
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
	first.done()
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
	c, err := u.pool.hold(u.ctx, data)
	if err != nil {
		return err
	}
	return send(u, u.jobs, job{file: f, first: c})
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
