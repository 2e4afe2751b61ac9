package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"
)

// schemaOf reads the schema that a verb prints.
func schemaOf(t *testing.T, print func(*app) error) *jsonschema.Resolved {
	t.Helper()
	var out bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &out, getenv: func(string) string { return "" }}
	if err := print(a); err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(out.Bytes(), &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

// The schema that editors use accepts what the program accepts: the shipped
// file and each of its examples.
func TestSchemaAcceptsTheShippedConfig(t *testing.T) {
	resolved := schemaOf(t, (*app).configSchema)
	src, err := os.ReadFile("../../config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	open := false
	for line := range strings.Lines(string(src)) {
		text, is := strings.CutPrefix(line, "# ")
		if is && !open {
			blocks = append(blocks, "")
		}
		if open = is; is {
			blocks[len(blocks)-1] += text
		}
	}
	for _, text := range append(blocks, string(src)) {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		plain, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var instance any
		if err := json.Unmarshal(plain, &instance); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(instance); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
	}
	if err := resolved.Validate(map[string]any{"rooot": "x"}); err == nil {
		t.Error("the schema takes unknown keys")
	}
}
