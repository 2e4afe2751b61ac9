package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every place that starts a program is a row of docs/security.md, and every row is
// such a place.
func TestExecutedProgramsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(doc), "\n## Every program that is executed\n")
	table, _, _ = strings.Cut(table, "\n## ")
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+\\.go)` \\|").FindAllStringSubmatch(table, -1) {
		listed[m[1]] = true
	}
	starts := regexp.MustCompile(`\b(exec\.Command(Context)?|syscall\.(Exec|ForkExec|StartProcess)|unix\.Exec|os\.StartProcess)\(`)
	found := map[string]bool{}
	for _, p := range list(t) {
		if strings.HasSuffix(p.ImportPath, "test") || p.ImportPath == "internal/smallfs" || p.ImportPath == "internal/demo/mkcorpus" {
			continue // for tests
		}
		for _, name := range p.GoFiles {
			src, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if file := p.ImportPath + "/" + name; starts.Match(src) {
				found[file] = true
				if !listed[file] {
					t.Errorf("docs/security.md does not say what %s executes", file)
				}
			}
		}
	}
	for file := range listed {
		if !found[file] {
			t.Errorf("docs/security.md lists %s, which executes nothing", file)
		}
	}
}
