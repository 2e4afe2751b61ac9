package patchelf

import (
	"bytes"
	"cmp"
	"debug/elf"
	"slices"
)

// stringTag tells whether the value of a tag is the offset of a name in the
// dynamic string table.
func stringTag(t elf.DynTag) bool {
	switch t {
	case elf.DT_NEEDED, elf.DT_SONAME, elf.DT_RPATH, elf.DT_RUNPATH,
		elf.DT_CONFIG, elf.DT_AUDIT, elf.DT_DEPAUDIT, elf.DT_FILTER, elf.DT_AUXILIARY, elf.DT_USED:
		return true
	}
	return false
}

// readStrtab finds the dynamic string table.
func (f *File) readStrtab() error {
	addr, okAddr := f.dynValue(elf.DT_STRTAB)
	size, okSize := f.dynValue(elf.DT_STRSZ)
	if !okAddr || !okSize {
		return nil
	}
	off, left, ok := fileOffset(f.phdrs, addr)
	if !ok || size > left || off > uint64(f.size) || size > uint64(f.size)-off {
		return malformed("DT_STRTAB", "address %#x, %d bytes: not in a PT_LOAD of the file", addr, size)
	}
	f.strAddr, f.strOff, f.strSize, f.hasStrtab = addr, off, size, true
	return nil
}

// readNames reads the names that File shows, each once.
func (f *File) readNames() error {
	var refs []dyn
	for _, d := range f.dyns {
		if stringTag(elf.DynTag(d.tag)) {
			refs = append(refs, d)
		}
	}
	names, err := f.readTexts(refs)
	if err != nil {
		return err
	}
	for _, d := range refs {
		s := names.of(d.val)
		switch t := elf.DynTag(d.tag); t {
		case elf.DT_NEEDED:
			f.Needed = append(f.Needed, s)
		case elf.DT_SONAME:
			f.Soname = s
		case elf.DT_RPATH:
			f.RPath = &s
		case elf.DT_RUNPATH:
			f.RunPath = &s
		default:
			f.Strings = append(f.Strings, DynString{t, s})
		}
	}
	return nil
}

// texts are strings of the table, sorted by their offsets.
type texts []text

// text is the string that an entry names.
type text struct {
	ref dyn
	s   string
}

func (ts texts) of(at uint64) string {
	i, _ := slices.BinarySearchFunc(ts, at, func(t text, at uint64) int { return cmp.Compare(t.ref.val, at) })
	return ts[i].s
}

const (
	nameRead = 128 // bytes read for a name at first: most are shorter
	nameGap  = 512 // bytes between two names that are read rather than skipped
)

// readTexts reads the strings at the values of refs. The table may be many
// megabytes and the names anywhere in it, so they are read in order, those
// next to each other together.
func (f *File) readTexts(refs []dyn) (texts, error) {
	ts := make(texts, len(refs))
	for i, d := range refs {
		ts[i].ref = d
	}
	byPlace := func(a, b text) int { return cmp.Compare(a.ref.val, b.ref.val) }
	slices.SortStableFunc(ts, byPlace)
	ts = slices.CompactFunc(ts, func(a, b text) bool { return a.ref.val == b.ref.val })
	for rest := ts; len(rest) > 0; {
		n, err := f.readRun(rest)
		if err != nil {
			return nil, err
		}
		rest = rest[n:]
	}
	return ts, nil
}

// readRun reads the first of ts and those that lie close behind, in one read,
// and returns how many that were.
func (f *File) readRun(ts texts) (int, error) {
	field := elf.DynTag(ts[0].ref.tag).String()
	if !f.hasStrtab {
		return 0, malformed(field, "there is no DT_STRTAB and DT_STRSZ")
	}
	start, n := ts[0].ref.val, 1
	if start >= f.strSize {
		return 0, malformed(field, "string %d lies past DT_STRSZ (%d)", start, f.strSize)
	}
	end := start + nameRead
	for n < len(ts) && ts[n].ref.val < min(f.strSize, end+nameGap) && ts[n].ref.val-start < readChunk {
		end = ts[n].ref.val + nameRead
		n++
	}
	b, err := f.read(field, f.strOff+start, min(end, f.strSize)-start)
	if err != nil {
		return 0, err
	}
	for i := range ts[:n] {
		if ts[i].s, b, err = f.cut(ts[i].ref, start, b); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// cut returns the string that d names of the bytes at start of the table, and
// these bytes: longer, where the string was not wholly among them.
func (f *File) cut(d dyn, start uint64, b []byte) (string, []byte, error) {
	field, at := elf.DynTag(d.tag).String(), d.val-start
	for from := at; ; {
		if i := bytes.IndexByte(b[from:], 0); i >= 0 {
			s := string(b[at : from+uint64(i)])
			if f.stringBytes += len(s); f.stringBytes > maxStrings {
				return "", nil, malformed(field, "more than %d bytes of names", maxStrings)
			}
			return s, b, nil
		}
		from = uint64(len(b))
		left := f.strSize - start - from
		if left == 0 || from-at >= maxString {
			return "", nil, malformed(field, "string %d does not end", d.val)
		}
		more, err := f.read(field, f.strOff+start+from, min(max(1<<10, 3*(from-at)), left))
		if err != nil {
			return "", nil, err
		}
		b = append(b, more...)
	}
}
