package wrap

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// docs/wrap.md has a row for each rule, in the order in which they run, and none
// for another.
func TestRulesAreDocumented(t *testing.T) {
	want := []string{RuleInterpreter}
	for _, r := range leaks {
		want = append(want, r.name)
	}
	want = append(want, RuleCompilerPath, RuleRunPath, RuleELFInterpreter)
	doc, err := os.ReadFile("../docs/wrap.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(string(doc), -1) {
		rows = append(rows, m[1])
	}
	if !slices.Equal(rows, want) {
		t.Errorf("docs/wrap.md has rows for\n%q\nand the rules are\n%q", rows, want)
	}
}
