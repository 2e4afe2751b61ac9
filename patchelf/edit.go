package patchelf

import (
	"debug/elf"
	"fmt"
	"io"
	"strings"
)

// Tag is the dynamic tag that holds a run path.
type Tag int

// DT_RPATH is searched before LD_LIBRARY_PATH and serves the libraries that
// the object loads in turn; DT_RUNPATH is searched after it, for the object
// alone. A loader ignores DT_RPATH where there is DT_RUNPATH.
const (
	RPath Tag = iota + 1
	RunPath
)

func (t Tag) String() string {
	switch t {
	case RPath:
		return "DT_RPATH"
	case RunPath:
		return "DT_RUNPATH"
	}
	return fmt.Sprintf("tag %d", int(t))
}

func (t Tag) dyn() elf.DynTag {
	if t == RPath {
		return elf.DT_RPATH
	}
	return elf.DT_RUNPATH
}

// Edit is what a file should say. The zero value asks for nothing.
type Edit struct {
	RunPath *string // run path, colon-separated; nil leaves it, "" removes it
	Tag     Tag     // tag that shall hold it, if there is one; 0 keeps the tag, DT_RUNPATH where there was none
	Interp  string  // program interpreter; "" leaves it
	Sync    bool    // fdatasync between steps: for a file in use, where the tree is not synced as a whole
}

// Plan is an edit worked out for one file, and verified. It belongs to the
// bytes that were parsed: Apply refuses others.
type Plan struct {
	writes []write
	how    []string
	before int64 // size of the file
	after  int64
	sync   bool
	result *File
}

// Empty tells whether there is nothing to write.
func (p *Plan) Empty() bool { return len(p.writes) == 0 }

// Growth is the number of bytes that the file becomes longer.
func (p *Plan) Growth() int64 { return p.after - p.before }

// Written is the number of bytes that Apply writes.
func (p *Plan) Written() int64 {
	n := int64(0)
	for _, w := range p.writes {
		n += int64(len(w.data))
	}
	return n
}

// After is the file as it is once the plan is applied.
func (p *Plan) After() *File { return p.result }

// String says how the edit is made, in a few words.
func (p *Plan) String() string {
	if p.Empty() {
		return "nothing to do"
	}
	return strings.Join(p.how, ", ")
}

// Plan works out e for f and verifies what would result. It writes nothing.
// It returns a *RefusedError where the edit cannot be made safely.
func (f *File) Plan(e Edit) (*Plan, error) {
	want, err := f.want(e)
	if err != nil {
		return nil, err
	}
	if want.done(f) {
		return &Plan{before: f.size, after: f.size, result: f, sync: e.Sync}, nil
	}
	if err := f.editable(); err != nil {
		return nil, err
	}
	pl, err := newPlanner(f)
	if err != nil {
		return nil, err
	}
	if err := pl.edit(want); err != nil {
		return nil, err
	}
	p := &Plan{how: pl.how, before: f.size, after: pl.size, sync: e.Sync}
	if p.writes, err = pl.finish(); err != nil {
		return nil, err
	}
	if p.result, err = verify(f, p, want, pl.refs); err != nil {
		return nil, err
	}
	return p, nil
}

// wanted is an Edit resolved against a file: the state to reach.
type wanted struct {
	path     string
	tag      Tag  // 0 for no run path at all
	leave    bool // the run path is not to be touched
	interp   string
	noInterp bool // leave the interpreter
}

func (f *File) want(e Edit) (wanted, error) {
	path, tag := f.Path()
	w := wanted{path: path, tag: tag, interp: e.Interp}
	w.noInterp = e.Interp == "" || e.Interp == f.Interp
	if e.Tag < 0 || e.Tag > RunPath {
		return w, refuse("%v is no run path tag", e.Tag)
	}
	switch {
	case e.RunPath == nil && (e.Tag == 0 || tag == 0):
		w.leave = true
	case e.RunPath != nil && *e.RunPath == "":
		w.path, w.tag = "", 0
	case e.RunPath != nil:
		w.path = *e.RunPath
	}
	if w.path != "" || e.RunPath == nil {
		switch {
		case e.Tag != 0 && !w.leave:
			w.tag = e.Tag
		case w.tag == 0 && !w.leave:
			w.tag = RunPath
		}
	}
	return w, w.check(f)
}

func (w *wanted) check(f *File) error {
	switch {
	case !w.leave && (strings.IndexByte(w.path, 0) >= 0 || len(w.path) >= maxString):
		return refuse("the run path holds a NUL byte or is too long")
	case !w.noInterp && (strings.IndexByte(w.interp, 0) >= 0 || len(w.interp) > 4095):
		return refuse("the interpreter holds a NUL byte or is longer than 4095 bytes")
	case !w.noInterp && f.Interp == "":
		return refuse("the file has no interpreter to set (PT_INTERP)")
	}
	return nil
}

// done tells whether f is as wanted.
func (w *wanted) done(f *File) bool {
	if !w.noInterp {
		return false
	}
	if w.leave {
		return true
	}
	path, tag := f.Path()
	return path == w.path && tag == w.tag && (f.RPath == nil || f.RunPath == nil)
}

// editable refuses the files that no edit is safe or makes sense for.
func (f *File) editable() error {
	flags1, _ := f.dynValue(elf.DT_FLAGS_1)
	switch {
	case f.Machine == machineAMDGPU:
		return refuse("it is GPU code (EM_AMDGPU), not a program or library of the host")
	case f.Type == elf.ET_REL:
		return refuse("it is a relocatable object (ET_REL)")
	case f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN:
		return refuse("it is neither a program nor a library (e_type %v)", f.Type)
	case f.companion:
		return refuse("it is a separate debug file: its headers have no content")
	case !f.Dynamic:
		return refuse("it is static (no PT_DYNAMIC)")
	case f.Interp == "" && flags1&uint64(elf.DF_1_PIE) != 0:
		return refuse("it is a static program (DF_1_PIE without PT_INTERP)")
	case !f.hasStrtab:
		return refuse("it has no dynamic string table")
	case f.shdrsCut:
		return refuse("its section headers are not wholly in the file: it is truncated or damaged")
	case f.phnum != int(f.rawPhnum):
		return refuse("it has too many program headers (PN_XNUM)")
	}
	return f.editableLoads()
}

const machineAMDGPU = elf.Machine(224) // EM_AMDGPU

func (f *File) editableLoads() error {
	loads := 0
	for i := range f.phdrs {
		p := &f.phdrs[i]
		if p.filesz > 0 && (p.off > uint64(f.size) || p.filesz > uint64(f.size)-p.off) {
			return refuse("program header %d lies past the end of the file: it is truncated", i)
		}
		if p.load() {
			loads++
		}
	}
	if loads == 0 {
		return refuse("it has no PT_LOAD")
	}
	p := &f.phdrs[f.segment(elf.PT_DYNAMIC)]
	if p.off != f.dynOff {
		return refuse("offset and address of PT_DYNAMIC disagree")
	}
	return nil
}

// ReaderWriterAt is what a plan is applied to.
type ReaderWriterAt interface {
	io.ReaderAt
	io.WriterAt
}
