package unpack

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxPath is the longest path that Linux takes (PATH_MAX less its NUL), with
// room for the prefix that the tree is installed into.
const maxPath = 3000

// cleanName turns a name of the archive into a path relative to the tree: no
// leading "./", no doubled or trailing slash, "." for the root. Names that
// could lead out of the tree, or that shells and text formats cannot carry,
// are refused.
func cleanName(name string) (string, error) {
	switch {
	case name == "":
		return "", fmt.Errorf("%w: empty name", ErrRefused)
	case len(name) > maxPath:
		return "", fmt.Errorf("%w: name of %d bytes", ErrRefused, len(name))
	case strings.HasPrefix(name, "/"):
		return "", fmt.Errorf("%w: absolute name, it would leave the prefix", ErrRefused)
	case !utf8.ValidString(name):
		return "", fmt.Errorf("%w: name is not UTF-8", ErrRefused)
	case strings.ContainsFunc(name, unicode.IsControl):
		return "", fmt.Errorf("%w: control character in the name", ErrRefused)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", fmt.Errorf("%w: %q in the name, it would leave the prefix", ErrRefused, "..")
		}
	}
	return path.Clean(name), nil
}
