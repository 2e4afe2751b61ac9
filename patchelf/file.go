package patchelf

import (
	"fmt"
	"os"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// Result says what an edit did to a file.
type Result struct {
	Changed       bool
	Before, After *manifest.ELF
	Written       int64  // bytes written
	Growth        int64  // bytes that the file became longer
	How           string // how the edit was made, for people

	// What the system did not permit to keep: "owner" and names of extended
	// attributes of a copy, "modification time" of a file of somebody else.
	Lost []string
}

// EditPath edits the ELF file at path in place: the inode, the mode, the
// capabilities and the modification time stay, and so do hard links. A file
// that is read-only is made writable for the edit. Symbolic links and whatever
// else is not a regular file are refused, and so is a file that another edit
// has locked.
//
// It returns ErrNotELF, a *FormatError, a *RefusedError, or what the system
// says. In the first three cases nothing was written; where a write fails,
// those before it are taken back.
func EditPath(path string, e Edit) (Result, error) {
	return EditPathFunc(path, always(e), nil)
}

// EditPathFunc is EditPath for an edit that follows from what the file says:
// edit is given the file as it was read, and if another edit comes between,
// nothing is written. ok, unless nil, is asked before the first byte is
// written, if there is anything to write, with the file open for reading. An
// error of either ends the edit.
func EditPathFunc(path string, edit func(f *File) (Edit, error), ok func(f *os.File, p *Plan) error) (Result, error) {
	open := func(flag int) (*os.File, error) { return os.OpenFile(path, flag, 0) }
	return inPlace{name: path, open: open, flags: openFlags, want: edit, ok: ok}.edit()
}

// EditIn is EditPath for a name under root, which it does not leave.
func EditIn(root *os.Root, name string, e Edit) (Result, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return Result{}, fmt.Errorf("edit: %w", err)
	}
	if !info.Mode().IsRegular() {
		return Result{}, fmt.Errorf("edit %s: %w", name, refuse("it is not a regular file"))
	}
	open := func(flag int) (*os.File, error) { return root.OpenFile(name, flag, 0) }
	return inPlace{name: name, open: open, flags: openFlags, want: always(e)}.edit()
}

// EditFile edits an open file, which must be open for reading and writing if
// the edit changes anything. The modification time stays.
func EditFile(f *os.File, e Edit) (Result, error) {
	p, res, err := planFile(f, e)
	if err != nil || p.Empty() {
		return res, err
	}
	res.Lost, err = applyTo(f, p)
	return res, err
}

func always(e Edit) func(*File) (Edit, error) {
	return func(*File) (Edit, error) { return e, nil }
}

func planFile(f *os.File, e Edit) (*Plan, Result, error) { return planWith(f, always(e)) }

// planWith plans what want says for an open file.
func planWith(f *os.File, want func(*File) (Edit, error)) (*Plan, Result, error) {
	g, err := parseFile(f)
	if err != nil {
		return nil, Result{}, err
	}
	e, err := want(g)
	if err != nil {
		return nil, Result{}, err
	}
	p, err := g.Plan(e)
	if err != nil {
		return nil, Result{}, err
	}
	return p, Result{Changed: !p.Empty(), Before: g.Facts(), After: p.After().Facts(), Written: p.Written(), Growth: p.Growth(), How: p.String()}, nil
}

func parseFile(f *os.File) (*File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, refuse("it is not a regular file")
	}
	return Parse(f, info.Size())
}
