package patchelf

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// pieces are the writes of a plan as a kernel makes them when it is stopped at
// the worst moment: page by page.
func pieces(p *Plan) []write {
	var out []write
	for _, w := range p.writes {
		for len(w.data) > 0 {
			n := min(len(w.data), int(pageBytes-w.off%pageBytes))
			out = append(out, write{step: w.step, off: w.off, data: w.data[:n]})
			w.data, w.off = w.data[n:], w.off+int64(n)
		}
	}
	return out
}

// everyPrefix applies each prefix of the plan's writes to a copy, and says
// which does not run. works is asked of the file at path.
func everyPrefix(t *testing.T, path string, e Edit, works func(path string) error) {
	t.Helper()
	f := parsedAt(t, path)
	p, err := f.Plan(e)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(path)
	m := &memory{b}
	all := pieces(p)
	for n, w := range all {
		if _, err := m.WriteAt(w.data, w.off); err != nil {
			t.Fatal(err)
		}
		if w.step == stepSections && n+1 < len(all) {
			continue
		}
		at := filepath.Join(filepath.Dir(path), fmt.Sprintf("%s-%d", filepath.Base(path), n))
		if err := os.WriteFile(at, m.b, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := works(at); err != nil {
			t.Errorf("%v: after %d of %d: %v", p, n+1, len(all), err)
		}
		os.Remove(at)
	}
}

// TestEveryPrefixLoads stops edits after each write, and in each at the edges
// of pages: the file runs, before, between and after.
func TestEveryPrefixLoads(t *testing.T) {
	deps := shop.deps(t)
	yes, no := true, false
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			path := copyOf(t, v.make(t))
			alias := "libdep-by-another-name.so.1"
			own := filepath.Dir(path)
			for _, name := range []string{alias, "libdep.so", "d"} {
				if err := os.Symlink(filepath.Join(deps, "libdep.so"), filepath.Join(own, name)); err != nil {
					t.Fatal(err)
				}
			}
			works := func(at string) error {
				if code, out := runs(t, at, v.lib); code != 46 {
					return fmt.Errorf("exit %d: %s", code, out)
				}
				return nil
			}
			mustEdit(t, path, Edit{RunPath: ptr(own)})
			for _, e := range []Edit{
				{RunPath: ptr(longPath + ":" + own), Tag: RPath}, {RunPath: ptr(own + ":" + longPath), Tag: RPath}, {RunPath: ptr(own), Tag: RunPath},
				{ReplaceNeeded: map[string]string{"libdep.so": alias}}, {ReplaceNeeded: map[string]string{alias: "d"}},
				{Soname: ptr("libsomething.so.4"), AddNeeded: []string{"libm.so.6"}}, {Soname: ptr("s")},
				{AddNeeded: []string{"libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1", "libresolv.so.2", "libanl.so.1"}, DebugTag: true},
				{RemoveNeeded: []string{"libpthread.so.0", "libutil.so.1", "librt.so.1"}, ExecStack: &yes},
				{ReplaceNeeded: map[string]string{"d": alias, "libm.so.6": "libdep.so"}, RemoveNeeded: []string{"libdl.so.2"}, Soname: ptr(""), ExecStack: &no},
				{RunPath: ptr(own + ":/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu")}, {NoDefaultLib: true},
			} {
				everyPrefix(t, path, e, works)
				mustEdit(t, path, e)
			}
		})
	}
}

// TestEveryPrefixLoadsWithVersions: libraries and the versions of them change
// together.
func TestEveryPrefixLoadsWithVersions(t *testing.T) {
	dir, lib, prog := versioned(t)
	for _, path := range []string{lib, prog} {
		path := copyOf(t, path)
		own := filepath.Dir(path)
		for _, name := range []string{"libdep.so", "libdep-by-another-name.so", "d"} {
			if err := os.Symlink(filepath.Join(dir, "libdep.so"), filepath.Join(own, name)); err != nil {
				t.Fatal(err)
			}
		}
		works := func(at string) error {
			if code, out := runs(t, at, filepath.Ext(path) == ".so"); code != 46 {
				return fmt.Errorf("exit %d: %s", code, out)
			}
			return nil
		}
		mustEdit(t, path, Edit{RunPath: &own})
		for _, e := range []Edit{
			{ReplaceNeeded: map[string]string{"libdep.so": "libdep-by-another-name.so"}, Soname: ptr("libother.so")},
			{ReplaceNeeded: map[string]string{"libdep-by-another-name.so": "d"}, RunPath: ptr(longPath + ":" + own)},
			{ReplaceNeeded: map[string]string{"d": "libdep.so"}},
			{RemoveNeeded: []string{"libc.so.6"}, AddNeeded: []string{"libc.so.6"}},
		} {
			everyPrefix(t, path, e, works)
			mustEdit(t, path, e)
		}
	}
}

func elfTag(d dyn) elf.DynTag { return elf.DynTag(d.tag) }

// TestDynamicOverTwoPages moves the edge of a page through the dynamic section
// and stops the edits there.
func TestDynamicOverTwoPages(t *testing.T) {
	deps := shop.deps(t)
	path := copyOf(t, variantOf(t, "bfd-lib-36").make(t))
	f := parsedAt(t, path)
	works := func(n int, b []byte, p *Plan) {
		h, err := Parse(byteFile(b), int64(len(b)))
		if err != nil {
			t.Fatalf("%v: after %d: %v", p, n, err)
		}
		if what := between(f, p.After(), h); what != "" {
			t.Fatalf("%v: after %d: %s: %v", p, n, what, h.Needed)
		}
		for _, d := range f.dyns {
			if _, ok := h.dynValue(elfTag(d)); !ok && !nameTag(d) && elfTag(d).String() != "DT_RELACOUNT" {
				t.Fatalf("%v: after %d: %v is missing", p, n, elfTag(d))
			}
		}
	}
	whole, _ := os.ReadFile(path)
	for edge := uint64(8); edge < f.dynLen; edge += 8 {
		for _, e := range []Edit{
			{AddNeeded: []string{"libm.so.6", "libdl.so.2"}, RunPath: ptr("")},
			{RemoveNeeded: []string{"libc.so.6"}, Soname: ptr("x")}, {RunPath: ptr(longPath + deps), Tag: RPath, AddNeeded: []string{"liba.so"}},
			{Soname: ptr("x"), NoDefaultLib: true, DebugTag: true},
		} {
			g, err := Parse(byteFile(whole), int64(len(whole)))
			if err != nil {
				t.Fatal(err)
			}
			w, err := g.want(e)
			if err != nil {
				t.Fatal(err)
			}
			pl, err := newPlanner(g)
			if err != nil {
				t.Fatal(err)
			}
			pl.pageEdge = f.dynOff + edge
			if err := pl.edit(&w); err != nil {
				t.Fatal(err)
			}
			p := &Plan{how: pl.how, before: g.size}
			if p.writes, err = pl.finish(); err != nil {
				t.Fatal(err)
			}
			p.after = pl.size
			if p.result, err = verify(g, p, &w, pl); err != nil {
				t.Fatal(edge, err)
			}
			m := &memory{append([]byte{}, whole...)}
			for n, x := range p.writes {
				if x.step == stepDynamic && x.off < int64(pl.pageEdge) && x.off+int64(len(x.data)) > int64(pl.pageEdge) {
					t.Fatalf("%v: a write of the dynamic section crosses the edge at %d", p, edge)
				}
				_, _ = m.WriteAt(x.data, x.off)
				works(n, m.b, p)
			}
		}
	}
}
