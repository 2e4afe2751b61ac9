package patchelf

import (
	"errors"
	"fmt"
)

// ErrNotELF is returned for a file that does not start with the ELF magic.
var ErrNotELF = errors.New("not an ELF file")

// ErrNoSection is returned by File.Section for a section that is not there or
// has no bytes in the file.
var ErrNoSection = errors.New("no such section")

// FormatError says that a file starts as an ELF file but is malformed.
type FormatError struct {
	Field  string // header field or table, as the gABI names it
	Reason string
}

func (e *FormatError) Error() string { return "malformed ELF: " + e.Field + ": " + e.Reason }

func malformed(field, format string, args ...any) error {
	return &FormatError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// RefusedError says that an edit cannot be made safely. Nothing was written.
type RefusedError struct {
	Reason string
}

func (e *RefusedError) Error() string { return "edit refused: " + e.Reason }

func refuse(format string, args ...any) error {
	return &RefusedError{Reason: fmt.Sprintf(format, args...)}
}
