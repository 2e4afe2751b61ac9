package patchelf

import (
	"cmp"
	"debug/elf"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// maxSection bounds what Section reads.
const maxSection = 16 << 20

// Facts is f as a manifest records it.
func (f *File) Facts() *manifest.ELF {
	e := &manifest.ELF{
		Class:   f.Class,
		Machine: machineName(f.Machine),
		Type:    typeName(f.Type),
		Dynamic: f.Dynamic,
		Soname:  f.Soname,
		Needed:  slices.Clone(f.Needed),
		Interp:  f.Interp,
	}
	if f.RPath != nil {
		e.RPath = *f.RPath
	}
	if f.RunPath != nil {
		e.RunPath = *f.RunPath
	}
	return e
}

func machineName(m elf.Machine) string {
	name, ok := strings.CutPrefix(m.String(), "EM_")
	if !ok {
		return strconv.Itoa(int(m))
	}
	return strings.ToLower(name)
}

func typeName(t elf.Type) string {
	switch t {
	case elf.ET_REL:
		return "rel"
	case elf.ET_EXEC:
		return "exec"
	case elf.ET_DYN:
		return "dyn"
	case elf.ET_CORE:
		return "core"
	}
	return strconv.Itoa(int(t))
}

// Path returns the run path that a loader honours and the tag that holds it:
// DT_RUNPATH where there is one, else DT_RPATH, else "" and 0.
func (f *File) Path() (string, Tag) {
	switch {
	case f.RunPath != nil:
		return *f.RunPath, RunPath
	case f.RPath != nil:
		return *f.RPath, RPath
	}
	return "", 0
}

// LatePHDR tells whether the program-header table is not where linkers put
// it, right behind the ELF header. Tools that assume so break such files.
func (f *File) LatePHDR() bool { return f.phnum > 0 && f.phoff != uint64(f.ehdrSize()) }

// Static tells whether f is a program that the kernel starts without a loader:
// it has no PT_INTERP. It may have a dynamic section, to relocate itself by.
func (f *File) Static() bool {
	return f.Type == elf.ET_EXEC && f.Machine != machineAMDGPU && f.segment(elf.PT_INTERP) < 0 || f.StaticPIE()
}

// StaticPIE tells whether f is a Static program that runs at any address.
// ET_DYN without PT_INTERP is a library too, so it must say that it is not:
// by DF_1_PIE, by a DT_DEBUG, which linkers give to programs only, while it has
// no name and needs nothing, or by having an entry point and no dynamic section
// at all, as what a packer left of a program. A loader itself has a name.
func (f *File) StaticPIE() bool {
	if f.Type != elf.ET_DYN || f.Machine == machineAMDGPU || f.segment(elf.PT_INTERP) >= 0 {
		return false
	}
	_, debug := f.dynValue(elf.DT_DEBUG)
	switch {
	case f.Flags1&elf.DF_1_PIE != 0:
		return true
	case f.Dynamic:
		return debug && f.Soname == "" && len(f.Needed) == 0
	}
	return !f.companion && f.Entry != 0 && len(f.phdrs) > 0
}

// Segments is the number of program headers. It may be more than 65,535
// (PN_XNUM), in core files.
func (f *File) Segments() int { return f.phnum }

// Sections is the number of section headers, the null one included, and 0 for
// a table that is not wholly in the file. It may be more than 65,535.
func (f *File) Sections() int { return f.shnum }

// Section returns the content of the first section of that name, at most
// 16 MiB, as it is in the file: compressed where SHF_COMPRESSED says so. It
// returns ErrNoSection if there is none, or none with content.
func (f *File) Section(name string) ([]byte, error) {
	if f.shstrndx <= 0 || f.shstrndx >= f.shnum {
		return nil, fmt.Errorf("section %s: %w", name, ErrNoSection)
	}
	b, err := f.read("e_shstrndx", f.shoff+uint64(f.shstrndx)*uint64(f.shdrSize()), uint64(f.shdrSize()))
	if err != nil {
		return nil, err
	}
	names := nameTable{f: f, shdr: f.shdr(b)}
	if names.off > uint64(f.size) || names.size > uint64(f.size)-names.off {
		return nil, malformed("e_shstrndx", "section %d, of names, lies past the end of the file", f.shstrndx)
	}
	var found *shdr
	var failed error
	err = f.eachShdr(maxShdrs, func(_ int, s shdr) bool {
		if s.inFile() {
			var is bool
			if is, failed = names.is(s.name, name); is {
				found = &s
			}
		}
		return found == nil && failed == nil
	})
	if err := cmp.Or(err, failed); err != nil {
		return nil, err
	}
	if found == nil {
		return nil, fmt.Errorf("section %s: %w", name, ErrNoSection)
	}
	if found.size > maxSection {
		return nil, malformed("section "+name, "%d bytes, more than %d", found.size, maxSection)
	}
	return f.read("section "+name, found.off, found.size)
}

// nameTable is the table of section names, read by blocks: most are shorter
// than one, and sections tend to be in the order of their names.
type nameTable struct {
	f *File
	shdr
	at  uint64 // of block, in the table
	buf []byte
}

// is tells whether the string at idx is name.
func (t *nameTable) is(idx uint32, name string) (bool, error) {
	at, n := uint64(idx), uint64(len(name))+1
	if at >= t.size || n > t.size-at {
		return false, nil
	}
	if at < t.at || at+n > t.at+uint64(len(t.buf)) {
		t.at = at &^ (readChunk - 1)
		end := max(t.at+readChunk, at+n)
		b, err := t.f.read("section names", t.off+t.at, min(end, t.size)-t.at)
		if err != nil {
			return false, err
		}
		t.buf = b
	}
	s := t.buf[at-t.at:][:n]
	return s[n-1] == 0 && string(s[:n-1]) == name, nil
}
