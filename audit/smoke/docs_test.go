package smoke

import (
	"os"
	"strings"
	"testing"
)

// The tables of docs/smoke.md are those of the code.
func TestDocsAreTrue(t *testing.T) {
	doc, err := os.ReadFile("../../docs/smoke.md")
	must(t, err)
	for _, k := range Checks() {
		if line := "| " + k.Name + " | " + k.Mode + " | " + k.Proves + " |\n"; !strings.Contains(string(doc), line) {
			t.Errorf("docs/smoke.md lacks: %s", line)
		}
	}
	for _, h := range hostiles() {
		line := "| " + h.name + " | " + h.why
		if len(h.but) > 0 {
			line += " (not for " + strings.Join(h.but, ", ") + ")"
		}
		if !strings.Contains(string(doc), line+" |\n") {
			t.Errorf("docs/smoke.md lacks: %s |", line)
		}
	}
}
