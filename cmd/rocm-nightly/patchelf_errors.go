package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/rocm-nightly/rocm-nightly/patchelf"
)

// peerError is an error of the system in patchelf's words, for which scripts
// look: what it was doing, the file, and the C library's text.
func peerError(doing, name string, err error) error {
	text := systemText(err)
	return &saidError{text: fmt.Sprintf("%s '%s': %s", doing, name, text), err: err}
}

// systemText is strerror(3): Go's texts, but for the capital.
func systemText(err error) string {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return err.Error()
	}
	s := errno.Error()
	return strings.ToUpper(s[:1]) + s[1:]
}

// saidError is an error in other words.
type saidError struct {
	text   string
	detail string // what those words leave out
	err    error
}

func (e *saidError) Error() string { return e.text }

func (e *saidError) Unwrap() error { return e.err }

// Errors that patchelf has too.
var (
	errWrongType  = errors.New("wrong ELF type")
	errNoDynamic  = errors.New("cannot find section '.dynamic'. The input file is most likely statically linked")
	errNoInterp   = errors.New("cannot find section '.interp'. The input file is most likely statically linked")
	errIsLink     = errors.New("it is a symbolic link")
	errOutputLink = fmt.Errorf("--output: %w", errIsLink)
	errNoHeader   = errors.New("missing ELF header")
	errNotProgram = errors.New("not an ELF executable")
)

// readError puts an error of the reader into patchelf's words, where it has
// some.
func readError(err error, size int64) error {
	if errors.Is(err, patchelf.ErrNotELF) {
		if size < 52 { // of an Elf32_Ehdr
			return errNoHeader
		}
		return errNotProgram
	}
	var bad *patchelf.FormatError
	if !errors.As(err, &bad) {
		return err
	}
	said := map[string]string{
		"ELF header":  "missing ELF header",
		"EI_VERSION":  "unsupported ELF version",
		"EI_CLASS":    "ELF executable is not 32 or 64 bit",
		"e_phentsize": "program headers have wrong size",
		"e_phoff":     "program header table out of bounds",
		"e_phnum":     "program header table out of bounds",
	}[bad.Field]
	if said == "" {
		return err
	}
	return &saidError{text: said, detail: err.Error(), err: err}
}

// writeError puts an error of an edit into patchelf's words, where it has
// some: what could not be opened or created is "open".
func writeError(err error) error {
	var path *fs.PathError
	var refused *patchelf.RefusedError
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &path) && (path.Op == "open" || path.Op == "openat"):
		return &saidError{text: "open: " + systemText(err), err: err}
	}
	return err
}

// patchelfDetail is what the words of patchelf leave out of an error.
func patchelfDetail(err error) string {
	var said *saidError
	if errors.As(err, &said) {
		return said.detail
	}
	return ""
}

// patchelfHint says what to try.
func patchelfHint(err error) string {
	var bad *usageError
	switch {
	case errors.As(err, &bad):
		return "see rocm-nightly patchelf --help"
	case errors.Is(err, syscall.ETXTBSY):
		return "it is running: --atomic edits a copy and renames it"
	case errors.Is(err, errIsLink):
		return "--follow takes the file that it leads to"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "free some space, then run it again; the file is as it was"
	case strings.Contains(err.Error(), "hard links"):
		return "--break-links replaces this name only; without --atomic all names are edited"
	}
	return ""
}

// osABI names an OS ABI as patchelf does: by its old name, which is not that
// of readelf.
func osABI(b byte) string {
	names := map[elf.OSABI]string{
		elf.ELFOSABI_NONE: "System V", elf.ELFOSABI_HPUX: "HP-UX", elf.ELFOSABI_NETBSD: "NetBSD", elf.ELFOSABI_LINUX: "Linux",
		elf.ELFOSABI_HURD: "GNU Hurd", elf.ELFOSABI_SOLARIS: "Solaris", elf.ELFOSABI_AIX: "AIX", elf.ELFOSABI_IRIX: "IRIX",
		elf.ELFOSABI_FREEBSD: "FreeBSD", elf.ELFOSABI_TRU64: "Tru64", elf.ELFOSABI_OPENBSD: "OpenBSD", elf.ELFOSABI_OPENVMS: "OpenVMS",
	}
	if s, ok := names[elf.OSABI(b)]; ok {
		return s
	}
	return fmt.Sprintf("0x%02X", b)
}
