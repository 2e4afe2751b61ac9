package patchelf

import (
	"debug/elf"
	"fmt"
	"io"
	"slices"
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

// Edit is what a file should say. The zero value asks for nothing. Everything
// that one Edit asks for is planned and made together.
//
// Names of libraries are first removed, then replaced, then added, each once:
// a name that results from a replacement is not looked up again.
type Edit struct {
	RunPath *string // run path, colon-separated; nil leaves it, "" removes it
	Tag     Tag     // tag that shall hold it, if there is one; 0 keeps the tag, DT_RUNPATH where there was none
	Interp  string  // program interpreter; "" leaves it

	Soname        *string           // DT_SONAME; nil leaves it, "" removes it
	AddNeeded     []string          // libraries put before the first DT_NEEDED, in this order, but for those that are needed already
	RemoveNeeded  []string          // libraries no longer needed, nor versions of them
	ReplaceNeeded map[string]string // old name to new, in DT_NEEDED and in the versions that are needed

	NoDefaultLib bool  // DF_1_NODEFLIB: the loader does not look in its default directories
	ExecStack    *bool // PT_GNU_STACK asks for an executable stack, or does not; nil leaves it
	DebugTag     bool  // DT_DEBUG is there, where debuggers look for what is loaded

	// MoveHeaders allows, where nothing else helps, that the program headers of
	// a program go where kernels before 5.18 report them at a wrong address
	// (AT_PHDR). What goes to a right one is moved without it.
	MoveHeaders bool

	Sync bool // fdatasync between steps: for a file that must survive a power cut
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
	if want.done() {
		return &Plan{before: f.size, after: f.size, result: f, sync: e.Sync}, nil
	}
	if err := f.editable(want); err != nil {
		return nil, err
	}
	pl, err := newPlanner(f)
	if err != nil {
		return nil, err
	}
	if err := pl.edit(&want); err != nil {
		return nil, err
	}
	p := &Plan{how: pl.how, before: f.size, sync: e.Sync}
	if p.writes, err = pl.finish(); err != nil {
		return nil, err
	}
	p.after = pl.size
	if p.result, err = verify(f, p, &want, pl); err != nil {
		return nil, err
	}
	return p, nil
}

// editable refuses the files that no edit is safe or makes sense for.
func (f *File) editable(w wanted) error {
	flags1, _ := f.dynValue(elf.DT_FLAGS_1)
	alone := w.stack != nil && w.noInterp && !w.dynamic() // what a static program has, too
	switch {
	case f.Machine == machineAMDGPU:
		return refuse("it is GPU code (EM_AMDGPU), not a program or library of the host")
	case f.Type == elf.ET_REL:
		return refuse("it is a relocatable object (ET_REL)")
	case f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN:
		return refuse("it is neither a program nor a library (e_type %v)", f.Type)
	case f.companion:
		return refuse("it is a separate debug file: its headers have no content")
	case alone && f.phnum == int(f.rawPhnum):
		return f.inside()
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
	if err := f.inside(); err != nil {
		return err
	}
	p := &f.phdrs[f.segment(elf.PT_DYNAMIC)]
	if p.off != f.dynOff {
		return refuse("offset and address of PT_DYNAMIC disagree")
	}
	for _, kind := range []elf.ProgType{elf.PT_DYNAMIC, elf.PT_INTERP} { // loaders do not agree which one counts
		if slices.ContainsFunc(f.phdrs[f.segment(kind)+1:], func(s phdr) bool { return elf.ProgType(s.kind) == kind }) && f.segment(kind) >= 0 {
			return refuse("it has more than one %v", kind)
		}
	}
	return nil
}

// inside refuses a file that ends before its segments do.
func (f *File) inside() error {
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
	return nil
}

// ReaderWriterAt is what a plan is applied to.
type ReaderWriterAt interface {
	io.ReaderAt
	io.WriterAt
}
