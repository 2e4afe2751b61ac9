package wrap

import (
	"context"
	"fmt"
	"os"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// FinishTree adds to a bare ROCm tree the links that it lacks, and nothing
// else: no wrappers and no hooks, as a package of the tree wants it. files are
// the tree's entries, with paths relative to root; what was made is returned
// in the same form.
func FinishTree(ctx context.Context, root *os.Root, files []manifest.File) ([]manifest.File, error) {
	l := newLayout(newTree(files, ""))
	for _, link := range l.tree.lacking() {
		l.items[link.name] = item{kind: manifest.Symlink, link: link.target}
	}
	made, err := l.write(ctx, root, newest(files))
	if err != nil {
		return nil, fmt.Errorf("finish tree: %w", err)
	}
	return made, nil
}
