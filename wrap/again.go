package wrap

import (
	"slices"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// WithoutAdded returns, of the entries of a prefix that Finish made, those that
// it was given: what stands around the tree is left out, and so are the links
// that the tree lacked. files.jsonl has no mark for those; they are known by
// their name and target, and by the time that all has that Finish makes. A link
// that the tarball brought with the very same three is left out as well, which
// makes no difference: Finish makes it again.
func WithoutAdded(files []manifest.File) []manifest.File {
	time := newest(files)
	return slices.DeleteFunc(slices.Clone(files), func(f manifest.File) bool {
		p, in := below(f.Path, treeDir)
		if !in {
			return f.Path != parent(treeDir)
		}
		return f.Kind == manifest.Symlink && f.MTime == time && slices.Contains(wantedLinks, treeLink{p, f.Link})
	})
}

// PerPrefix reports whether two prefixes of one tarball may differ in a file of
// the ROCm tree, so that they cannot share its bytes: a rule writes into it what
// Options say of one prefix, which is its final place in the compiler's
// configuration. path is relative to the tree.
func PerPrefix(path string) bool { return isCompilerConfig(path) }
