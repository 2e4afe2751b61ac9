package pgunzip_test

import (
	"bytes"
	stdflate "compress/flate"
	stdgzip "compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"

	"github.com/rocm-nightly/rocm-nightly/unpack/pgunzip"
)

// ending is the class of how a stream ends.
type ending string

const (
	clean     ending = "end of file"
	noHeader  ending = "header"
	badSum    ending = "checksum"
	corrupt   ending = "corrupt"
	truncated ending = "unexpected end"
	trailing  ending = "trailing bytes"
)

// result is what a reader makes of a file.
type result struct {
	content []byte
	end     ending
}

// workersUsed are the numbers of workers that behave the same.
var workersUsed = []int{1, 2, 3, 8}

// fewer is n, or a part of it where the race detector makes all slow.
func fewer(n int) int {
	if raced {
		return max(1, n/8)
	}
	return n
}

// mostOutput is where the comparison of what may be a bomb stops.
const mostOutput = 16 << 20

// classify turns the errors of all three packages into endings.
func classify(err error) ending {
	var std stdflate.CorruptInputError
	var other flate.CorruptInputError
	var ours *pgunzip.CorruptError
	switch {
	case err == nil:
		return clean
	case errors.Is(err, pgunzip.ErrTrailing):
		return trailing
	case errors.Is(err, stdgzip.ErrHeader), errors.Is(err, pgunzip.ErrHeader):
		return noHeader
	case errors.Is(err, stdgzip.ErrChecksum), errors.Is(err, pgunzip.ErrChecksum):
		return badSum
	case errors.As(err, &std), errors.As(err, &other), errors.As(err, &ours):
		return corrupt
	case errors.Is(err, io.ErrUnexpectedEOF):
		return truncated
	}
	return ending(fmt.Sprintf("another error: %v", err))
}

// memberReader is what compress/gzip and klauspost have in common.
type memberReader interface {
	io.Reader
	Reset(io.Reader) error
	Multistream(bool)
}

// reference decodes a file member by member, so that it is known where one
// ends: what may follow is another matter in gzip(1) and here than in compress/gzip.
func reference(in []byte, z memberReader) result {
	var out bytes.Buffer
	src := bytes.NewReader(in)
	for first := true; ; first = false {
		rest := in[len(in)-src.Len():]
		if !first {
			if end, ok := tail(rest); ok {
				return result{out.Bytes(), end}
			}
		}
		magic := []byte{0x1f, 0x8b, 8}
		if !bytes.HasPrefix(magic, rest[:min(3, len(rest))]) {
			return result{out.Bytes(), noHeader} // the packages want ten bytes to say so
		}
		if err := z.Reset(src); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF // of an empty file
			}
			return result{out.Bytes(), classify(err)}
		}
		z.Multistream(false)
		_, err := io.Copy(&out, io.LimitReader(z, int64(mostOutput-out.Len())))
		if err != nil || out.Len() >= mostOutput {
			return result{out.Bytes(), classify(err)}
		}
	}
}

// tail says how a stream ends with what follows a member, if it does.
func tail(rest []byte) (ending, bool) {
	switch {
	case len(bytes.Trim(rest, "\x00")) == 0:
		return clean, true
	case !bytes.HasPrefix([]byte{0x1f, 0x8b}, rest[:min(2, len(rest))]):
		return trailing, true
	}
	return "", false
}

// run reads all of a stream, or mostOutput of it.
func run(t testing.TB, z *pgunzip.Reader) result {
	t.Helper()
	defer z.Close()
	var out bytes.Buffer
	_, err := io.Copy(&out, io.LimitReader(z, mostOutput))
	return result{out.Bytes(), classify(err)}
}

// whole hides that a source is in memory.
func whole(in []byte) io.Reader { return struct{ io.Reader }{bytes.NewReader(in)} }

func wanted(t testing.TB, name string, got, want result) {
	t.Helper()
	if got.end != want.end {
		t.Errorf("%s: ends with %q after %d bytes, want %q after %d", name, got.end, len(got.content), want.end, len(want.content))
	}
	if !bytes.Equal(got.content, want.content) {
		t.Errorf("%s: %d bytes, want %d; they differ from byte %d on", name, len(got.content), len(want.content), differ(got.content, want.content))
	}
}

func differ(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// oracle decodes files with compress/gzip and with klauspost, and with Reader at
// several numbers of workers and sizes of pieces.
type oracle struct {
	std   stdgzip.Reader
	other gzip.Reader
}

// compare fails the test unless all agree, and returns what they say. workers
// are those used beside one.
func (o *oracle) compare(t testing.TB, name string, in []byte, workers ...int) result {
	t.Helper()
	want := reference(in, &o.std)
	// klauspost's decoder gives up on some damage later, and by another name;
	// it refuses reserved flags.
	other := reference(in, &o.other)
	if (other.end == clean) != (want.end == clean) && other.end != noHeader || other.end == clean && !bytes.Equal(other.content, want.content) {
		t.Errorf("%s: klauspost ends with %q, compress/gzip with %q", name, other.end, want.end)
	}
	serial := run(t, pgunzip.NewReader(context.Background(), whole(in), pgunzip.Options{Workers: 1}))
	if more := len(serial.content) - len(want.content); want.end == truncated && more > 0 && more <= heldBack && bytes.HasPrefix(serial.content, want.content) {
		want.content = serial.content
	}
	wanted(t, name+", serial", serial, want)
	for i, n := range workers {
		got := run(t, pgunzip.NewPieces(context.Background(), whole(in), n, smallPiece))
		wanted(t, fmt.Sprintf("%s, %d workers", name, n), got, want)
		if i == 0 && len(in) > smallPiece {
			got = run(t, pgunzip.NewGuessed(context.Background(), whole(in), n, smallPiece))
			wanted(t, fmt.Sprintf("%s, %d workers, guessed", name, n), got, want)
		}
	}
	return want
}

// heldBack is how much compress/gzip may have in hand where the input ends. It does not
// decode a symbol unless as many bits are there as the end of block has.
const heldBack = 15 * 258

// smallPiece makes many pieces of a small file.
const smallPiece = 4 << 10

// same is compare for a file whose content is known.
func same(t testing.TB, name string, file, content []byte) {
	t.Helper()
	got := new(oracle).compare(t, name, file, 2, 8)
	wanted(t, name+", compress/gzip", got, result{content, clean})
}

func newStd() memberReader { return new(stdgzip.Reader) }
