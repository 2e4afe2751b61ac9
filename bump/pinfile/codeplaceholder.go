package pinfile

import (
	"regexp"
	"strings"
)

// placeholderRE finds $NAME, ${NAME}, ${NAME:-x}, ${NAME-x} and what else
// begins with ${.
var placeholderRE = regexp.MustCompile(`\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_.-]*?)(?:(:?-)([^{}$]*))?\}|\{[^{}]*\})`)

// placeholders expands $NAME and ${NAME} in raw, which stands at off, by what
// is known. bare says whether $NAME counts, or ${NAME} alone.
func placeholders(raw []byte, off int, known map[string]text, bare bool) text {
	var x text
	pos := 0
	for _, m := range placeholderRE.FindAllSubmatchIndex(raw, 1000) {
		if m[2] >= 0 && !bare {
			continue
		}
		x.add(string(raw[pos:m[0]]), off+pos, off+m[0])
		pos = m[1]
		name := strings.Trim(string(raw[m[0]:m[1]]), "${}")
		switch {
		case m[2] >= 0:
			name = string(raw[m[2]:m[3]])
		case m[4] >= 0:
			name = string(raw[m[4]:m[5]])
		}
		value, ok := known[name]
		switch {
		case x.len() > maxURL:
			return x
		case ok && (m[8] < 0 || value.len() > 0):
			x.addText(value)
		case m[8] >= 0:
			x.add(string(raw[m[8]:m[9]]), off+m[8], off+m[9])
		default:
			x.addUnknown(name)
		}
	}
	x.add(string(raw[pos:]), off+pos, off+len(raw))
	return x
}
