package audit

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/patchelf"
)

// hostMachine is the machine whose files are judged: EM_X86_64.
const hostMachine = "x86_64"

// kpackSection is where AMD's splitter leaves the names of the archives.
const kpackSection = ".rocm_kpack_ref"

// lookELF fills the ELF facts of e, unless they are known, and its archives.
func (e *entry) lookELF(f *os.File, size int64) {
	x, err := patchelf.Parse(f, size)
	if err != nil {
		if forHost(f) {
			e.badELF = err
		}
		return
	}
	if e.elf == nil {
		e.elf = x.Facts()
	}
	if !e.hostELF() {
		return
	}
	e.faults, e.filters = x.Health(), filtersOf(x)
	if e.vers, err = readSymvers(x); err != nil {
		e.badELF = err
	}
	b, err := x.Section(kpackSection)
	switch {
	case err == nil:
		e.kpack = readKpackRef(b)
	case !errors.Is(err, patchelf.ErrNoSection):
		e.kpack = &kpackRef{err: err}
	}
}

// filter is a library in which symbols are looked for first (gABI, "Dynamic
// Section"; ld(1), -f and -F). It is loaded like one that is needed.
type filter struct {
	name     string
	optional bool // DT_AUXILIARY: without it the object's own symbols serve
}

func filtersOf(x *patchelf.File) []filter {
	var out []filter
	for _, s := range x.Strings {
		if s.Tag == elf.DT_FILTER || s.Tag == elf.DT_AUXILIARY {
			out = append(out, filter{s.Value, s.Tag == elf.DT_AUXILIARY})
		}
	}
	return out
}

// forHost reads e_machine alone (gABI, figure 4-3), of files whose headers make
// no sense. One that ends before it counts as this machine's.
func forHost(f *os.File) bool {
	var b [20]byte
	if n, _ := f.ReadAt(b[:], 0); n < len(b) {
		return true
	}
	return elf.Machine(binary.LittleEndian.Uint16(b[18:])) == elf.EM_X86_64
}

var errNotLibrary = errors.New("it is not a regular file")

// hostFacts reads a library of the host.
func hostFacts(name string) (*manifest.ELF, *symvers, error) {
	// A tree may name any file: a pipe would be waited for.
	info, err := os.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errNotLibrary
	}
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0) // it may have become one since
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	x, err := patchelf.Parse(f, info.Size())
	if err != nil {
		return nil, nil, err
	}
	// What is wrong with the host's own tables is not the tree's fault.
	vers, _ := readSymvers(x)
	return x.Facts(), vers, nil
}
