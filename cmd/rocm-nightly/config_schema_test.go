package main

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
)

var updateSchema = flag.Bool("update-schema", false, "write docs/config.schema.json")

// The schema that is published is the one of this program: go test -run
// TestPublishedSchema ./cmd/rocm-nightly -update-schema.
func TestPublishedSchema(t *testing.T) {
	const file = "../../docs/config.schema.json"
	var out bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &out, getenv: func(string) string { return "" }}
	if err := a.configSchema(); err != nil {
		t.Fatal(err)
	}
	if *updateSchema {
		if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, out.Bytes()) {
		t.Errorf("%s is not what `rocm-nightly config schema` prints: run this test with -update-schema", file)
	}
}

// What Load refuses by its form, the schema refuses too.
func TestSchemaRefusesWhatLoadRefuses(t *testing.T) {
	resolved := schemaOf(t, (*app).configSchema)
	for name, bad := range map[string]any{
		"an unknown section":     map[string]any{"polcy": map[string]any{}},
		"an unknown key":         map[string]any{"policy": map[string]any{"setle": "2h"}},
		"an unknown key of one":  map[string]any{"installs": []any{map[string]any{"target": "gfx1151", "x": 1.0}}},
		"no list":                map[string]any{"installs": map[string]any{}},
		"no section":             map[string]any{"keep": 3.0},
		"no number":              map[string]any{"keep": map[string]any{"last": "many"}},
		"neither true nor false": map[string]any{"root_alone": "maybe"},
		"no part":                map[string]any{"repack": map[string]any{"omit": []any{"test"}}},
		"no target":              map[string]any{"installs": []any{map[string]any{"channel": "nightly"}}},
	} {
		if resolved.Validate(bad) == nil {
			t.Errorf("the schema takes %s", name)
		}
	}
}
