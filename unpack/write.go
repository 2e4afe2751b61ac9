package unpack

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io/fs"
	"iter"
	"path"

	"github.com/rocm-nightly/rocm-nightly/internal/directio"
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
	if w.u.direct && j.file.Size >= directio.Least {
		out.direct = directio.Start(out.fd)
	}
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

// chunks writes the chunks of a file in order, and hashes them: those of a file
// that has several while they are written, since large files come one at a time
// and would else keep the decompressor waiting.
func (w *writer) chunks(out *file, j job) error {
	hash := w.hashNow
	if j.more != nil {
		beside := newBeside(w.hash)
		defer beside.close()
		hash = beside.hash
	}
	var off, written int64
	for c, ok := j.first, true; ok; {
		hashed := hash(c.data)
		end, err := writeData(out, c.data, off)
		hashed() // before c's memory is given back
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

// hashNow hashes p before it returns.
func (w *writer) hashNow(p []byte) (wait func()) {
	w.hash.Write(p)
	return func() {}
}

// beside hashes in a goroutine of its own.
type beside struct {
	todo chan []byte
	done chan struct{}
}

func newBeside(h hash.Hash) *beside {
	b := &beside{todo: make(chan []byte), done: make(chan struct{})}
	go func() {
		for p := range b.todo {
			h.Write(p)
			b.done <- struct{}{}
		}
	}()
	return b
}

// hash begins to hash p, which must stay as it is until wait has returned.
func (b *beside) hash(p []byte) (wait func()) {
	b.todo <- p
	return func() { <-b.done }
}

// close ends the goroutine.
func (b *beside) close() { close(b.todo) }

// holeSize is the size of the smallest hole. GPU code archives and databases
// have long runs of zeros; much smaller holes would cost more in pieces of a
// file than they save.
const holeSize = 64 << 10

// writeData writes what of p is not a hole. It returns where in p that ended, 0
// for none.
func writeData(out *file, p []byte, off int64) (end int, err error) {
	for at, data := range Data(p) {
		if err := out.writeAt(data, off+int64(at)); err != nil {
			return end, err
		}
		end = at + len(data)
	}
	return end, nil
}

// Data returns what of p, which lies at a multiple of 64 KiB in its file, is to
// be written: as few pieces as there are between holes, each with its place.
func Data(p []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		for at := 0; at < len(p); {
			next := at
			for next < len(p) && !zeros(p[next:min(next+holeSize, len(p))]) {
				next = min(next+holeSize, len(p))
			}
			if next > at && !yield(at, p[at:next]) {
				return
			}
			for at = next; at < len(p) && zeros(p[at:min(at+holeSize, len(p))]); {
				at += holeSize
			}
		}
	}
}

// zeros says whether a block is a whole one of zeros.
func zeros(b []byte) bool {
	return len(b) == holeSize && b[0] == 0 && bytes.Equal(b[1:], b[:len(b)-1])
}
