package doctor_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/rocm-nightly/rocm-nightly/audit/doctor"
)

// schema is what documents a report.
func schema(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(doctor.JSONSchema()), &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// fits checks a report against the schema.
func fits(t *testing.T, r *doctor.Report) {
	t.Helper()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	if err := schema(t).Validate(v); err != nil {
		t.Errorf("the schema does not have this: %v", err)
	}
	v["more"] = 1
	if schema(t).Validate(v) == nil {
		t.Error("the schema takes names that no report has")
	}
}

func TestReportsFitTheSchema(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		s, o, _ := load(t, file)
		r, err := doctor.Run(context.Background(), s, o)
		if err != nil {
			t.Fatal(err)
		}
		fits(t, r)
	}
}

// Every check that the program can file is in the documentation, and every one
// that is there can be filed.
func TestEveryCheckIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	filed := map[string]bool{}
	for _, name := range sources {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, m := range regexp.MustCompile(`Check: +"([a-z-]+)"|\.Check(?:, [a-z]\.[A-Za-z]+)*(?:, g\.[A-Za-z]+)* = "([a-z-]+)"|mixed\([^"]*"([a-z-]+)"\)`).FindAllSubmatch(src, -1) {
			filed[string(m[1])+string(m[2])+string(m[3])] = true
		}
	}
	if len(filed) < 30 {
		t.Fatalf("only %d checks found in the source", len(filed))
	}
	for c := range filed {
		if !strings.Contains(string(doc), "| `"+c+"` |") {
			t.Errorf("docs/doctor.md has no %s", c)
		}
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllSubmatch(doc, -1) {
		if !filed[string(m[1])] {
			t.Errorf("docs/doctor.md has %s, which nothing files", m[1])
		}
	}
}
