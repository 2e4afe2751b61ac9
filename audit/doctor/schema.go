package doctor

import _ "embed"

//go:embed report.schema.json
var reportSchema string

// JSONSchema is the JSON Schema (draft 2020-12) of a Report.
func JSONSchema() string { return reportSchema }
