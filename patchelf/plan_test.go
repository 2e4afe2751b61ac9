package patchelf

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSixtyEditsOfEverything: names and paths that become longer and shorter
// do not pile up, with section headers and without.
func TestSixtyEditsOfEverything(t *testing.T) {
	long, short := strings.Repeat("a-long-name-", 8)+".so.1", "d"
	interp := []string{"/lib64/ld-linux-x86-64.so.2", "/a/much/longer/name/of/an/interpreter/that/is/not/there/ld.so"}
	for _, v := range variants() {
		for _, bare := range []bool{false, true} {
			b, err := os.ReadFile(v.make(t))
			if err != nil {
				t.Fatal(err)
			}
			if bare {
				b = withoutSections(t, b)
			}
			path := put(t, "sixty", b)
			was, size := "libdep.so", int64(0)
			for i := range 60 {
				e := Edit{RunPath: ptr([]string{longPath, "/s"}[i%2]), Soname: ptr([]string{short, long, ""}[i%3])}
				now := []string{long + "x", short + "x"}[i%2]
				e.ReplaceNeeded = map[string]string{was: now}
				e.RemoveNeeded, e.AddNeeded = []string{"libm.so.6"}, nil
				if i%2 == 0 {
					e.RemoveNeeded, e.AddNeeded = nil, []string{"libm.so.6"}
				}
				if !v.lib {
					e.Interp = interp[(i+1)%2]
				}
				res, err := EditPath(path, e)
				var refused *RefusedError
				if i == 0 && errors.As(err, &refused) && bare {
					size = -1
					break // no room that could be known to be free
				}
				if err != nil {
					t.Fatalf("%s, %v: edit %d: %v", v.name, bare, i, err)
				}
				was = now
				info, _ := os.Stat(path)
				if i > 3 && info.Size() != size {
					t.Errorf("%s, %v: edit %d grew the file by %d: %s", v.name, bare, i, info.Size()-size, res.How)
					break
				}
				size = info.Size()
			}
		}
	}
}

// withoutSections cuts the section headers off, and what follows the last
// segment.
func withoutSections(tb testing.TB, b []byte) []byte {
	tb.Helper()
	f, err := Parse(byteFile(b), int64(len(b)))
	if err != nil {
		tb.Fatal(err)
	}
	out, end := slices.Clone(b), uint64(0)
	for _, p := range f.phdrs {
		end = max(end, p.end())
	}
	clear(out[40:48])
	clear(out[60:64])
	return out[:end]
}

// randomEdit asks for some of everything.
func randomEdit(rnd *rand.Rand) Edit {
	word := func() string { return longPath[rnd.IntN(40):][:rnd.IntN(90)] }
	yes := rnd.IntN(2) == 0
	e := Edit{NoDefaultLib: rnd.IntN(4) == 0, DebugTag: rnd.IntN(4) == 0, MoveHeaders: yes}
	if rnd.IntN(2) == 0 {
		e.RunPath, e.Tag = ptr(word()), Tag(rnd.IntN(3))
	}
	if rnd.IntN(3) == 0 {
		e.Soname = ptr(word())
	}
	if rnd.IntN(3) == 0 {
		e.ReplaceNeeded = map[string]string{"libdep.so": "x" + word(), "libc.so.6": "libc.so.6" + word()}
	}
	for range rnd.IntN(4) {
		e.AddNeeded = append(e.AddNeeded, "lib"+word())
	}
	if rnd.IntN(3) == 0 {
		e.RemoveNeeded = []string{[]string{"libc.so.6", "libdep.so"}[rnd.IntN(2)]}
	}
	if rnd.IntN(3) == 0 {
		e.ExecStack = &yes
	}
	if rnd.IntN(4) == 0 {
		e.Interp = "/" + word()
	}
	return e
}

// checkEdit plans e for the bytes b, and holds the result to the promises. It
// says whether there was a plan.
func checkEdit(t *testing.T, b []byte, e Edit) bool {
	t.Helper()
	f, err := Parse(byteFile(b), int64(len(b)))
	var format *FormatError
	if errors.As(err, &format) || errors.Is(err, ErrNotELF) {
		return false
	}
	if err != nil {
		t.Fatalf("untyped error: %v", err)
	}
	p, err := f.Plan(e)
	var refused *RefusedError
	if errors.As(err, &refused) || errors.As(err, &format) {
		return false
	}
	if err != nil {
		t.Fatalf("untyped error: %v", err)
	}
	m := &memory{bytes.Clone(b)}
	if err := p.Apply(m); err != nil {
		t.Fatal(err)
	}
	h, err := Parse(m, int64(len(m.b)))
	if err != nil {
		t.Fatalf("%v: %v", p, err)
	}
	if int64(len(m.b)-len(b)) != p.Growth() {
		t.Fatalf("%v: grew by %d, not by %d", p, len(m.b)-len(b), p.Growth())
	}
	for _, s := range e.AddNeeded {
		if !slices.Contains(h.Needed, s) {
			t.Fatalf("%v: %q is not needed", p, s)
		}
	}
	for _, s := range e.RemoveNeeded {
		if slices.Contains(h.Needed, s) && !slices.Contains(e.AddNeeded, s) {
			t.Fatalf("%v: %q is still needed", p, s)
		}
	}
	switch path, _ := h.Path(); {
	case e.RunPath != nil && path != *e.RunPath:
		t.Fatalf("%v: run path %q", p, path)
	case e.Soname != nil && h.Soname != *e.Soname:
		t.Fatalf("%v: DT_SONAME %q", p, h.Soname)
	case e.Interp != "" && h.Interp != e.Interp:
		t.Fatalf("%v: interpreter %q", p, h.Interp)
	}
	again, err := h.Plan(e)
	if err != nil || !again.Empty() {
		t.Fatalf("%v: the same edit again: %v, %v", p, again, err)
	}
	same, err := f.Plan(e)
	if err != nil || !slices.EqualFunc(same.writes, p.writes, func(a, b write) bool { return a.off == b.off && bytes.Equal(a.data, b.data) }) {
		t.Fatalf("%v: planned twice, two plans", p)
	}
	return true
}

// TestRandomEdits makes edits of everything, one on the result of another, and
// on damaged files.
func TestRandomEdits(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	_, lib, prog := versioned(t)
	paths := []string{lib, prog}
	for _, v := range variants() {
		paths = append(paths, v.make(t))
	}
	plans, refusals := 0, 0
	for _, path := range paths {
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		g := parsedAt(t, path)
		for i := range 40 {
			b, e := bytes.Clone(whole), randomEdit(rnd)
			if i%2 == 0 {
				b = damage(rnd, g, b)
			}
			if checkEdit(t, b, e) {
				plans++
			} else {
				refusals++
			}
		}
	}
	t.Logf("%d plans, %d refusals", plans, refusals)
	if plans < refusals || refusals == 0 {
		t.Error("the damage is one-sided")
	}
}

// FuzzPlan: any edit of any bytes is made as it was asked for, or refused.
func FuzzPlan(f *testing.F) {
	_, lib, prog := versioned(f)
	for i, path := range []string{lib, prog, variantOf(f, "bfd-lib-0").make(f), variantOf(f, "bfd-pie-36").make(f)} {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for k := range 4 {
			f.Add(b, uint64(i), uint64(k))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, x, y uint64) {
		checkEdit(t, b, randomEdit(rand.New(rand.NewPCG(x, y))))
	})
}

// TestSharedNames: strings that several entries share are overwritten by none
// of them.
func TestSharedNames(t *testing.T) {
	deps := shop.deps(t)
	object := shop.object(t, "user", userSource, nil)
	lib := shop.build(t, "shared-names.so", "", object, "-shared", "-L"+deps, "-ldep", "-Wl,-soname,libdep.so", "-Wl,-rpath,dep.so", "-Wl,-f,libdep.so")
	for _, e := range []Edit{
		{Soname: ptr("x")}, {Soname: ptr("x"), RunPath: ptr("y")}, {ReplaceNeeded: map[string]string{"libdep.so": "z"}},
		{ReplaceNeeded: map[string]string{"libdep.so": "dep.so"}, Soname: ptr("so"), RunPath: ptr("libdep.so")},
		{RemoveNeeded: []string{"libdep.so"}, Soname: ptr(""), RunPath: ptr("")},
	} {
		path := copyOf(t, lib)
		res := mustEdit(t, path, e)
		out := names(t, path)
		if !strings.Contains(out, "Auxiliary library: [libdep.so]") && !strings.Contains(out, "Filter library: [libdep.so]") {
			t.Errorf("%+v: %s\n%s", e, res.How, out)
		}
		if !strings.Contains(out, "user_rpath") || !strings.Contains(out, "user_name") {
			t.Errorf("%+v: %s\n%s", e, res.How, out)
		}
		idempotent(t, path, e)
	}
}

// TestPayloadKeptByAll: a file with a payload is edited where nothing grows,
// and refused where something would.
func TestPayloadKeptByAll(t *testing.T) {
	b, err := os.ReadFile(variantOf(t, "bfd-pie-36").make(t))
	if err != nil {
		t.Fatal(err)
	}
	payload := strings.Repeat("PAYLOAD", 1000)
	path := put(t, "payload", append(b, payload...))
	mustEdit(t, path, Edit{ReplaceNeeded: map[string]string{"libdep.so": "d"}, DebugTag: true, Soname: ptr("libc")})
	var refused *RefusedError
	if _, err := EditPath(path, Edit{Interp: "/" + strings.Repeat("x", 4000)}); !errors.As(err, &refused) || !strings.Contains(err.Error(), "payload") {
		t.Errorf("%v", err)
	}
	if after, _ := os.ReadFile(path); !strings.HasSuffix(string(after), payload) || len(after) != len(b)+len(payload) {
		t.Error("the payload moved")
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		t.Error(err)
	}
}
