package patchelf

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// plannedSoon plans e for b, and fails if that takes time that grows with the
// square of what is in the file.
func plannedSoon(t *testing.T, b []byte, e Edit) (*Plan, error) {
	t.Helper()
	start := time.Now()
	p, err := mustParse(t, b).Plan(e)
	var refused *RefusedError
	if err != nil && !errors.As(err, &refused) {
		t.Error(err)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("planned in %v", d)
	}
	return p, err
}

// TestCrowdedDynamic: where very many entries change, they do so at once, and
// no edit of many names takes long.
func TestCrowdedDynamic(t *testing.T) {
	entries := []oddEntry{{tag: elf.DT_NEEDED, name: "first"}}
	for i := range 8000 {
		entries = append(entries, oddEntry{tag: elf.DT_NEEDED, name: fmt.Sprint("lib", i)})
	}
	b := odd{entries: append(entries, oddEntry{tag: elf.DT_RUNPATH, name: "/some/path"})}.bytes()
	for _, e := range []Edit{
		{RunPath: ptr("/y"), Tag: RPath}, {RunPath: ptr(longPath)}, {RemoveNeeded: []string{"first"}}, {AddNeeded: []string{"new"}},
	} {
		p, err := plannedSoon(t, b, e)
		if err != nil {
			t.Fatal(err)
		}
		checkPlan(t, mustParse(t, b), p, e, b)
		if len(p.writes) > 10 {
			t.Errorf("%d writes", len(p.writes))
		}
	}
	for i := range entries {
		entries[i] = oddEntry{tag: elf.DT_NEEDED, name: "same"}
	}
	if _, err := plannedSoon(t, odd{entries: entries}.bytes(), Edit{RemoveNeeded: []string{"same"}}); err == nil || !strings.Contains(err.Error(), "writes") {
		t.Error(err)
	}
}

// TestCrowdedTable: room in a string table of any size is found in one pass.
func TestCrowdedTable(t *testing.T) {
	zeros := make([]byte, 64<<20)
	copy(zeros[1:], "/some/path")
	pairs := bytes.Repeat([]byte("a\x00\x00"), 4<<20)
	copy(pairs, "\x00/some/path\x00")
	entries := []oddEntry{{tag: elf.DT_RUNPATH, val: 1}}
	b := odd{entries: entries, strings: zeros}.bytes()
	for _, path := range []string{"/y", longPath, ""} {
		if _, err := plannedSoon(t, b, Edit{RunPath: &path}); err != nil {
			t.Error(err)
		}
	}
	for i := range 30000 {
		entries = append(entries, oddEntry{tag: elf.DT_NEEDED, val: uint64(300 + 3*i)})
	}
	if _, err := plannedSoon(t, odd{entries: entries, strings: pairs}.bytes(), Edit{RunPath: ptr(longPath)}); err != nil {
		t.Error(err)
	}
}

// TestTableThatClaimsTooMuch: DT_STRSZ may reach over the section behind the
// strings, whose zeros are not room.
func TestTableThatClaimsTooMuch(t *testing.T) {
	for _, name := range []string{"bfd-lib-0", "bfd-pie-36"} {
		whole, err := os.ReadFile(variantOf(t, name).make(t))
		if err != nil {
			t.Fatal(err)
		}
		f := mustParse(t, whole)
		for _, more := range []uint64{8, 16, 64, 100} {
			b := bytes.Clone(whole)
			for i, d := range f.dyns {
				if d.is(elf.DT_STRSZ) {
					f.put(b[f.dynOff+uint64(i*f.dynSize()+f.word()):], d.val+more)
				}
			}
			lo, hi := up(f.strOff+f.strSize, 8), f.strOff+f.strSize+more
			for _, path := range []string{"/x", "/xyz", longPath} {
				p, err := plannedSoon(t, b, Edit{RunPath: &path})
				if err != nil {
					continue
				}
				m := &memory{bytes.Clone(b)}
				if err := p.Apply(m); err != nil {
					t.Fatal(err)
				}
				if lo < hi && !bytes.Equal(m.b[lo:hi], b[lo:hi]) {
					t.Errorf("%s, %d more, %q: %v: %x became %x", name, more, path, p, b[lo:hi], m.b[lo:hi])
				}
			}
		}
	}
}

// TestTwoOfAKind: which of two dynamic sections counts, loaders do not agree.
func TestTwoOfAKind(t *testing.T) {
	for _, kind := range []elf.ProgType{elf.PT_DYNAMIC, elf.PT_INTERP} {
		b := odd{entries: oddEntries, interp: "/lib/ld.so.1"}.bytes()
		f := mustParse(t, b)
		at := f.phoff + uint64(f.segment(elf.PT_GNU_STACK)*f.phdrSize())
		f.putPhdr(b[at:], f.phdrs[f.segment(kind)])
		if _, err := mustParse(t, b).Plan(Edit{RunPath: ptr("/x")}); err == nil || !strings.Contains(err.Error(), "more than one "+kind.String()) {
			t.Errorf("%v: %v", kind, err)
		}
	}
}

// TestDebugTagStays: a library's DT_DEBUG makes way for other entries, but not
// where it is asked for.
func TestDebugTagStays(t *testing.T) {
	b := odd{entries: []oddEntry{{tag: elf.DT_NEEDED, name: "libone.so"}, {tag: elf.DT_DEBUG}}}.bytes()
	for _, asked := range []bool{true, false} {
		e := Edit{DebugTag: asked, AddNeeded: []string{"a", "b", "c", "d"}}
		p, err := mustParse(t, b).Plan(e)
		if err != nil {
			t.Fatal(err)
		}
		if _, is := p.After().dynValue(elf.DT_DEBUG); is != asked {
			t.Errorf("asked for: %v, there: %v (%v)", asked, is, p)
		}
		checkPlan(t, mustParse(t, b), p, e, b)
	}
}
