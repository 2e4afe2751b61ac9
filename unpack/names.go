package unpack

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxPath is the longest path that Linux takes (PATH_MAX less its NUL),
	// with room for the prefix that the tree is installed into.
	maxPath = 3000
	// maxPart is the longest component that Linux takes (NAME_MAX).
	maxPart = 255
	// maxDepth is how many components a name may have: each directory costs a
	// walk from the root, and each level a directory that no entry named.
	maxDepth = 128
)

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
	}
	if err := plainText(name); err != nil {
		return "", err
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", fmt.Errorf("%w: %q in the name, it would leave the prefix", ErrRefused, "..")
		}
		if len(part) > maxPart {
			return "", fmt.Errorf("%w: a part of the name has %d bytes, and Linux takes %d", ErrRefused, len(part), maxPart)
		}
	}
	clean := path.Clean(name)
	if strings.Count(clean, "/") >= maxDepth {
		return "", fmt.Errorf("%w: more than %d directories deep", ErrRefused, maxDepth-1)
	}
	// A name may be a part of a large extended header, which must not stay in
	// memory with it.
	return strings.Clone(clean), nil
}

// cleanTarget checks the target of a symlink, which is kept as it is. What an
// absolute one says is never written: it becomes names of the tree, or goes.
func cleanTarget(target string) (string, error) {
	switch {
	case target == "":
		return "", fmt.Errorf("%w: link to nothing", ErrRefused)
	case len(target) > maxPath, strings.Count(target, "/") >= 2*maxDepth: // up from the deepest and down again
		return "", fmt.Errorf("%w: link target of %d bytes and %d slashes", ErrRefused, len(target), strings.Count(target, "/"))
	case !strings.HasPrefix(target, "/"):
		if err := plainText(target); err != nil {
			return "", fmt.Errorf("link to %q: %w", target, err)
		}
	}
	return strings.Clone(target), nil
}

// plainText refuses what shells, terminals and text formats cannot carry.
func plainText(name string) error {
	if !utf8.ValidString(name) {
		return fmt.Errorf("%w: name is not UTF-8", ErrRefused)
	}
	if strings.ContainsFunc(name, unseen) {
		return fmt.Errorf("%w: control character in the name", ErrRefused)
	}
	return nil
}

// unseen says whether r is no character but an instruction: a control, or what
// turns the direction of text, ends lines or has no width, so that a name looks
// like another one (Unicode's categories Cc, Cf, Zl and Zp).
func unseen(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}
