package audit

import (
	_ "embed"
	"maps"
	"slices"
)

//go:embed report.schema.json
var reportSchema string

// JSONSchema is the JSON Schema (draft 2020-12) of a Report.
func JSONSchema() string { return reportSchema }

// Rules lists the names of the rules, sorted.
func Rules() []string { return slices.Sorted(maps.Keys(knownRules)) }

// Check reports what of o makes no sense, such as a rule to allow that there is
// none of, without a look at any tree.
func (o Options) Check() error {
	_, _, err := newAuditor(o)
	return err
}
