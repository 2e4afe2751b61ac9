package store

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"golang.org/x/sys/unix"
)

func TestParseLedger(t *testing.T) {
	one, two := lineOf(t, "a", 1), lineOf(t, "a", 2)
	long := strings.Repeat("x", 3*maxLedgerLine)
	for what, tt := range map[string]struct {
		in      string
		sizes   []int64
		skipped int
	}{
		"nothing":          {"", nil, 0},
		"empty lines":      {"\n\r\n \n", nil, 0},
		"two":              {one + "\n" + two, []int64{1, 2}, 0},
		"a page of HTML":   {"<html>\n<body>\nnot found\n", nil, 3},
		"a newer line":     {one + "\n" + `{"schema":2,"name":"a","size":7}` + "\n", []int64{1}, 1},
		"a conflict":       {"<<<<<<< x\n" + one + "\n=======\n" + two + "\n>>>>>>> y\n", []int64{1, 2}, 3},
		"a long line":      {long + "\n" + one, []int64{1}, 1},
		"a long last line": {one + "\n" + long, []int64{1}, 1},
		"no digest":        {`{"schema":1,"name":"a"}` + "\n" + one, []int64{1}, 1},
	} {
		pins, skipped, err := ParseLedger(iotest.HalfReader(strings.NewReader(tt.in)))
		if err != nil || !slices.Equal(sizes(pins), tt.sizes) || skipped != tt.skipped {
			t.Errorf("%s: %v, %d skipped, %v", what, sizes(pins), skipped, err)
		}
	}
	pins, _, err := ParseLedger(io.MultiReader(strings.NewReader(one+"\n"), iotest.ErrReader(unix.EIO)))
	if !errors.Is(err, unix.EIO) || len(pins) != 1 {
		t.Errorf("%v, %v", pins, err)
	}
}

// endless is a reader of one line again and again.
type endless struct {
	line string
	off  int
	read int64
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.line[e.off:])
	e.off = (e.off + n) % len(e.line)
	e.read += int64(n)
	return n, nil
}

func TestParseLedgerIsBounded(t *testing.T) {
	t.Parallel()
	if pins, _, err := ParseLedger(&endless{line: lineOf(t, "a", 1) + "\n"}); !errors.Is(err, ErrLedgerTooLong) || len(pins) != maxLedgerEntries {
		t.Errorf("%d entries, %v", len(pins), err)
	}
	for _, line := range []string{"x", strings.Repeat(" ", 1000) + "\n"} {
		r := &endless{line: line}
		if pins, _, err := ParseLedger(r); !errors.Is(err, ErrLedgerTooLong) || len(pins) != 0 || r.read > maxLedgerLen+1 {
			t.Errorf("%.5q: %d entries of %d bytes, %v", line, len(pins), r.read, err)
		}
	}
}

// FuzzParseLedger holds that what is read of any bytes is in its bounds, is
// what Find finds, and is read again from what Append would write.
func FuzzParseLedger(f *testing.F) {
	line, err := jsonLine(pinOf("a", 1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(line)
	f.Add(slices.Concat([]byte("\xef\xbb\xbf"), line, []byte("<<<<<<< x\r\n\x00"), line))
	f.Add([]byte(`{"schema":1,"name":"\u0061","digest":"0mdqa9w1p6cmli6976v4wi0sw9r4p5prkj7lzfd1877wk11c9c73"}` + "\n"))
	f.Add([]byte(`{"schema":2,"name":"a"}`))
	f.Add([]byte("{\"schema\":1,\"name\":\"\xff\",\"digest\":\"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\",\"size\":-1}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		pins, skipped, err := ParseLedger(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(b, []byte{'\n'}) + 1; len(pins)+skipped > n {
			t.Fatalf("%d entries and %d skipped in %d lines", len(pins), skipped, n)
		}
		for _, pin := range pins {
			_, line, err := encodePin(pin)
			if err != nil {
				continue // longer than it was, by escapes
			}
			if again, err := parsePin(line); err != nil || again.Name != pin.Name || again.Digest != pin.Digest || again.Size != pin.Size {
				t.Fatalf("%+v reads back as %+v, %v", pin, again, err)
			}
			found, err := findPins(bytes.NewReader(b), pin.Name)
			want := slices.DeleteFunc(slices.Clone(pins), func(p LedgerEntry) bool { return p.Name != pin.Name })
			if !errors.Is(err, ErrNewer) && (err != nil || !slices.Equal(sizes(found), sizes(want))) {
				t.Fatalf("%q: found %v, want %v, %v", pin.Name, sizes(found), sizes(want), err)
			}
		}
	})
}

// BenchmarkFind reads ten years of nights.
func BenchmarkFind(b *testing.B) {
	path := filepath.Join(b.TempDir(), "pins.jsonl")
	var all []byte
	for n := range 60_000 {
		line, err := jsonLine(pinOf("therock-dist-linux-gfx1151-"+night(n)+".tar.gz", n))
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, line...)
	}
	if err := os.WriteFile(path, all, 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := OpenLedger(path).Find("therock-dist-linux-gfx1151-" + night(77) + ".tar.gz"); err != nil {
			b.Fatal(err)
		}
	}
}
