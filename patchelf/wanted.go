package patchelf

import (
	"debug/elf"
	"slices"
	"strings"
)

// wanted is an Edit resolved against a file: the state to reach. What is so
// already is left out.
type wanted struct {
	path  string
	tag   Tag  // 0 for no run path at all
	leave bool // the run path is not to be touched

	interp   string
	noInterp bool // leave the interpreter

	soname    string // "" for none
	setSoname bool

	needed  []name   // one for each DT_NEEDED that is there, in order
	added   []string // before them
	renames bool     // one of needed has another name, or goes, or there is one more

	flags1 uint64 // bits that DT_FLAGS_1 lacks
	debug  bool   // DT_DEBUG is to be added
	keeps  bool   // DT_DEBUG is asked for, and is not to make way
	stack  *bool  // the stack becomes executable, or not; nil leaves it

	moveHeaders bool // the program headers may go where old kernels do not find them
}

// name is a library that is needed.
type name struct {
	old, now string
	gone     bool
}

func (f *File) want(e Edit) (wanted, error) {
	w, err := f.wantPath(e)
	if err != nil {
		return w, err
	}
	w.interp, w.noInterp = e.Interp, e.Interp == "" || e.Interp == f.Interp
	w.moveHeaders = e.MoveHeaders
	f.wantSoname(e, &w)
	f.wantNeeded(e, &w)
	f.wantFlags(e, &w)
	f.wantStack(e, &w)
	return w, w.check(f, e)
}

func (f *File) wantPath(e Edit) (wanted, error) {
	path, tag := f.Path()
	w := wanted{path: path, tag: tag}
	if e.Tag < 0 || e.Tag > RunPath {
		return w, refuse("%v is no run path tag", e.Tag)
	}
	switch {
	case e.RunPath == nil && (e.Tag == 0 || tag == 0):
		w.leave = true
		return w, nil
	case e.RunPath != nil && *e.RunPath == "":
		w.path, w.tag = "", 0
	case e.RunPath != nil:
		w.path = *e.RunPath
	}
	if w.path != "" || e.RunPath == nil {
		switch {
		case e.Tag != 0:
			w.tag = e.Tag
		case w.tag == 0:
			w.tag = RunPath
		}
	}
	w.leave = path == w.path && tag == w.tag && (f.RPath == nil || f.RunPath == nil)
	return w, nil
}

// wantFlags looks at the flags and the debugger's entry.
func (f *File) wantFlags(e Edit, w *wanted) {
	if flags, _ := f.dynValue(elf.DT_FLAGS_1); e.NoDefaultLib {
		w.flags1 = uint64(elf.DF_1_NODEFLIB) &^ flags
	}
	_, ok := f.dynValue(elf.DT_DEBUG)
	w.keeps, w.debug = e.DebugTag, e.DebugTag && !ok
}

// maxNames bounds the names that one edit adds.
const maxNames = 1 << 12

func (w *wanted) check(f *File, e Edit) error {
	switch {
	case !w.leave && !sound(w.path, maxString-1):
		return refuse("the run path holds a NUL byte or is too long")
	case !w.noInterp && !sound(w.interp, 4095):
		return refuse("the interpreter holds a NUL byte or is longer than 4095 bytes")
	case !w.noInterp && f.Interp == "":
		return refuse("the file has no interpreter to set (PT_INTERP)")
	case w.setSoname && !sound(w.soname, maxString-1):
		return refuse("the DT_SONAME holds a NUL byte or is too long")
	case len(w.added) > maxNames:
		return refuse("%d names are more than a file needs", len(w.added))
	}
	for _, s := range w.needed {
		if s.now == "" && s.old != "" || s.now != s.old && !sound(s.now, maxString-1) {
			return refuse("the name for %s is empty, holds a NUL byte or is too long", s.old)
		}
	}
	if slices.ContainsFunc(w.added, func(s string) bool { return s == "" || !sound(s, maxString-1) }) {
		return refuse("a name to be needed is empty, holds a NUL byte or is too long")
	}
	return nil
}

func sound(s string, most int) bool { return len(s) <= most && strings.IndexByte(s, 0) < 0 }

// done tells whether there is nothing to change.
func (w *wanted) done() bool {
	return w.stack == nil && w.noInterp && !w.dynamic()
}

// dynamic tells whether the dynamic section changes, or what it names.
func (w *wanted) dynamic() bool {
	return !w.leave || w.setSoname || w.renames || w.flags1 != 0 || w.debug
}
