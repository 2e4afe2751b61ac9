package audit

import (
	"slices"
	"testing"
)

// Libraries that all need each other take a number of steps that grows with the
// cube of theirs. The work is bounded, and that is said.
func TestAnEntangledTreeIsGivenUp(t *testing.T) {
	f := newFixture(t)
	a, allow, err := newAuditor(f.options())
	if err != nil {
		t.Fatal(err)
	}
	if err := a.open(t.Context(), f.dir, nil); err != nil {
		t.Fatal(err)
	}
	defer a.tree.root.Close()
	a.maxWork = 8
	if err := needed(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	got := brief(a.report(f.dir, allow).Findings)
	if !slices.ContainsFunc(got, func(s string) bool { return s == "required needed "+rocm+"bin/tool | *" }) || len(got) != 1 {
		t.Errorf("%q", got)
	}
}
