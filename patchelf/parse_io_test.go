package patchelf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"
)

// hole is a file of any size that is zero but for its pieces.
type hole struct {
	size   int64
	pieces map[int64][]byte
	reads  int
	bytes  int
}

func (h *hole) ReadAt(p []byte, off int64) (int, error) {
	h.reads++
	n := int(min(int64(len(p)), max(h.size-off, 0)))
	h.bytes += n
	clear(p[:n])
	for at, b := range h.pieces {
		lo, hi := max(off, at), min(off+int64(n), at+int64(len(b)))
		if lo < hi {
			copy(p[lo-off:hi-off], b[lo-at:hi-at])
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// huge is a library of 40 GiB with a string table of 2 GiB, names all over it,
// and a million section headers, of which the dynamic section's is the last.
func huge() *hole {
	const strOff, strSize, dynOff, shoff, sections = 16 << 30, 2 << 30, 30 << 30, 39 << 30, 1 << 20
	l := layout{order: binary.LittleEndian, wide: true}
	h := &hole{size: 40 << 30, pieces: map[int64][]byte{}}
	var ds []dyn
	for i := range 200 {
		at := int64(1 + i*10_000_019%(strSize-64))
		h.pieces[strOff+at] = fmt.Appendf(nil, "libnumber%d.so.1", i)
		ds = append(ds, dyn{uint64(elf.DT_NEEDED), uint64(at)})
	}
	ds = append(ds, dyn{uint64(elf.DT_STRTAB), strOff}, dyn{uint64(elf.DT_STRSZ), strSize}, dyn{})
	dynamic := l.putDyns(ds)
	h.pieces[dynOff] = dynamic
	n := uint64(len(dynamic))
	ehdr := odd{static: true, bare: true}.bytes()[:64]
	l.put(ehdr[40:], shoff)
	l.order.PutUint16(ehdr[56:], 2)
	phdrs := l.putPhdrs([]phdr{
		{kind: uint32(elf.PT_LOAD), flags: 6, filesz: 38 << 30, memsz: 38 << 30, alignment: 4096},
		{kind: uint32(elf.PT_DYNAMIC), flags: 6, off: dynOff, vaddr: dynOff, filesz: n, memsz: n, alignment: 8}})
	h.pieces[0] = append(ehdr, phdrs...)
	zero, last := make([]byte, 64), make([]byte, 64)
	l.putShdr(zero, shdr{size: sections})
	l.putShdr(last, shdr{kind: uint32(elf.SHT_DYNAMIC), flags: uint64(elf.SHF_ALLOC), addr: dynOff, off: dynOff, size: n})
	h.pieces[shoff], h.pieces[shoff+64*(sections-1)] = zero, last
	return h
}

// TestReadsOnlyHeaders: less than 64 KiB is read, in few reads, of a library of
// any size, however large its tables are, and it takes less than a millisecond.
func TestReadsOnlyHeaders(t *testing.T) {
	h := huge()
	f, err := Parse(h, h.size)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Needed) != 200 || f.Needed[199] != "libnumber199.so.1" || f.Sections() != 1<<20 || f.Companion() {
		t.Errorf("%q, %d", f.Needed, f.Sections())
	}
	if h.bytes > 64<<10 || h.reads > 250 {
		t.Errorf("%d bytes in %d reads", h.bytes, h.reads)
	}
	t.Logf("%d bytes in %d reads", h.bytes, h.reads)
	if best := fastest(func() { _, _ = Parse(byteFile(odd{entries: oddEntries}.bytes()), 4000) }); best > time.Millisecond {
		t.Errorf("a small file takes %v", best)
	}
}

// fastest is the shortest of some runs: others may want the processor, too.
func fastest(run func()) time.Duration {
	best := time.Hour
	for range 50 {
		start := time.Now()
		run()
		best = min(best, time.Since(start))
	}
	return best
}

// TestReadsLittleOfLargeLibraries: so it is with the largest libraries that
// this machine has.
func TestReadsLittleOfLargeLibraries(t *testing.T) {
	var paths []string
	for _, pattern := range []string{"/usr/lib/x86_64-linux-gnu/lib[Lxcs]*.so.*", "/usr/lib/llvm-*/lib/lib*.so*", "/usr/lib/*/lib*.so"} {
		found, _ := filepath.Glob(pattern)
		paths = append(paths, found...)
	}
	size := func(path string) int64 {
		info, err := os.Stat(path)
		if err != nil {
			return 0
		}
		return info.Size()
	}
	slices.SortFunc(paths, func(a, b string) int { return int(size(b) - size(a)) })
	if len(paths) == 0 {
		t.Skip("there is no large library (Debian: libllvm16)")
	}
	for _, path := range paths[:min(len(paths), 8)] {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		r := &counted{f: file}
		if _, err := Parse(r, size(path)); errors.Is(err, ErrNotELF) {
			file.Close()
			continue
		} else if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		best := fastest(func() { _, _ = Parse(file, size(path)) })
		if r.n > 64<<10 || best > time.Millisecond {
			t.Errorf("%s: %d bytes, %v", path, r.n, best)
		}
		t.Logf("%s: %d MiB, %d bytes read, %v", filepath.Base(path), size(path)>>20, r.n, best)
		file.Close()
	}
}

// TestMemoryIsBounded: headers that claim much cost what is there, and little
// of it.
func TestMemoryIsBounded(t *testing.T) {
	const most = 32 << 20
	l := layout{order: binary.LittleEndian, wide: true}
	base := func(kind elf.Type) []byte { return odd{kind: kind, static: true, bare: true}.bytes()[:64] }
	header := func(kind elf.Type, phoff, shoff uint64, phnum, shnum, shstrndx uint16) []byte {
		b := base(kind)
		l.put(b[32:], phoff)
		l.put(b[40:], shoff)
		for i, v := range []uint16{phnum, 64, shnum, shstrndx} {
			l.order.PutUint16(b[56+2*i:], v)
		}
		return b
	}
	zero := make([]byte, 64)
	l.putShdr(zero, shdr{size: 1 << 40, link: 3, info: 1<<32 - 1})
	loads := l.putPhdrs([]phdr{{kind: uint32(elf.PT_LOAD), filesz: 1 << 40, memsz: 1 << 40, flags: 6}, {kind: uint32(elf.PT_DYNAMIC), off: 4096, vaddr: 4096, filesz: 1 << 39}})
	var needed []dyn
	for i := range 60_000 {
		needed = append(needed, dyn{uint64(elf.DT_NEEDED), uint64(1<<39 + i*97)})
	}
	needed = append(needed, dyn{uint64(elf.DT_STRTAB), 0}, dyn{uint64(elf.DT_STRSZ), 1 << 40}, dyn{})
	endless := make([]byte, 9<<20) // of names, none of which is empty
	for i := range endless {
		endless[i] = 'x'
	}
	long := bytes.Clone(endless) // of names, each shorter than the longest that is read
	for i := 900 << 10; i < len(long); i += 900 << 10 {
		long[i] = 0
	}
	for name, pieces := range map[string]map[int64][]byte{
		"program headers":           {0: header(elf.ET_DYN, 64, 0, 0xfffe, 0, 0)},
		"program headers elsewhere": {0: header(elf.ET_DYN, 64, 1<<20, 0xffff, 0, 0), 1 << 20: zero},
		"core":                      {0: header(elf.ET_CORE, 64, 1<<20, 0xffff, 0, 0), 1 << 20: zero},
		"section headers":           {0: header(elf.ET_REL, 0, 1<<20, 0, 0, 0xffff), 1 << 20: zero},
		"interpreter":               {0: append(header(elf.ET_DYN, 64, 0, 1, 0, 0), l.putPhdrs([]phdr{{kind: uint32(elf.PT_INTERP), filesz: 1 << 40}})...)},
		"entries":                   {0: append(header(elf.ET_DYN, 64, 0, 2, 0, 0), loads...), 4096: slices.Repeat([]byte{1}, 2<<20)},
		"names":                     {0: append(header(elf.ET_DYN, 64, 0, 2, 0, 0), loads...), 4096: l.putDyns(needed)},
		"endless names":             {0: append(header(elf.ET_DYN, 64, 0, 2, 0, 0), loads...), 4096: l.putDyns(needed), 1 << 39: endless},
		"long names":                {0: append(header(elf.ET_DYN, 64, 0, 2, 0, 0), loads...), 4096: l.putDyns(needed), 1 << 39: long},
	} {
		h := &hole{size: 1 << 40, pieces: pieces}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		f, err := Parse(h, h.size)
		runtime.ReadMemStats(&after)
		var format *FormatError
		if err != nil && !errors.As(err, &format) {
			t.Errorf("%s: %v", name, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > most || time.Since(start) > 2*time.Second {
			t.Errorf("%s: %d bytes allocated, %d read, %v: %v", name, n, h.bytes, time.Since(start), err)
		}
		if f != nil {
			if f.Sections() > maxShdrs {
				t.Errorf("%s: %d sections", name, f.Sections())
			}
			if _, err := f.Section(".text"); err != nil && !errors.As(err, &format) && !errors.Is(err, ErrNoSection) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestReadErrorsAreTold: what the system says is not taken for a malformed
// file.
func TestReadErrorsAreTold(t *testing.T) {
	b := odd{late: true, entries: append(slices.Repeat([]oddEntry{{tag: elf.DT_NEEDED, name: "libsomething.so"}}, 64), oddEntries...), interp: "/lib/ld.so"}.bytes()
	for n := range 64 {
		_, err := Parse(&failing{b: b, after: n}, int64(len(b)))
		if err == nil && n > 1 {
			return
		}
		if !errors.Is(err, errDisk) {
			t.Errorf("read %d: %v", n, err)
		}
	}
	t.Error("it reads without end")
}

var errDisk = errors.New("the disk is on fire")

type failing struct {
	b     []byte
	after int
}

func (f *failing) ReadAt(p []byte, off int64) (int, error) {
	if f.after--; f.after < 0 {
		return 0, errDisk
	}
	return byteFile(f.b).ReadAt(p, off)
}

// BenchmarkParse reads the headers of files of any size.
func BenchmarkParse(b *testing.B) {
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	for name, path := range map[string]string{"small": variantOf(b, "bfd-pie-36").make(b), "go": exe, "libLLVM": "/usr/lib/x86_64-linux-gnu/libLLVM-16.so.1"} {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		info, _ := f.Stat()
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(f, info.Size()); err != nil {
					b.Fatal(err)
				}
			}
		})
		f.Close()
	}
	b.Run("huge", func(b *testing.B) {
		h := huge()
		for b.Loop() {
			if _, err := Parse(h, h.size); err != nil {
				b.Fatal(err)
			}
		}
	})
}
