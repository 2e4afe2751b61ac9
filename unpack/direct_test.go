package unpack

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/directio"
)

// Files of sizes around that from which on the page cache is passed by are what
// they are in the archive: content, holes, mode and time.
func TestLargeFilesOfOddSizes(t *testing.T) {
	t.Parallel()
	noise := varied(4 << 20)
	bodies := map[string]string{}
	for _, size := range []int{1<<20 - 1, 1 << 20, 1<<20 + 1, 1<<20 + 4095, 1<<20 + 4096, 1<<20 + 4097, 1<<20 + holeSize, 2<<20 - 4096, 2<<20 - 1, 3<<20 + 511} {
		body := []byte(noise[:size])
		bodies[fmt.Sprintf("noise/%d", size)] = string(body)
		clear(body[:2*holeSize])
		bodies[fmt.Sprintf("hole-first/%d", size)] = string(body)
		clear(body[5*holeSize-100 : 9*holeSize+100])
		bodies[fmt.Sprintf("hole-within/%d", size)] = string(body)
		clear(body[size-3*holeSize:])
		bodies[fmt.Sprintf("hole-last/%d", size)] = string(body)
		bodies[fmt.Sprintf("zeros/%d", size)] = string(make([]byte, size))
	}
	var entries []entry
	for name, body := range bodies {
		entries = append(entries, entry{name: name, body: body})
	}
	res, dir, err := untar(t, rawTar(t, entries...), Options{})
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, f := range res.Files {
		body, ok := bodies[f.Path]
		if !ok {
			continue
		}
		checked++
		onDiskIs(t, filepath.Join(dir, f.Path), body, f.MTime)
		if f.SHA256 != hexSum([]byte(body)) || f.Size != int64(len(body)) {
			t.Errorf("%s: the result says %d bytes, %s", f.Path, f.Size, f.SHA256)
		}
	}
	if checked != len(bodies) {
		t.Errorf("%d files, want %d", checked, len(bodies))
	}
}

func onDiskIs(t *testing.T, name, body string, mtime int64) {
	t.Helper()
	got, err := os.ReadFile(name)
	if err != nil || string(got) != body {
		t.Errorf("%s: other content, %d bytes of %d, %v", name, len(got), len(body), err)
	}
	var st unix.Stat_t
	if err := unix.Stat(name, &st); err != nil || st.Mode != unix.S_IFREG|0o444 || st.Mtim.Sec != mtime || st.Mtim.Nsec != 0 {
		t.Errorf("%s: mode %o, time %d.%d, want %d; %v", name, st.Mode, st.Mtim.Sec, st.Mtim.Nsec, mtime, err)
	}
}

// Large text that was edited lies anywhere in memory, and is written all the same.
func TestLargeEditedText(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1<<20 - 1, 1 << 20, 1<<20 + 1, 1<<20 + 4095, 3<<20 + 7} {
		for _, from := range []int{0, 1, 512, 4096} {
			text := strings.Repeat("#!text of a line\n", (size+4096)/16)
			res, dir, err := untar(t, rawTar(t, entry{name: "./text", body: text}), Options{
				Wants: func(string, []byte) bool { return true },
				Edit: func(_ string, _ fs.FileMode, data []byte) ([]byte, []string, error) {
					return data[from : from+size], []string{"rule"}, nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			onDiskIs(t, filepath.Join(dir, "text"), text[from:from+size], res.Files[0].MTime)
			if res.Files[0].SHA256 != hexSum([]byte(text[from:from+size])) {
				t.Errorf("%d bytes from %d on: the digest is not that of what is on disk", size, from)
			}
		}
	}
}

// What a file system does not take past the cache (EINVAL) goes through it: there
// memory at an odd address, a length and an offset that no block has.
func TestWriteThatIsRefusedPastTheCache(t *testing.T) {
	root, dir := openRoot(t)
	if !direct(root) {
		t.Log("not here: the file system is another one")
	}
	d := newDirs(root)
	defer d.close()
	in, err := d.open(".")
	if err != nil {
		t.Fatal(err)
	}
	page := []byte(varied(2<<20 + 4096))
	for what, c := range map[string]struct {
		skip, n int
		off     int64
		over    bool // it is known that no write after it is direct
	}{
		"whole pages":            {0, 1 << 20, 0, false},
		"memory at an odd place": {1, 1 << 20, 0, false}, // which some disks take
		"a tail":                 {0, 1<<20 + 1, 4096, true},
		"less than a page":       {0, 100, 8192, true},
		"an odd offset":          {0, 1 << 20, 77, true},
	} {
		t.Run(what, func(t *testing.T) {
			f, err := in.create(strings.ReplaceAll(what, " ", "-"), 0o444)
			if err != nil {
				t.Fatal(err)
			}
			defer f.close()
			if f.direct = directio.Start(f.fd); !f.direct {
				t.Log("not here: the file system has no direct writes")
			}
			want := append(make([]byte, c.off), page[c.skip:c.skip+c.n]...)
			if err := f.writeAt(page[c.skip:c.skip+c.n], c.off); err != nil {
				t.Fatal(err)
			}
			if f.direct && c.over {
				t.Error("what follows would be refused")
			}
			more := page[3 : 3+5000] // whatever came before, the file goes on
			if err := f.writeAt(more, int64(len(want))); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join(dir, f.name))
			if err != nil || !bytes.Equal(got, append(want, more...)) {
				t.Errorf("it reads otherwise: %d bytes, %v", len(got), err)
			}
		})
	}
}
