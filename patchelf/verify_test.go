package patchelf

import (
	"bytes"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// TestVerifierNamesTheRule spoils good plans, one rule at a time.
func TestVerifierNamesTheRule(t *testing.T) {
	b, err := os.ReadFile(variantOf(t, "bfd-pie-4").make(t))
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse(byteFile(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	pl, err := newPlanner(f)
	if err != nil {
		t.Fatal(err)
	}
	needed := slices.IndexFunc(f.dyns, func(d dyn) bool { return d.val > 0 })
	header := func(i int, change func(p *phdr)) write {
		p := f.phdrs[i]
		change(&p)
		return write{off: int64(f.phoff) + int64(i*56), data: f.putPhdrs([]phdr{p})}
	}
	text := slices.IndexFunc(f.phdrs, func(p phdr) bool { return p.load() && p.flags == 5 })
	wanted, err := f.want(Edit{RunPath: ptr("/p")})
	if err != nil {
		t.Fatal(err)
	}
	pl.refs = pl.collectRefs(pl.wantedItems(&wanted))
	symbol, _ := pl.refs.last(f.dyns[needed].val+20, pl.refs.size)
	for _, c := range []struct {
		says  string
		spoil write
	}{
		{"which is in use", write{off: int64(f.strOff + symbol), data: []byte("X")}},
		{"load PT_LOAD 1 differently", header(text, func(p *phdr) { p.vaddr += 4096 })},
		{"where PT_PHDR says", header(0, func(p *phdr) { p.vaddr += 8 })},
		{"have the interpreter", header(1, func(p *phdr) { p.filesz -= 2 })},
		{"or have it otherwise", header(f.segment(0x6474e552), func(p *phdr) { p.vaddr += 8 })},
		{"map to their offsets", header(1, func(p *phdr) { p.vaddr += 8 })},
		{"the string at 0", write{off: int64(f.strOff), data: []byte("/")}},
		{"unreadable", write{off: 4, data: []byte{9}}},
		{"another ELF header", write{off: 16, data: []byte{2}}},
		{"need other libraries", write{off: int64(f.dynOff), data: []byte{29}}},
	} {
		p, err := f.Plan(Edit{RunPath: ptr("/p")})
		if err != nil {
			t.Fatal(err)
		}
		p.writes = append(p.writes, c.spoil)
		_, err = verify(f, p, &wanted, pl)
		var refused *RefusedError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.says, err)
		}
	}
}

// TestApplyToAnotherFile: a plan belongs to the bytes it was made for.
func TestApplyToAnotherFile(t *testing.T) {
	b, err := os.ReadFile(variantOf(t, "bfd-pie-4").make(t))
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse(byteFile(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.Plan(Edit{RunPath: ptr(longPath)})
	if err != nil {
		t.Fatal(err)
	}
	other := bytes.Clone(b)
	for at := range f.dynLen {
		other[f.dynOff+at] ^= 1
	}
	m := &memory{bytes.Clone(other)}
	var refused *RefusedError
	if err := p.Apply(m); !errors.As(err, &refused) || !bytes.Equal(m.b, other) {
		t.Errorf("%v", err)
	}
}

// TestFacts: what a manifest records of a library.
func TestFacts(t *testing.T) {
	b, err := os.ReadFile(shop.build(t, "facts.so", "", shop.object(t, "user", userSource, nil), "-shared", "-L"+shop.deps(t), "-ldep",
		"-nostdlib", "-Wl,-soname,libfacts.so.1", "-Wl,-rpath,$ORIGIN", "-Wl,--disable-new-dtags"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse(byteFile(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	want := &manifest.ELF{Class: 64, Machine: "x86_64", Type: "dyn", Dynamic: true, Soname: "libfacts.so.1", Needed: []string{"libdep.so"}, RPath: "$ORIGIN"}
	if got := f.Facts(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if c, err := f.Section(".comment"); err != nil || !strings.Contains(string(c), "GCC") {
		t.Errorf("%q, %v", c, err)
	}
	if _, err := f.Section(".absent"); !errors.Is(err, ErrNoSection) {
		t.Error(err)
	}
	if f.LatePHDR() {
		t.Error("the program headers are where they belong")
	}
}
