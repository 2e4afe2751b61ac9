package house

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryPromiseHasItsTest: the README names a test for each of its twelve
// promises, the tree has it, and no test promises what nobody is told.
func TestEveryPromiseHasItsTest(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../../docs/durability.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| [0-9]+ \\| .* \\| `TestPromise.*$").FindAllString(string(readme), -1)
	if len(rows) != 12 {
		t.Errorf("the README has %d promises, not 12", len(rows))
	}
	have := promiseTests(t)
	for _, m := range regexp.MustCompile(`TestPromise\w+`).FindAllString(string(readme)+string(doc), -1) {
		if have[m] == "" {
			t.Errorf("%s is promised, and no test has that name", m)
		}
	}
	for name, file := range have {
		if !strings.Contains(string(readme), name) && !strings.Contains(string(doc), name) {
			t.Errorf("%s: neither the README nor docs/durability.md says what %s promises", file, name)
		}
	}
}

// promiseTests lists the tests of promises, with their files, of every build.
func promiseTests(t *testing.T) map[string]string {
	t.Helper()
	test := regexp.MustCompile(`(?m)^func (TestPromise\w+)\(t \*testing\.T\)`)
	have := map[string]string{}
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, m := range test.FindAllSubmatch(b, -1) {
			if other := have[string(m[1])]; other != "" {
				t.Errorf("%s is in %s and in %s", m[1], other, path)
			}
			have[string(m[1])] = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return have
}
