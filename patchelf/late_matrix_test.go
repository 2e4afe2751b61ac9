package patchelf

import "testing"

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
	x := newSubject(t, shape.apply(t, l.make(t)), l.lib())
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
