// Package docs holds those of these pages that the program quotes: what a field of
// a record means is written once, in the table of its page, and schema prints it.
package docs

import (
	_ "embed"
	"regexp"
	"strings"
)

//go:embed manifest.md
var manifest string

//go:embed status.md
var status string

//go:embed check.md
var check string

//go:embed notify.md
var notify string

// row is a line of a table of fields.
var row = regexp.MustCompile("^\\| `([^`]+)` \\| (.+) \\|$")

// Fields returns what the table under a heading ("## state.json") says of each
// field, by its path: a.b of an object, a[].b of a list, a.*.b of a map. It is nil
// where there is no such heading.
func Fields(heading string) map[string]string {
	var fields map[string]string
	for line := range strings.Lines(manifest + "\n" + status + "\n" + check + "\n" + notify) {
		line = strings.TrimRight(line, "\n")
		switch m := row.FindStringSubmatch(line); {
		case line == "## "+heading:
			fields = map[string]string{}
		case strings.HasPrefix(line, "#") && fields != nil:
			return fields
		case m != nil && fields != nil:
			fields[m[1]] = strings.ReplaceAll(m[2], "`", "")
		}
	}
	return fields
}
