package audit

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

func schemaOf(t *testing.T) (*jsonschema.Schema, *jsonschema.Resolved) {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(JSONSchema()), &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &s, r
}

// instance is v as a reader of the JSON sees it.
func instance(t *testing.T, v any) map[string]any {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Every report, of sound trees and of broken ones, is what the schema says.
func TestReportsAreWhatTheSchemaSays(t *testing.T) {
	_, schema := schemaOf(t)
	rules := map[string]bool{}
	for i, b := range breaks {
		if testing.Short() && i%4 != 0 {
			continue
		}
		f := newFixture(t)
		b.do(f)
		o := f.options()
		o.Scope = b.scope
		r := f.audit(o)
		if err := schema.Validate(instance(t, r)); err != nil {
			t.Errorf("%s: %v", b.name, err)
		}
		for rule := range r.Counts.Rules {
			rules[rule] = true
		}
	}
	if len(rules) < 10 {
		t.Errorf("only %v were seen", rules)
	}
}

// The schema notices what is wrong, so that the test above can fail.
func TestTheSchemaIsStrict(t *testing.T) {
	_, schema := schemaOf(t)
	f := newFixture(t)
	f.link(rocm+"bin/gone", "x")
	for name, spoil := range map[string]func(r map[string]any){
		"another version":    func(r map[string]any) { r["schema"] = 2 },
		"no findings":        func(r map[string]any) { delete(r, "findings") },
		"findings are null":  func(r map[string]any) { r["findings"] = nil },
		"an unknown rule":    func(r map[string]any) { first(r)["rule"] = "x" },
		"a severity":         func(r map[string]any) { first(r)["severity"] = "bad" },
		"a field":            func(r map[string]any) { first(r)["more"] = "x" },
		"no detail":          func(r map[string]any) { first(r)["detail"] = "" },
		"a negative count":   func(r map[string]any) { r["allowed"] = -1 },
		"counts of nothing":  func(r map[string]any) { r["counts"].(map[string]any)["rules"] = map[string]any{"x": 1} },
		"checked is no list": func(r map[string]any) { r["checked"] = []any{} },
	} {
		r := instance(t, f.audit(f.options()))
		if err := schema.Validate(r); err != nil {
			t.Fatal(err)
		}
		if spoil(r); schema.Validate(r) == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

func first(r map[string]any) map[string]any { return r["findings"].([]any)[0].(map[string]any) }

// The schema has each field of the types, and each rule.
func TestTheSchemaIsComplete(t *testing.T) {
	s, _ := schemaOf(t)
	for _, c := range []struct {
		typ reflect.Type
		of  *jsonschema.Schema
	}{
		{reflect.TypeFor[Report](), s}, {reflect.TypeFor[Finding](), s.Defs["finding"]}, {reflect.TypeFor[Counts](), s.Properties["counts"]},
	} {
		var names []string
		for i := range c.typ.NumField() {
			name, rest, _ := strings.Cut(c.typ.Field(i).Tag.Get("json"), ",")
			names = append(names, name)
			p := c.of.Properties[name]
			if p == nil {
				t.Errorf("%v: the schema lacks %s", c.typ, name)
			} else if optional := strings.Contains(rest, "omitempty"); optional == slices.Contains(c.of.Required, name) {
				t.Errorf("%v: %s is optional here or there, not both", c.typ, name)
			}
		}
		for name := range c.of.Properties {
			if !slices.Contains(names, name) && name != "smoke" { // package smoke's, which tests it
				t.Errorf("%v has no %s", c.typ, name)
			}
		}
	}
	var rules []string
	for _, r := range s.Defs["rule"].Enum {
		rules = append(rules, r.(string))
	}
	if !slices.Equal(rules, Rules()) {
		t.Errorf("the schema has the rules %q, the code %q", rules, Rules())
	}
}

var documented = regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| ([a-z, ]+) \\|")

// docs/audit.md has a row for each rule, with the severities that the broken
// trees of this package show.
func TestEveryRuleIsDocumented(t *testing.T) {
	b, err := os.ReadFile("../docs/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := map[string]string{}
	for _, m := range documented.FindAllStringSubmatch(string(b), -1) {
		doc[m[1]] = m[2]
	}
	for _, rule := range Rules() {
		if doc[rule] == "" {
			t.Errorf("docs/audit.md lacks %s", rule)
		}
	}
	if len(doc) != len(Rules()) {
		t.Errorf("docs/audit.md has %v", doc)
	}
	for _, b := range breaks {
		for _, want := range b.want {
			severity, rest, _ := strings.Cut(want, " ")
			rule, _, _ := strings.Cut(rest, " ")
			if !strings.Contains(doc[rule], severity) {
				t.Errorf("docs/audit.md says that %s is %s; %s of %q", rule, doc[rule], severity, b.name)
			}
		}
	}
}
