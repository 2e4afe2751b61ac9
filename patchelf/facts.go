package patchelf

import (
	"bytes"
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

// Section returns the content of the first section of that name, at most
// 16 MiB. It returns ErrNoSection if there is none, or none with content.
func (f *File) Section(name string) ([]byte, error) {
	if f.shstrndx <= 0 || f.shstrndx >= f.shnum {
		return nil, fmt.Errorf("section %s: %w", name, ErrNoSection)
	}
	b, err := f.read("section name table", f.shoff+uint64(f.shstrndx*f.shdrSize()), uint64(f.shdrSize()))
	if err != nil {
		return nil, err
	}
	names := f.shdr(b)
	var found *shdr
	err = f.eachShdr(maxShdrs, func(_ int, s shdr) bool {
		if s.inFile() && f.named(&names, s.name, name) {
			found = &s
		}
		return found == nil
	})
	if err != nil {
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

// named tells whether the string at idx of the section name table is name.
func (f *File) named(table *shdr, idx uint32, name string) bool {
	n := uint64(len(name)) + 1
	if uint64(idx) >= table.size || n > table.size-uint64(idx) || table.off+uint64(idx) < table.off {
		return false
	}
	b, err := f.read("section name", table.off+uint64(idx), n)
	return err == nil && b[n-1] == 0 && bytes.Equal(b[:n-1], []byte(name))
}
