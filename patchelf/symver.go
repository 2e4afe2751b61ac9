package patchelf

import (
	"debug/elf"
)

// maxSymvers bounds the versions that one file needs, and those that it
// defines: an index of a version has 15 bits.
const maxSymvers = 1 << 15

// VersionNeed is what a file needs of one library beyond its being there: one
// record of DT_VERNEED (LSB Core, "Version Requirements").
type VersionNeed struct {
	File     string // the library, as DT_NEEDED names it
	Versions []VersionRef
}

// VersionRef is a version that is needed.
type VersionRef struct {
	Name  string // GLIBC_2.34
	Index uint16 // what DT_VERSYM calls it in the file
	Weak  bool   // a loader does without it, with a message at most
}

// VersionDef is a version that a file defines: one record of DT_VERDEF.
type VersionDef struct {
	Name  string
	Index uint16 // what DT_VERSYM calls it in the file
	Base  bool   // the file itself, by its DT_SONAME; no symbol needs it
}

// VersionNeeds lists the versions that f needs of its libraries, in the order
// of the file; none is not an error. The lists are walked as loaders do, to the
// record that has no next one, whatever DT_VERNEEDNUM says. A list that leaves
// the file, or does not end, is a *FormatError.
func (f *File) VersionNeeds() ([]VersionNeed, error) {
	w, err := f.versionWalk(elf.DT_VERNEED)
	if w == nil {
		return nil, err
	}
	var out []VersionNeed
	for {
		b, err := w.record(16) // {version, cnt, file, aux, next}
		if err != nil {
			return nil, err
		}
		n := VersionNeed{}
		if n.File, err = w.name(w.u32(b[4:])); err != nil {
			return nil, err
		}
		if n.Versions, err = w.refs(int(w.u16(b[2:])), w.u32(b[8:])); err != nil {
			return nil, err
		}
		out = append(out, n)
		if !w.step(w.u32(b[12:])) {
			return out, nil
		}
	}
}

// refs reads the versions of one library, which hang on the record that w is
// at: {hash, flags, other, name, next}.
func (w *versionWalk) refs(count int, first uint64) ([]VersionRef, error) {
	at := *w
	defer func() { w.seen, w.buf, w.bufAt = at.seen, at.buf, at.bufAt }()
	if count == 0 {
		return nil, nil
	}
	at.off += first
	out := make([]VersionRef, 0, min(count, 8))
	for range count {
		b, err := at.record(16)
		if err != nil {
			return nil, err
		}
		r := VersionRef{Index: at.u16(b[6:]) &^ versionHidden, Weak: at.u16(b[4:])&verFlgWeak != 0}
		next := at.u32(b[12:])
		if r.Name, err = at.name(at.u32(b[8:])); err != nil {
			return nil, err
		}
		if out = append(out, r); !at.step(next) {
			break
		}
	}
	return out, nil
}

// VersionDefs lists the versions that f defines, the base one included, in the
// order of the file; none is not an error. It reads as VersionNeeds does.
func (f *File) VersionDefs() ([]VersionDef, error) {
	w, err := f.versionWalk(elf.DT_VERDEF)
	if w == nil {
		return nil, err
	}
	var out []VersionDef
	for {
		b, err := w.record(20) // {version, flags, ndx, cnt, hash, aux, next}
		if err != nil {
			return nil, err
		}
		d := VersionDef{Index: w.u16(b[4:]) &^ versionHidden, Base: w.u16(b[2:])&verFlgBase != 0}
		next := w.u32(b[16:])
		// The first of the list {name, next} is its name, the others are those
		// of versions that it follows.
		aux := *w
		aux.off += w.u32(b[12:])
		a, err := aux.record(8)
		if err != nil {
			return nil, err
		}
		if d.Name, err = aux.name(w.u32(a)); err != nil {
			return nil, err
		}
		w.seen, w.buf, w.bufAt = aux.seen, aux.buf, aux.bufAt
		if out = append(out, d); !w.step(next) {
			return out, nil
		}
	}
}

const (
	versionHidden = 0x8000 // bit of an index: not the default version
	verFlgBase    = 1      // VER_FLG_BASE
	verFlgWeak    = 2      // VER_FLG_WEAK
)

// versionWalk walks a list of records that are linked by distances. Those are
// not negative, so that each walk comes to an end.
type versionWalk struct {
	f     *File // a copy: names are charged to the walk, not to the file
	names *window
	tag   elf.DynTag
	off   uint64 // in the file, of the record
	end   uint64 // of the segment that holds the list
	seen  int
	bufAt uint64
	buf   []byte
}

// versionWalk starts at the first record; nil when f has no such list.
func (f *File) versionWalk(tag elf.DynTag) (*versionWalk, error) {
	addr, present := f.dynValue(tag)
	if !present {
		return nil, nil
	}
	off, left, ok := fileOffset(f.phdrs, addr)
	if !ok {
		return nil, malformed(tag.String(), "no PT_LOAD has the address %#x", addr)
	}
	g := *f
	g.stringBytes = 0
	return &versionWalk{f: &g, names: &window{f: &g}, tag: tag, off: off, end: min(off+left, uint64(f.size))}, nil
}

// record returns the n bytes at w. They are read by blocks: the records of a
// list lie side by side.
func (w *versionWalk) record(n uint64) ([]byte, error) {
	if w.seen++; w.seen > maxSymvers {
		return nil, malformed(w.tag.String(), "more than %d versions", maxSymvers)
	}
	if w.off > w.end || n > w.end-w.off {
		return nil, malformed(w.tag.String(), "a record at %d lies outside of its segment", w.off)
	}
	if have := uint64(len(w.buf)); w.off < w.bufAt || w.off-w.bufAt > have || n > have-(w.off-w.bufAt) {
		b, err := w.f.read(w.tag.String(), w.off, min(versionBlock, w.end-w.off))
		if err != nil {
			return nil, err
		}
		w.bufAt, w.buf = w.off, b
	}
	return w.buf[w.off-w.bufAt:][:n], nil
}

// versionBlock holds the versions of all but the largest libraries.
const versionBlock = 1 << 10

// step goes to the next record, and tells whether there is one.
func (w *versionWalk) step(by uint64) bool {
	w.off += by
	return by != 0
}

func (w *versionWalk) name(at uint64) (string, error) { return w.names.text(w.tag.String(), at) }

func (w *versionWalk) u16(b []byte) uint16 { return w.f.order.Uint16(b) }
func (w *versionWalk) u32(b []byte) uint64 { return uint64(w.f.order.Uint32(b)) }
