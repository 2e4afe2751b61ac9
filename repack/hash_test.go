package repack

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/directio"
)

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * i >> 8)
	}
	return b
}

// The digest of an edited file is that of its bytes, whatever its size, and
// though the edit is still in the page cache.
func TestHashOfEditedFiles(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	m := &maker{root: root}
	for _, size := range []int{0, 1, 4096, 1<<20 - 1, 1 << 20, 1<<20 + 1, 1<<20 + 511, 1<<20 + 4095, 2 << 20, 3<<20 + 5} {
		name := fmt.Sprint(size)
		want := pattern(size)
		f, err := os.Create(dir + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if size >= 1<<20 && directio.Known(int(f.Fd())) && directio.Start(int(f.Fd())) { // as it was unpacked
			if _, err := f.WriteAt(want[:1<<20], 0); err != nil {
				t.Fatal(err)
			}
			if err := directio.Stop(int(f.Fd())); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := f.WriteAt(want, 0); err != nil {
			t.Fatal(err)
		}
		for round := range 3 {
			for _, at := range []int{0, 100, size / 2, size - 1} {
				if at >= 0 && at < size {
					want[at] ^= byte(round + 1)
					if _, err := f.WriteAt(want[at:at+1], int64(at)); err != nil {
						t.Fatal(err)
					}
				}
			}
			sum := sha256.Sum256(want)
			got, n, err := m.hash(name)
			if err != nil || n != int64(size) || got != hex.EncodeToString(sum[:]) {
				t.Errorf("%d bytes: digest %s of %d bytes, %v", size, got, n, err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A file that is shorter than it was said to be is read to where it ends.
func TestHashOfAFileThatWasCut(t *testing.T) {
	name := t.TempDir() + "/f"
	for _, is := range []int{0, 5, 4096, 1<<20 - 7, 1 << 20, 2<<20 + 100} {
		if err := os.WriteFile(name, pattern(is), 0o600); err != nil {
			t.Fatal(err)
		}
		in, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		n, err := newReread(in, 4<<20).all(&got)
		if err != nil || n != int64(is) || !bytes.Equal(got.Bytes(), pattern(is)) {
			t.Errorf("%d bytes: %d, %v", is, n, err)
		}
		in.Close()
	}
}

// What a file system does not read past the cache (EINVAL) is read through it.
func TestReadThatIsRefusedPastTheCache(t *testing.T) {
	name, want := t.TempDir()+"/f", pattern(2<<20+100)
	if err := os.WriteFile(name, want, 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for _, off := range []int64{0, 1 << 20, 77} {
		r := newReread(in, int64(len(want)))
		for buf := make([]byte, 1<<20+1)[1:]; off < int64(len(want)); { // memory at an odd address
			n, err := r.read(buf, off)
			if err != nil || n == 0 || !bytes.Equal(buf[:n], want[off:off+int64(n)]) {
				t.Fatalf("at %d: %d bytes, %v", off, n, err)
			}
			off += int64(n)
		}
		if n, err := r.read(make([]byte, 9), off); n != 0 || err != io.EOF {
			t.Errorf("at the end: %d bytes, %v", n, err)
		}
	}
}

// An error ends the reading, and leaves nothing behind.
func TestHashThatFails(t *testing.T) {
	name := t.TempDir() + "/f"
	if err := os.WriteFile(name, pattern(5<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	in, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if _, err := newReread(in, 5<<20).all(failing{broken}); !errors.Is(err, broken) {
		t.Errorf("error %v of the writer", err)
	}
	in.Close()
	out, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := newReread(out, 5<<20).all(new(bytes.Buffer)); err == nil {
		t.Error("no error about a file that cannot be read")
	}
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, there were %d", runtime.NumGoroutine(), before)
		}
	}
}

// failing is a writer that does not take anything.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
