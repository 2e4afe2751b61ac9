package patchelf

import (
	"bytes"
	"debug/elf"
)

// readDynamic reads the dynamic section up to its DT_NULL. A loader finds it
// by the address of PT_DYNAMIC, so that is believed before the offset.
func (f *File) readDynamic() error {
	i := f.segment(elf.PT_DYNAMIC)
	if i < 0 {
		return nil
	}
	p := &f.phdrs[i]
	if p.filesz == 0 || f.companion {
		f.companion = true
		return nil
	}
	f.dynOff, f.dynAddr, f.dynLen = p.off, p.vaddr, p.filesz
	if off, left, ok := fileOffset(f.phdrs, p.vaddr); ok {
		f.dynOff, f.dynLen = off, min(left, p.filesz)
	}
	f.dynLen -= f.dynLen % uint64(f.dynSize())
	f.Dynamic = true
	return f.readDyns()
}

func (f *File) readDyns() error {
	ended := false
	for at := uint64(0); at < f.dynLen; at += readChunk {
		if at >= maxDynamic {
			return malformed("PT_DYNAMIC", "more than %d bytes", maxDynamic)
		}
		b, err := f.read("PT_DYNAMIC", f.dynOff+at, min(readChunk, f.dynLen-at))
		if err != nil {
			return err
		}
		for ; len(b) > 0; b = b[f.dynSize():] {
			d := f.dyn(b)
			switch {
			case !ended && !d.is(elf.DT_NULL):
				f.dyns = append(f.dyns, d)
			case d == dyn{}:
				ended = true
				f.dynTail++
			case d.is(elf.DT_NULL) && !ended: // a DT_NULL may carry a value
				f.dynTail++
				return nil
			default:
				return nil // not DT_NULL padding: leave what follows alone
			}
		}
		if ended {
			return nil
		}
	}
	if !ended {
		return malformed("PT_DYNAMIC", "no DT_NULL ends it")
	}
	return nil
}

// dynValue returns the value of the last entry with a tag, as loaders do.
func (f *File) dynValue(t elf.DynTag) (uint64, bool) {
	for i := len(f.dyns) - 1; i >= 0; i-- {
		if f.dyns[i].is(t) {
			return f.dyns[i].val, true
		}
	}
	return 0, false
}

// window reads strings of the dynamic string table through a small buffer:
// linkers put the names that File shows next to each other.
type window struct {
	f   *File
	at  uint64 // of buf, in the table
	buf []byte
}

func (w *window) text(field string, at uint64) (string, error) {
	f := w.f
	if !f.hasStrtab {
		return "", malformed(field, "there is no DT_STRTAB and DT_STRSZ")
	}
	if at >= f.strSize {
		return "", malformed(field, "string %d lies past DT_STRSZ (%d)", at, f.strSize)
	}
	for n := uint64(1 << 10); ; n *= 4 {
		if at < w.at || at >= w.at+uint64(len(w.buf)) || bytes.IndexByte(w.buf[at-w.at:], 0) < 0 {
			b, err := f.read(field, f.strOff+at, min(n, f.strSize-at))
			if err != nil {
				return "", err
			}
			w.at, w.buf = at, b
		}
		if i := bytes.IndexByte(w.buf[at-w.at:], 0); i >= 0 {
			if f.stringBytes += i; f.stringBytes > maxStrings {
				return "", malformed(field, "more than %d bytes of names", maxStrings)
			}
			return string(w.buf[at-w.at:][:i]), nil
		}
		if n >= f.strSize-at || n >= maxString {
			return "", malformed(field, "string %d does not end", at)
		}
	}
}
