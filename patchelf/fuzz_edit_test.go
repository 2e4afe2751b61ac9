package patchelf

import (
	"bytes"
	"debug/elf"
	"slices"
	"testing"
)

// editOf decodes an Edit: what is a set of bits, and the names are those that
// it sets.
func editOf(g *File, what uint32, path, name string) Edit {
	is := func(bit int) bool { return what>>bit&1 != 0 }
	e := Edit{Tag: Tag(what & 3 % 3), NoDefaultLib: is(2), DebugTag: is(3), MoveHeaders: is(4)}
	if is(5) {
		e.RunPath = &path
	}
	if is(6) {
		e.Interp = name
	}
	if is(7) {
		e.Soname = &name
	}
	if is(8) {
		e.AddNeeded = []string{name, path}
	}
	if is(9) {
		e.AddNeeded = append(e.AddNeeded, "libadded.so")
	}
	if n := len(g.Needed); n > 0 && is(10) {
		e.RemoveNeeded = []string{g.Needed[0]}
	}
	if n := len(g.Needed); n > 0 && is(11) {
		e.ReplaceNeeded = map[string]string{g.Needed[n-1]: name}
	}
	if is(12) {
		on := is(13)
		e.ExecStack = &on
	}
	return e
}

// wantNames is what e makes of the libraries that are needed, and whether it
// changes any.
func wantNames(needed []string, e Edit) (after []string, changes bool) {
	for _, s := range needed {
		now, replaced := e.ReplaceNeeded[s]
		switch {
		case slices.Contains(e.RemoveNeeded, s):
			changes = true
		case replaced:
			after, changes = append(after, now), changes || now != s
		default:
			after = append(after, s)
		}
	}
	var added []string
	for _, s := range e.AddNeeded {
		if !slices.Contains(after, s) && !slices.Contains(added, s) {
			added, changes = append(added, s), true
		}
	}
	return append(added, after...), changes
}

// wantPath is the run path that e makes of that of g.
func wantPath(g *File, e Edit) (string, Tag) {
	path, tag := g.Path()
	if e.RunPath != nil {
		if path = *e.RunPath; path == "" {
			return "", 0
		}
		if tag == 0 {
			tag = RunPath
		}
	}
	if e.Tag != 0 && tag != 0 {
		tag = e.Tag
	}
	return path, tag
}

// FuzzEdit: a plan is made or refused, with an error that says why. It is the
// same each time, writes nothing, and what it says will be is asked for.
func FuzzEdit(f *testing.F) {
	addEdits(f)
	f.Fuzz(func(t *testing.T, b []byte, what uint32, path, name string) {
		g, err := Parse(byteFile(b), int64(len(b)))
		if err != nil {
			return
		}
		e := editOf(g, what, path, name)
		before := bytes.Clone(b)
		p, err := g.Plan(e)
		if !bytes.Equal(before, b) {
			t.Fatal("a plan writes")
		}
		if err != nil {
			typed(t, err)
			return
		}
		again, err := g.Plan(e)
		if err != nil || again.String() != p.String() || !slices.EqualFunc(p.writes, again.writes, func(a, b write) bool { return a.off == b.off && bytes.Equal(a.data, b.data) }) {
			t.Fatalf("%v, then %v, %v", p, again, err)
		}
		const hole = 2 << 20 // at most, before program headers that old kernels find only there
		if p.Growth() < 0 || p.Growth() > p.Written()+hole || p.Empty() != (p.Written() == 0) {
			t.Fatalf("%v: %d bytes written, %d more", p, p.Written(), p.Growth())
		}
		if size := int64(g.strSize) + int64(g.dynLen) + 1<<20 + int64(g.shnum*g.shdrSize()) + int64(len(path)+len(name)); p.Written() > 2*size {
			t.Fatalf("%v: %d bytes written", p, p.Written())
		}
		asked(t, g, p.After(), e, p)
	})
}

// FuzzApply: what a plan makes says what was asked for and else what was said,
// after each write it says what it said or will say, and the same edit again
// has nothing to do.
func FuzzApply(f *testing.F) {
	addEdits(f)
	f.Fuzz(func(t *testing.T, b []byte, what uint32, path, name string) {
		g, err := Parse(byteFile(b), int64(len(b)))
		if err != nil {
			return
		}
		e := editOf(g, what, path, name)
		p, err := g.Plan(e)
		if err != nil {
			return
		}
		checkPlan(t, g, p, e, b)
		checkSteps(t, g, p, b)
		checkRest(t, g, p, b)
	})
}

func addEdits(f *testing.F) {
	for i, b := range seeds(f) {
		f.Add(b, uint32(1<<5|i%3), longPath, "libname.so")
		f.Add(b, uint32(1<<5|1<<7|1<<8|1<<10|1<<11), "/x", "libanother.so.7")
		f.Add(b, uint32(1<<5|1<<6|1<<12), "/x", "/lib/ld.so")
		f.Add(b, uint32(3<<2|1<<9), "", "")
	}
}

// asked checks that h says what e asks of g, and else what g says.
func asked(t *testing.T, g, h *File, e Edit, p *Plan) {
	t.Helper()
	path, tag := h.Path()
	wantedPath, wantedTag := wantPath(g, e)
	needed, _ := wantNames(g.Needed, e)
	interp, soname, flags1 := g.Interp, g.Soname, g.Flags1
	if e.Interp != "" {
		interp = e.Interp
	}
	if e.Soname != nil {
		soname = *e.Soname
	}
	if e.NoDefaultLib {
		flags1 |= elf.DF_1_NODEFLIB
	}
	_, debug := h.dynValue(elf.DT_DEBUG)
	stack, stated := h.ExecStack()
	hadStack, hadStated := g.ExecStack()
	if e.ExecStack != nil {
		hadStack, hadStated = *e.ExecStack, true
	}
	switch {
	case path != wantedPath || tag != wantedTag, e.RunPath != nil && h.RPath != nil && h.RunPath != nil:
		t.Fatalf("%v: run path %q (%v), not %q (%v)", p, path, tag, wantedPath, wantedTag)
	case !slices.Equal(h.Needed, needed):
		t.Fatalf("%v: needed %q, not %q", p, h.Needed, needed)
	case h.Interp != interp || h.Soname != soname || h.Flags1 != flags1 || e.DebugTag && !debug:
		t.Fatalf("%v: %+v, not %q, %q, %v", p, h.Facts(), interp, soname, flags1)
	case stack != hadStack || stated != hadStated:
		t.Fatalf("%v: stack %v, %v", p, stack, stated)
	case h.Flags != g.Flags || !slices.Equal(h.Strings, g.Strings) || h.Entry != g.Entry || h.Type != g.Type || h.Machine != g.Machine || h.Sections() != g.Sections():
		t.Fatalf("%v: %+v became %+v", p, g, h)
	}
}

// checkPlan applies p, which e asked for, to b, and holds the result to it.
func checkPlan(t *testing.T, g *File, p *Plan, e Edit, b []byte) {
	t.Helper()
	m := &memory{bytes.Clone(b)}
	if err := p.Apply(m); err != nil {
		t.Fatal(err)
	}
	h, err := Parse(m, int64(len(m.b)))
	if err != nil {
		t.Fatalf("%v: %v", p, err)
	}
	if int64(len(m.b))-int64(len(b)) != p.Growth() {
		t.Fatalf("%v: grew by %d, not %d", p, len(m.b)-len(b), p.Growth())
	}
	asked(t, g, h, e, p)
	if _, changes := wantNames(h.Needed, e); changes {
		return // what it removes or replaces, it also adds
	}
	again, err := h.Plan(e)
	if err != nil || !again.Empty() {
		t.Fatalf("%v: the same edit again: %v, %v", p, again, err)
	}
}

// checkSteps stops after each write, as a kill does.
func checkSteps(t *testing.T, g *File, p *Plan, b []byte) {
	t.Helper()
	m, h := &memory{bytes.Clone(b)}, p.After()
	either := func(what string, is, was, will any) {
		if is != was && is != will {
			t.Fatalf("%v: %s is %q meanwhile, neither %q nor %q", p, what, is, was, will)
		}
	}
	for i, w := range p.writes {
		if _, err := m.WriteAt(w.data, w.off); err != nil {
			t.Fatal(err)
		}
		x, err := Parse(m, int64(len(m.b)))
		if err != nil {
			t.Fatalf("%v: after write %d of %d: %v", p, i+1, len(p.writes), err)
		}
		path, _ := x.Path()
		old, _ := g.Path()
		now, _ := h.Path()
		either("the run path", path, old, now)
		either("the interpreter", x.Interp, g.Interp, h.Interp)
		either("the name", x.Soname, g.Soname, h.Soname)
		for _, s := range x.Needed {
			if !slices.Contains(g.Needed, s) && !slices.Contains(h.Needed, s) {
				t.Fatalf("%v: %q is needed meanwhile", p, s)
			}
		}
	}
}

// checkRest checks that sections that no edit is about stay, and, where the
// section headers can be believed, the names of symbols.
func checkRest(t *testing.T, g *File, p *Plan, b []byte) {
	t.Helper()
	m := &memory{bytes.Clone(b)}
	if err := p.Apply(m); err != nil {
		t.Fatal(err)
	}
	h, err := Parse(m, int64(len(m.b)))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := saidByGo(byteFile(b))
	if err != nil || theirs != only(saidHere(g)) {
		return
	}
	was, is := symbols(b), symbols(m.b)
	for i, name := range was {
		if name != "" && (i >= len(is) || is[i] != name) { // "" may lie past the table, which grows
			t.Fatalf("%v: symbols were %q and are %q", p, was, is)
		}
	}
	for _, i := range aloneSections(g) {
		before, err := g.sectionAt(i)
		if err != nil {
			continue
		}
		if after, err := h.sectionAt(i); err != nil || !bytes.Equal(before, after) {
			t.Fatalf("%v: section %d: %v, %x became %x", p, i, err, before, after)
		}
	}
}

// sectionAt is the content of a section by its number.
func (f *File) sectionAt(i int) ([]byte, error) {
	b, err := f.read("section header", f.shoff+uint64(i*f.shdrSize()), uint64(f.shdrSize()))
	if err != nil {
		return nil, err
	}
	s := f.shdr(b)
	return f.read("section", s.off, min(s.size, maxSection))
}

// aloneSections lists the sections of code and data that share no byte with
// anything but the segment they are loaded by.
func aloneSections(f *File) []int {
	var shdrs []shdr
	_ = f.eachShdr(1000, func(_ int, s shdr) bool {
		shdrs = append(shdrs, s)
		return true
	})
	owners := ownersOf(f, shdrs)
	var out []int
	for i, s := range shdrs {
		kind := elf.SectionType(s.kind)
		ours := kind == elf.SHT_PROGBITS || kind == elf.SHT_RELA || kind == elf.SHT_INIT_ARRAY
		shared := func(o owner) bool {
			return o.lo < s.off+s.size && s.off < o.hi && o.kind != ownLoad && (o.kind != ownSection || o.index != i) &&
				(o.kind != ownSegment || elf.ProgType(f.phdrs[o.index].kind) != elf.PT_GNU_RELRO)
		}
		strings := owner{lo: f.strOff, hi: f.strOff + f.strSize, kind: ownHeader}
		dynamic := owner{lo: f.dynOff, hi: f.dynOff + f.dynLen, kind: ownHeader}
		if ours && s.inFile() && s.alloc() && s.off+s.size >= s.off && !slices.ContainsFunc(append(owners, strings, dynamic), shared) {
			out = append(out, i)
		}
	}
	return out
}

// symbols is the names of dynamic symbols, as debug/elf reads them.
func symbols(b []byte) []string {
	g, err := elf.NewFile(byteFile(b))
	if err != nil {
		return nil
	}
	syms, err := g.DynamicSymbols()
	if err != nil {
		return nil
	}
	var names []string
	for _, s := range syms {
		names = append(names, s.Name)
	}
	return names
}
