package patchelf

import (
	"strings"
	"testing"
)

// lateShapes are the ways in which tools leave a program-header table at the
// end of a file.
var lateShapes = map[string]late{
	"slack":      {slack: 4, phdr: true, oddShoff: true},
	"identity":   {slack: 2, phdr: true, identity: true, oddShoff: true},
	"eof":        {slack: 3, phdr: true},
	"nophdr":     {slack: 2, oddShoff: true},
	"noslack":    {phdr: true, oddShoff: true},
	"noslackeof": {phdr: true, identity: true},
	"pageend":    {slack: 1, phdr: true, pageEnd: true, oddShoff: true},
	"fullpage":   {phdr: true, pageEnd: true, oddShoff: true, identity: true},
	"blob":       {slack: 1, phdr: true, behind: 12345, oddShoff: true},
	"snug":       {phdr: true, snug: true},
	"tail":       {slack: 2, phdr: true, oddShoff: true, tail: 4000},
	"page64k":    {slack: 2, phdr: true, oddShoff: true, page: 65536},
	"page2m":     {slack: 2, phdr: true, oddShoff: true, page: 2 << 20, identity: true},
}

// TestLateMatrix makes every edit of the matrix to files with a late table.
// What cannot be edited is refused, and untouched.
func TestLateMatrix(t *testing.T) {
	for name, shape := range lateShapes {
		for i, l := range linkages(heavy) {
			if l.option.after != nil || l.kind == "pie" && !shape.phdr {
				continue // a PIE does not start without PT_PHDR
			}
			if part := map[bool]int{false: 15, true: 5}[heavy]; (i+len(name))%part != 0 {
				continue
			}
			t.Run(l.name()+"/"+name, func(t *testing.T) {
				t.Parallel()
				lateTasks(t, l, shape)
			})
		}
	}
}

func lateTasks(t *testing.T, l linkage, shape late) {
	b := shape.apply(t, l.make(t))
	if !loaderFinds(parsed(t, b), 4096) {
		return // it is broken before the edit
	}
	x := newSubject(t, b, l.lib())
	x.mayRefuse = shape.slack == 0 || shape.tail > 0
	x.loose = true // strippers break such files, edited or not
	for _, k := range tasks(t) {
		if k.programs && l.lib() {
			continue
		}
		if x.do(t, k); x.refused {
			return
		}
	}
	x.tools(t)
}

// TestMovedHeadersAreFound: where the program headers of a library move, its
// loader finds them. glibc looks for them by whole pages: on a page that an
// earlier segment ends on, it would take that segment's bss for them, and
// exceptions could not be thrown through the library.
func TestMovedHeadersAreFound(t *testing.T) {
	deps := dependencies(t)
	for _, l := range linkages(true) {
		if l.cc != "gcc" || l.kind != "lib" || l.option.name != "nosections" && l.option.name != "bare" {
			continue
		}
		t.Run(l.name(), func(t *testing.T) {
			x := newSubject(t, crowd(t, put(t, "crowded", l.make(t))), true)
			e := Edit{RunPath: ptr(strings.Repeat(longPath+":", 40) + deps)}
			before := x.bytes(t)
			res := mustEdit(t, x.path, e)
			t.Log(res.How)
			for _, broken := range held(before, x.bytes(t), e) {
				t.Errorf("%s: %s", res.How, broken)
			}
			if code, out := runs(t, x.path, true); code != 46 {
				t.Errorf("%s: exit %d: %s", res.How, code, out)
			}
		})
	}
}
