package bump

import (
	"fmt"
	"strings"
	"testing"
)

// TestTemplatesEnd: whatever a template says, it ends soon and its text is
// short.
func TestTemplatesEnd(t *testing.T) {
	pin := night(n30)["gfx1151"]
	double := `{{define "a0"}}{{end}}`
	for i := range 40 {
		double += fmt.Sprintf(`{{define "a%d"}}{{template "a%d"}}{{template "a%d"}}{{end}}`, i+1, i, i)
	}
	double += `{{template "a40"}}`
	for _, tt := range []struct{ name, text, err string }{
		{"a number", `{{range 3000000000}}{{end}}x`, "loops run more than"},
		{"a field", `{{range .Size}}{{end}}x`, "loops run more than"},
		{"in each other", `{{range 2000}}{{range 2000}}{{range 2000}}{{else}}y{{end}}{{end}}{{end}}x`, "loops run more than"},
		{"in branches", `{{if .URL}}{{with .URL}}{{range 3000000000}}{{end}}{{end}}{{end}}x`, "loops run more than"},
		{"by itself", `{{define "a"}}{{template "a" .}}{{end}}{{template "a" .}}`, "loops run more than"},
		{"twice by itself", double, "loops run more than"},
		{"much", `{{range 9000}}{{$.URL}}{{end}}`, "longer than"},
		{"wide", `{{printf "%900000d" 1}}`, "longer than"},
		{"ordinary", `{{range 4}}{{slice $.Hex . 4}}{{end}}{{.Version}}`, ""},
	} {
		got, err := expand("f", "k", tt.text, pin)
		if tt.err == "" && (err != nil || !strings.HasSuffix(got, n30)) || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || len(err.Error()) > 400) {
			t.Errorf("%s: %.100q, %v", tt.name, got, err)
		}
	}
	if _, err := expandSummary("title", `{{range 3000000000}}{{end}}`, Summary{}, maxTitle); err == nil {
		t.Error("a title without end")
	}
	if got, err := expandSummary("labels", `{{range .Targets}}{{.}} {{end}}`, Summary{Targets: []string{"a", "b"}}, maxLabel); err != nil || got != "a b " {
		t.Errorf("%q, %v", got, err)
	}
}
