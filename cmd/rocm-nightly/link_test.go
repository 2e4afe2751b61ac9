package main

import (
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/store"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// What is at a path is somebody's to choose: it makes no line of its own, and
// says nothing to the terminal.
func TestNamesOfLinksStayInTheirLine(t *testing.T) {
	const bad = "/opt/x\n/opt/rocm\tours\x1b[2J"
	var out strings.Builder
	printLinks(&out, []linkStatus{{Path: bad, State: "foreign", What: "a link to " + bad, Note: "taken over from " + bad}})
	if strings.Count(out.String(), "\n") != 2 {
		t.Errorf("%q", &out)
	}
	a := &app{stdout: &out}
	a.printUninstall(&store.Uninstalled{
		Links:   []store.Unlinked{{Path: bad, Removed: true}, {Path: bad, Removed: true, Restored: bad}},
		Removed: []string{bad}, Left: []store.LeftThere{{Path: bad, Why: bad}},
	}, false)
	a.printLinked(&update.Report{Links: []update.Linked{{Path: bad, Changed: true}}})
	for _, u := range []store.Unlinked{{Path: bad}, {Path: bad, Removed: true}, {Path: bad, Left: bad}, {Path: bad, Restored: bad}} {
		out.WriteString(unlinkText(u) + "\n")
	}
	if strings.ContainsRune(out.String(), 0x1b) || strings.Count(out.String(), "\n") != 11 {
		t.Errorf("%q", &out)
	}
}
