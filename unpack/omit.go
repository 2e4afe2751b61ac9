package unpack

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// ErrOmitted is matched by the error about a hard link that is kept, to a file
// that is left out.
var ErrOmitted = errors.New("left out")

// What is omitted keeps its place among the names: an archive is refused, and
// an absolute link means the same, whatever is left out of it.

// omit returns why an entry is left out, "" for one that is kept.
func (u *unpacker) omit(name string, kind manifest.Kind, size int64) string {
	if u.o.Omit == nil {
		return ""
	}
	return u.o.Omit(name, kind, size)
}

// skip reads the content of a file that is left out.
func (u *unpacker) skip(content io.Reader, left int64) error {
	for left > 0 {
		c, err := u.fill(content, left)
		if err != nil {
			return err
		}
		c.done()
		left -= int64(len(c.data))
	}
	return nil
}

// leftOut takes what is omitted out of the tree's names, and lists what was an
// entry of the archive.
func (u *unpacker) leftOut() []manifest.Dropped {
	var left []manifest.Dropped
	for name, reason := range u.omitted {
		delete(u.nodes, name)
		if reason != "" {
			left = append(left, manifest.Dropped{Path: name, Reason: reason})
		}
	}
	slices.SortFunc(left, func(a, b manifest.Dropped) int { return strings.Compare(a.Path, b.Path) })
	return left
}
