//go:build heavy

package pgunzip_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"

	"github.com/klauspost/compress/flate"

	"github.com/rocm-nightly/rocm-nightly/unpack/pgunzip"
)

// long is a source of one member whose content is that of parts over and over,
// up to size bytes or a little more. Each part is compressed once, up to a sync flush, so
// that making the stream takes next to nothing beside decoding it.
type long struct {
	parts, deflated [][]byte
	size            int64

	made int64
	crc  uint32
	next int
	now  []byte
	done bool
}

func newLong(t *testing.T, size int64, parts ...[]byte) *long {
	t.Helper()
	l := &long{size: size, parts: parts, now: plainHeader}
	for _, p := range parts {
		var b bytes.Buffer
		w, err := flate.NewWriter(&b, 5)
		if err == nil {
			_, err = w.Write(p)
		}
		if err == nil {
			err = w.Flush()
		}
		if err != nil {
			t.Fatal(err)
		}
		l.deflated = append(l.deflated, b.Bytes())
	}
	return l
}

func (l *long) Read(p []byte) (int, error) {
	if len(l.now) == 0 && l.done {
		return 0, io.EOF
	}
	if len(l.now) == 0 {
		l.now = l.more()
	}
	n := copy(p, l.now)
	l.now = l.now[n:]
	return n, nil
}

func (l *long) more() []byte {
	if l.made >= l.size {
		l.done = true
		end := binary.LittleEndian.AppendUint32([]byte{3, 0}, l.crc)
		return binary.LittleEndian.AppendUint32(end, uint32(l.made))
	}
	i := l.next % len(l.parts)
	l.next++
	l.made += int64(len(l.parts[i]))
	l.crc = crc32.Update(l.crc, crc32.IEEETable, l.parts[i])
	return l.deflated[i]
}

// watch looks at the memory and the processor time of each sixteenth of a stream.
type watch struct {
	t      *testing.T
	step   int64
	n      int64
	cpu    []float64 // seconds, of each step
	last   float64
	memory []uint64 // in use after each step
}

func (w *watch) Write(p []byte) (int, error) {
	before := w.n / w.step
	if w.n += int64(len(p)); w.n/w.step > before {
		w.look()
	}
	return len(p), nil
}

func (w *watch) look() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	w.memory = append(w.memory, m.HeapInuse+m.StackInuse)
	now := processor(w.t)
	w.cpu = append(w.cpu, now-w.last)
	w.last = now
}

func processor(t *testing.T) float64 {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		t.Fatal(err)
	}
	return float64(ru.Utime.Nano()+ru.Stime.Nano()) / 1e9
}

func sum(all []float64) (total float64) {
	for _, v := range all {
		total += v
	}
	return total
}

// decode runs a stream through and returns what was seen.
func (l *long) decode(t *testing.T, workers int) *watch {
	t.Helper()
	runtime.GC()
	w := &watch{t: t, step: l.size / 16, last: processor(t)}
	z := pgunzip.NewReader(t.Context(), l, pgunzip.Options{Workers: workers})
	defer z.Close()
	n, err := io.Copy(w, struct{ io.Reader }{z}) // in the 32 KiB of Copy, as archive/tar reads
	if err != nil || n != l.made || n < l.size {
		t.Fatalf("%d bytes of %d: %v", n, l.made, err)
	}
	return w
}

// TestLongStream decodes 16 GiB: the memory stays what it was, and so does the
// speed.
func TestLongStream(t *testing.T) {
	size := int64(16 << 30)
	if testing.Short() {
		size = 1 << 30
	}
	content := mixture(t, 24<<20)
	for _, workers := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("%d workers", workers), func(t *testing.T) {
			base := heap()
			l := newLong(t, size, content[:7<<20], content[7<<20:11<<20], content[11<<20:23<<20], content[23<<20:])
			w := l.decode(t, workers)
			first, last := sum(w.cpu[:4]), sum(w.cpu[12:16])
			quarter, most := maximum(w.memory[:4]), maximum(w.memory)
			t.Logf("%.1f s of processor time, %.0f and %.0f MB/s of it in the first quarter and in the last; memory %d MiB at most (%d in the first quarter), %d before",
				sum(w.cpu), float64(size)/4e6/first, float64(size)/4e6/last, most>>20, quarter>>20, base>>20)
			if last > first*1.25 {
				t.Errorf("the first quarter takes %.2f s of processor time, the last %.2f s", first, last)
			}
			if most > quarter+quarter/4+16<<20 {
				t.Errorf("%d MiB in use, and %d in the first quarter", most>>20, quarter>>20)
			}
			if limit := base + mostMemory(workers) + uint64(len(content)); most > limit {
				t.Errorf("%d MiB in use, want %d", most>>20, limit>>20)
			}
		})
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

func maximum(all []uint64) (most uint64) {
	for _, v := range all {
		most = max(most, v)
	}
	return most
}

// TestBomb decodes 10 GiB of which there are up to 1000 bytes in each of the
// input: of zeros, where all that a worker guesses stays unknown, and of zeros
// behind enough text to know all that follows it.
func TestBomb(t *testing.T) {
	size := int64(10 << 30)
	if testing.Short() {
		size = 1 << 30
	}
	known := make([]byte, 32<<20)
	base64.StdEncoding.Encode(known, noise(rand.New(rand.NewPCG(50, 50)), 40<<10))
	for name, content := range map[string][]byte{"zeros": make([]byte, 64<<20), "text and zeros": known} {
		for _, workers := range []int{1, 2, 4, 8} {
			t.Run(fmt.Sprintf("%s, %d workers", name, workers), func(t *testing.T) {
				base := heap()
				w := newLong(t, size, content).decode(t, workers)
				most := maximum(w.memory)
				t.Logf("%.1f s of processor time, memory %d MiB at most, %d before", sum(w.cpu), most>>20, base>>20)
				if limit := base + mostMemory(workers); most > limit {
					t.Errorf("%d MiB in use, want %d", most>>20, limit>>20)
				}
			})
		}
	}
}

// mostMemory is what the package may take: each piece that is ahead can be
// guessed to expand to 24 MiB, and each chunk that waits for its reader.
func mostMemory(workers int) uint64 {
	if workers == 1 {
		return 16 << 20
	}
	return uint64(128+80*workers) << 20
}
