package unpack

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io/fs"
	"path"
)

// writer writes one file after the other.
type writer struct {
	u    *unpacker
	dirs *dirs
	hash hash.Hash
}

// write is one writer: it takes files until there are no more.
func (u *unpacker) write() error {
	w := &writer{u, newDirs(u.root), sha256.New()}
	defer w.dirs.close()
	for j := range u.jobs {
		if err := u.ctx.Err(); err != nil {
			return err
		}
		if err := w.file(j); err != nil {
			return &EntryError{j.file.Path, err}
		}
	}
	return nil
}

// file writes, hashes and times one file.
func (w *writer) file(j job) (err error) {
	in, err := w.dirs.open(path.Dir(j.file.Path))
	if err != nil {
		return err
	}
	mode := fs.FileMode(j.file.Mode)
	out, err := in.create(path.Base(j.file.Path), mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.close()) }()
	w.hash.Reset()
	if err := w.chunks(out, j); err != nil {
		return err
	}
	j.file.SHA256 = hex.EncodeToString(w.hash.Sum(nil))
	if !w.u.plainModes.Load() {
		if err := out.chmod(mode); err != nil {
			return err
		}
	}
	return chtimes(out.fd, j.file.MTime)
}

// chunks writes the chunks of a file in order, and hashes them.
func (w *writer) chunks(out *file, j job) error {
	var off, written int64
	for c, ok := j.first, true; ok; {
		w.hash.Write(c.data)
		end, err := writeData(out, c.data, off)
		if err != nil {
			return err
		}
		if end > 0 {
			written = off + int64(end)
		}
		off += int64(len(c.data))
		c.done()
		if j.more == nil {
			break
		}
		select {
		case c, ok = <-j.more:
		case <-w.u.ctx.Done():
			return w.u.ctx.Err()
		}
	}
	if written < off {
		return out.truncate(off)
	}
	return nil
}

// holeSize is the size of the smallest hole. GPU code archives and databases
// have long runs of zeros; much smaller holes would cost more in pieces of a
// file than they save.
const holeSize = 64 << 10

// writeData writes what of p is not a hole, in as few writes as there are
// pieces between holes. It returns where in p the last of them ended, 0 for
// none.
func writeData(out *file, p []byte, off int64) (end int, err error) {
	for at := 0; at < len(p); {
		next := at
		for next < len(p) && !zeros(p[next:min(next+holeSize, len(p))]) {
			next = min(next+holeSize, len(p))
		}
		if next > at {
			if err := out.writeAt(p[at:next], off+int64(at)); err != nil {
				return end, err
			}
			end, at = next, next
		}
		for at < len(p) && zeros(p[at:min(at+holeSize, len(p))]) {
			at += holeSize
		}
	}
	return end, nil
}

// zeros says whether a block is a whole one of zeros.
func zeros(b []byte) bool {
	return len(b) == holeSize && b[0] == 0 && bytes.Equal(b[1:], b[:len(b)-1])
}
