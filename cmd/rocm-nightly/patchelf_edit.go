package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/patchelf"
)

// file prints and edits one file.
func (r *patchelfRun) file(name string, out *patchelfFile) error {
	f, size, err := r.open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	g, err := patchelf.Parse(f, size)
	if err != nil {
		return readError(err, size)
	}
	if g.Type != elf.ET_EXEC && g.Type != elf.ET_DYN {
		return errWrongType
	}
	if err := r.show(g, f, out); err != nil {
		return err
	}
	if !r.edits() && r.output == "" {
		return nil
	}
	f.Close() // who looks for users of the file shall not find this one
	return r.apply(name, out)
}

// show prints what the flags ask for, as it is before any edit.
func (r *patchelfRun) show(g *patchelf.File, f io.ReaderAt, out *patchelfFile) error {
	if g.Companion() {
		return nil
	}
	if (r.printPath || r.printNeeded) && !g.Dynamic {
		return errNoDynamic
	}
	if r.printInterp {
		if g.Interp == "" {
			return errNoInterp
		}
		out.Interpreter = r.line(g.Interp)
	}
	if r.printABI {
		var b [1]byte
		if _, err := f.ReadAt(b[:], elf.EI_OSABI); err != nil {
			return err
		}
		out.OSABI = r.line(osABI(b[0]))
	}
	if r.printSoname && g.Soname != "" && g.Type == elf.ET_DYN {
		out.Soname = r.line(g.Soname)
	}
	if r.printPath {
		path, _ := g.Path()
		out.RPath = r.line(path)
	}
	if r.printStack {
		out.ExecStack = r.stack(g)
	}
	if r.printNeeded {
		for _, lib := range g.Needed {
			out.Needed = append(out.Needed, *r.line(lib))
		}
	}
	return nil
}

// line prints a line, unless there is JSON to come.
func (r *patchelfRun) line(s string) *string {
	if !r.patchelfFlags.json {
		fmt.Fprintln(r.stdout, s)
	}
	return &s
}

func (r *patchelfRun) stack(g *patchelf.File) *string {
	s := "?"
	switch on, stated := g.ExecStack(); {
	case stated && on:
		s = "X"
	case stated:
		s = "-"
	}
	if !r.patchelfFlags.json {
		fmt.Fprintln(r.stdout, "execstack: "+s)
	}
	return &s
}

// edit makes of the flags what is to be edited in this file.
func (r *patchelfRun) edit(g *patchelf.File, name string, out *patchelfFile) (patchelf.Edit, error) {
	e := patchelf.Edit{Sync: r.sync, MoveHeaders: r.moveHeaders}
	if g.Companion() {
		if r.edits() {
			r.warn(out, "it is a separate debug file, in which there is nothing to edit")
		}
		return e, nil
	}
	if r.interp != "" {
		if g.Interp == "" {
			return e, errNoInterp
		}
		e.Interp = r.interp
	}
	if r.clearStack || r.xStack {
		if on := !r.clearStack; !r.printStack {
			e.ExecStack = &on
		}
	}
	dynamic := r.setPath != nil || r.addPath != nil || r.removePath || r.shrinkPath ||
		len(r.addNeeded)+len(r.removeNeeded)+len(r.replaceNeeded) > 0 || r.noDefaultLib || r.debugTag || (r.soname != nil && g.Type == elf.ET_DYN)
	if !dynamic {
		return e, nil
	}
	if !g.Dynamic {
		return e, errNoDynamic
	}
	if g.Type == elf.ET_DYN { // patchelf leaves others alone
		e.Soname = r.soname
	}
	e.AddNeeded = slices.Compact(slices.Sorted(slices.Values(r.addNeeded)))
	e.RemoveNeeded, e.ReplaceNeeded = r.removeNeeded, r.replaceNeeded
	e.NoDefaultLib, e.DebugTag = r.noDefaultLib, r.debugTag
	return e, r.runPath(g, name, &e)
}

// runPath makes of the flags the run path that is wanted.
func (r *patchelfRun) runPath(g *patchelf.File, name string, e *patchelf.Edit) error {
	path, tag := g.Path()
	switch {
	case r.shrinkPath && tag == 0:
		return nil
	case r.shrinkPath:
		shrunk, err := r.shrink(g, name)
		if err != nil {
			return err
		}
		e.RunPath = &shrunk
	case r.removePath:
		e.RunPath = new(string)
		return nil
	case r.setPath != nil:
		e.RunPath = r.setPath
	case r.addPath != nil:
		longer := addToPath(path, *r.addPath)
		e.RunPath = &longer
	default:
		return nil
	}
	if e.Tag = patchelf.RunPath; r.force {
		e.Tag = patchelf.RPath
	}
	return nil
}

// addToPath adds the entries that path lacks. An empty one is no entry: to a
// loader it would be the current directory.
func addToPath(path, more string) string {
	have := strings.Split(path, ":")
	for _, entry := range strings.Split(more, ":") {
		if entry == "" || slices.Contains(have, entry) {
			continue
		}
		have = append(have, entry)
		if path != "" {
			path += ":"
		}
		path += entry
	}
	return path
}

// shrink looks into the directories of the run path.
func (r *patchelfRun) shrink(g *patchelf.File, name string) (string, error) {
	o := patchelf.ShrinkOptions{AllowedPrefixes: r.prefixes}
	if r.resolveOrigin {
		real, err := filepath.EvalSymlinks(name)
		if err == nil {
			real, err = filepath.Abs(real)
		}
		if err != nil {
			return "", err
		}
		o.Origin = filepath.Dir(real)
	}
	var failed error
	o.Has = func(dir, lib string) bool {
		has, err := r.hasLibrary(g, dir+"/"+lib)
		failed = errors.Join(failed, err)
		return has
	}
	path, err := patchelf.Shrink(g, o)
	return path, errors.Join(err, failed)
}

// hasLibrary tells whether path is a library that g could load. One that may
// not be read is an error: it might be.
func (r *patchelfRun) hasLibrary(g *patchelf.File, path string) (bool, error) {
	f, size, err := r.open(path)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return false, nil
	case errors.Is(err, os.ErrPermission):
		return false, err
	case err != nil:
		r.debugf("ignoring '%s': %v", path, err)
		return false, nil
	}
	defer f.Close()
	lib, err := patchelf.Parse(f, size)
	if err != nil || !g.Loads(lib) {
		r.debugf("ignoring library '%s': it is for another machine, or none (%v)", path, err)
		return false, nil
	}
	return true, nil
}

// apply edits the file in the way that the flags ask for.
func (r *patchelfRun) apply(name string, out *patchelfFile) error {
	real, err := r.target(name)
	if err != nil {
		return err
	}
	var said error // of the edit, not of making it
	res, err := r.write(real, func(g *patchelf.File) (e patchelf.Edit, err error) {
		e, said = r.edit(g, name, out)
		return e, said
	}, out)
	switch {
	case said != nil:
		return said
	case err != nil:
		return writeError(err)
	}
	out.Changed, out.How, out.Written, out.Growth = res.Changed, res.How, res.Written, res.Growth
	for _, what := range res.Lost {
		r.warn(out, "it has lost its "+what+", which the system does not permit to keep")
	}
	r.debugf("%s: %s, %d bytes written, %d longer", name, res.How, res.Written, res.Growth)
	return nil
}

func (r *patchelfRun) write(real string, edit func(*patchelf.File) (patchelf.Edit, error), out *patchelfFile) (patchelf.Result, error) {
	o := patchelf.CopyOptions{BreakLinks: r.breakLinks, Sync: r.sync, KeepTime: !r.touch}
	switch {
	case r.output != "":
		dst, err := r.outputName()
		if err != nil {
			return patchelf.Result{}, err
		}
		same, err := sameFile(real, dst)
		if err != nil {
			return patchelf.Result{}, err
		}
		o.KeepTime = same && !r.touch // a file that is made is new
		return patchelf.EditCopyFunc(real, dst, edit, o)
	case r.atomic:
		return patchelf.EditCopyFunc(real, real, edit, o)
	}
	// A leftover of another user is not in the way of an edit in place.
	if err := patchelf.RemoveStale(real); err != nil && !errors.Is(err, os.ErrPermission) {
		return patchelf.Result{}, err
	}
	used := false
	res, err := patchelf.EditPathFunc(real, edit, func(f *os.File, _ *patchelf.Plan) error {
		used, _ = patchelf.InUse(f) // what cannot be found out is not told
		return nil
	})
	if err == nil && used {
		r.warn(out, "it is in use: processes that map it see the new bytes; --atomic leaves them the old file")
	}
	if err == nil && res.Changed && r.touch {
		// Whoever may write may do that: to any other time, only the owner.
		now := unix.Timespec{Nsec: unix.UTIME_NOW}
		err = unix.UtimesNanoAt(unix.AT_FDCWD, real, []unix.Timespec{now, now}, 0)
		res.Lost = nil
	}
	return res, err
}

// target is the file that is read and, without --output, edited.
func (r *patchelfRun) target(name string) (string, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return "", peerError("getting info about", name, err)
	}
	if info.Mode()&os.ModeSymlink == 0 {
		return name, nil
	}
	if !r.follow && r.output == "" {
		return "", errIsLink
	}
	return filepath.EvalSymlinks(name)
}

// outputName is the file that is written. A link to a device or a pipe, or to
// an open file, such as /dev/stdout, is written through.
func (r *patchelfRun) outputName() (string, error) {
	info, err := os.Lstat(r.output)
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		return r.output, nil // what is wrong with it shows when it is written
	}
	switch {
	case patchelf.Streams(r.output):
		return r.output, nil
	case !r.follow:
		return "", errOutputLink
	}
	name, err := filepath.EvalSymlinks(r.output)
	if err != nil {
		return "", &saidError{text: "open: " + systemText(err), err: err}
	}
	return name, nil
}

func sameFile(a, b string) (bool, error) {
	x, err := os.Stat(a)
	if err != nil {
		return false, err
	}
	y, err := os.Stat(b)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(x, y), err
}
