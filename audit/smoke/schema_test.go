package smoke

import (
	"encoding/json"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/rocm-nightly/rocm-nightly/audit"
)

// A report is what the schema of `audit --json` says of its field smoke.
func TestReportIsWhatTheSchemaSays(t *testing.T) {
	var whole jsonschema.Schema
	must(t, json.Unmarshal([]byte(audit.JSONSchema()), &whole))
	part := whole.Properties["smoke"].CloneSchemas()
	part.Defs = whole.Defs
	schema, err := part.Resolve(nil)
	must(t, err)
	node := 1
	for _, rep := range []*Report{
		runChecks(t, bare(t), Options{Runner: nobody(t)}),
		{Schema: Schema, Mode: GPU, Targets: []string{}, Cage: "landlock", Checks: []Check{{Name: "gpu-math", Environment: Empty, Target: "gfx1030", GPU: &node, Status: Failed, Seconds: 1.5, Command: "c", Output: "o"}}},
	} {
		b, err := json.Marshal(rep)
		must(t, err)
		var v map[string]any
		must(t, json.Unmarshal(b, &v))
		if err := schema.Validate(v); err != nil {
			t.Errorf("%v: %s", err, b)
		}
		v["checks"].([]any)[0].(map[string]any)["status"] = "fine"
		if schema.Validate(v) == nil {
			t.Error("the schema takes any status")
		}
	}
}
