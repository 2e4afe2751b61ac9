package patchelf

import (
	"bytes"
	"errors"
	"testing"
)

// TestInterpreterLongerThanItsString: what a PT_INTERP that is too long covers
// beside its string is not its own.
func TestInterpreterLongerThanItsString(t *testing.T) {
	whole := odd{entries: oddEntries, interp: "/lib/ld.so.1"}.bytes()
	f := mustParse(t, whole)
	at := f.phoff + uint64(f.segment(3)*56)
	s := f.phdr(whole[at:])
	s.filesz = 24 // over DT_HASH, whose 8 bytes there are not zero
	f.putPhdr(whole[at:], s)
	whole[s.off+23] = 0
	f = mustParse(t, whole)
	p, err := f.Plan(Edit{Interp: "/x"})
	var refused *RefusedError
	if errors.As(err, &refused) {
		return
	}
	m := &memory{bytes.Clone(whole)}
	if err := errors.Join(err, p.Apply(m)); err != nil {
		t.Fatal(err)
	}
	if old := whole[s.off+13 : s.off+24]; !bytes.Equal(m.b[s.off+13:s.off+24], old) {
		t.Errorf("%v: %x became %x", p, old, m.b[s.off+13:s.off+24])
	}
}
