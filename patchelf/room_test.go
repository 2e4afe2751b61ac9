package patchelf

import (
	"encoding/binary"
	"testing"
)

// TestOnlyKnownNotesMove: what a note of somebody unknown means may depend on
// where it is.
func TestOnlyKnownNotesMove(t *testing.T) {
	note := func(owner string, desc int) []byte {
		b := binary.LittleEndian.AppendUint32(nil, uint32(len(owner)))
		b = binary.LittleEndian.AppendUint32(b, uint32(desc))
		b = append(binary.LittleEndian.AppendUint32(b, 1), owner...)
		return append(b, make([]byte, up(uint64(len(b)+desc), 4)-uint64(len(b)))...)
	}
	gnu, other := note("GNU\x00", 20), note("Somebody\x00", 8)
	for what, tt := range map[string]struct {
		notes []byte
		moves bool
	}{
		"GNU": {gnu, true}, "two": {append(append([]byte{}, gnu...), note("Go\x00\x00", 83)...), true},
		"another's": {other, false}, "another's behind": {append(append([]byte{}, gnu...), other...), false}, "crashpad's": {note(crashpad, 8), true},
		"cut off": {note("GNU\x00", 1000)[:40], false}, "a name past the end": {gnu[:14], false},
	} {
		b := append(odd{entries: oddEntries}.bytes(), tt.notes...)
		p, err := newPlanner(mustParse(t, b))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.portable(group{lo: uint64(len(b) - len(tt.notes)), hi: uint64(len(b))}); got != tt.moves {
			t.Errorf("%s: %v", what, got)
		}
	}
}

// TestCrashpadNoteIsRebased: the structure that it leads to does not move.
func TestCrashpadNoteIsRebased(t *testing.T) {
	p, err := newPlanner(mustParse(t, odd{entries: oddEntries}.bytes()))
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	b := le.AppendUint32(le.AppendUint32(le.AppendUint32(nil, 9), 8), 0x4f464e49)
	b = le.AppendUint64(append(b, crashpad+"\x00\x00\x00"...), 0x1000)
	p.f.rebase(b, 0x700)
	if got := le.Uint64(b[len(b)-8:]); got != 0x900 {
		t.Errorf("the distance is %#x", got)
	}
}
