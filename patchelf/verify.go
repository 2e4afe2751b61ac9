package patchelf

import (
	"debug/elf"
	"slices"
)

// verify checks the file that a plan would make, before anything is written:
// it says what was asked for, everything else as before, only bytes change
// that the edit is about, and it breaks no rule that the file kept before. It
// returns the file as it would be.
func verify(f *File, p *Plan, w *wanted, pl *planner) (*File, error) {
	g, err := Parse(&overlay{base: f.r, size: f.size, after: p.after, writes: p.writes}, p.after)
	if err != nil {
		return nil, refuse("the result would be unreadable: %v", err)
	}
	for _, rule := range []func() error{
		func() error { return sameBut(f, g, w) },
		func() error { return keptStrings(f, p, pl.refs) },
		func() error { return keptImage(f, g) },
		func() error { return keptHeaders(f, g) },
		func() error { return keptBytes(f, p, pl) },
		func() error { return keptRules(f, g, w) },
		func() error { return keptLoadable(f, g, p) },
	} {
		if err := rule(); err != nil {
			return nil, err
		}
	}
	g.r = f.r
	return g, nil
}

// sameBut checks that g says what w asks for, and else what f says.
func sameBut(f, g *File, w *wanted) error {
	path, tag := g.Path()
	wantPath, wantTag := f.Path()
	if !w.leave {
		wantPath, wantTag = w.path, w.tag
		if g.RPath != nil && g.RunPath != nil {
			return refuse("the result would have two run paths")
		}
	}
	interp, soname := f.Interp, f.Soname
	if !w.noInterp {
		interp = w.interp
	}
	if w.setSoname {
		soname = w.soname
	}
	switch {
	case path != wantPath || tag != wantTag:
		return refuse("the result would have the run path %q (%v)", path, tag)
	case g.Interp != interp:
		return refuse("the result would have the interpreter %q", g.Interp)
	case g.Soname != soname:
		return refuse("the result would have the DT_SONAME %q", g.Soname)
	case !slices.Equal(g.Needed, w.names()):
		return refuse("the result would need other libraries: %q", g.Needed)
	case !slices.Equal(g.Strings, f.Strings), g.Entry != f.Entry, g.Flags != f.Flags:
		return refuse("the result would say something else that was not asked for")
	case g.Type != f.Type, g.Machine != f.Machine, g.shnum != f.shnum, g.shstrndx != f.shstrndx:
		return refuse("the result would have another ELF header")
	}
	return sameFlags(f, g, w)
}

// sameFlags checks what is not a name.
func sameFlags(f, g *File, w *wanted) error {
	was, _ := f.dynValue(elf.DT_FLAGS_1)
	is, _ := g.dynValue(elf.DT_FLAGS_1)
	stack, stated := g.ExecStack()
	hadStack, hadStated := f.ExecStack()
	_, debug := g.dynValue(elf.DT_DEBUG)
	switch {
	case is != was|w.flags1:
		return refuse("the result would have the DT_FLAGS_1 %#x", is)
	case w.keeps && !debug:
		return refuse("the result would have no DT_DEBUG")
	case w.stack != nil && (!stated || stack != *w.stack), w.stack == nil && (stack != hadStack || stated != hadStated):
		return refuse("the result would have another PT_GNU_STACK")
	}
	return nil
}

// keptRules checks that the result keeps every rule that the file kept.
func keptRules(f, g *File, w *wanted) error {
	rules := func(h *File) []verdict {
		vs := check(h)
		if !w.moveHeaders {
			vs = append(vs, verdict{"kernels before 5.18 find the program headers", checkAuxv(h)})
		}
		return vs
	}
	was := rules(f)
	for _, c := range rules(g) {
		if c.broken != "" && !slices.ContainsFunc(was, func(b verdict) bool { return b.rule == c.rule && b.broken != "" }) {
			return refuse("the result would break a rule: %s: %s", c.rule, c.broken)
		}
	}
	return nil
}

// keptLoadable checks that after each write the file is one that a loader
// takes, and says of each thing what it said or what it shall say.
func keptLoadable(f, g *File, p *Plan) error {
	was := structure(f)
	for n := 1; n < len(p.writes); n++ {
		if p.writes[n].step == stepSections {
			return nil // loaders see none of what follows
		}
		size := f.size
		for _, w := range p.writes[:n] {
			size = max(size, w.off+int64(len(w.data)))
		}
		h, err := Parse(&overlay{base: f.r, size: f.size, after: size, writes: p.writes[:n]}, size)
		if err != nil {
			return refuse("the file would be unreadable after write %d of %d: %v", n, len(p.writes), err)
		}
		if what := between(f, g, h); what != "" {
			return refuse("the file would have a wrong %s after write %d of %d", what, n, len(p.writes))
		}
		for _, c := range structure(h) {
			if c.broken != "" && !slices.ContainsFunc(was, func(b verdict) bool { return b.rule == c.rule && b.broken != "" }) {
				return refuse("the file would break a rule after write %d of %d: %s: %s", n, len(p.writes), c.rule, c.broken)
			}
		}
	}
	return nil
}

// between names what h says neither as f does nor as g does.
func between(f, g, h *File) string {
	path, _ := h.Path()
	old, _ := f.Path()
	now, _ := g.Path()
	was, will, is := setOf(f.Needed), setOf(g.Needed), setOf(h.Needed)
	for s := range is {
		if !was[s] && !will[s] {
			return "DT_NEEDED"
		}
	}
	for s := range was {
		if will[s] && !is[s] {
			return "DT_NEEDED"
		}
	}
	switch {
	case path != old && path != now:
		return "run path"
	case h.Soname != f.Soname && h.Soname != g.Soname:
		return "DT_SONAME"
	case h.Interp != f.Interp && h.Interp != g.Interp:
		return "interpreter"
	}
	return ""
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, s := range names {
		set[s] = true
	}
	return set
}
