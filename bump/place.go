package bump

import (
	"context"

	"github.com/rocm-nightly/rocm-nightly/bump/forge"
)

// place is where commits are read and made: git's own objects, or a forge that
// takes commits through its API. The methods are those of forge.Trees.
type place interface {
	Tip(ctx context.Context, branch string) (forge.Commit, error)
	File(ctx context.Context, commit, path string, limit int64) (forge.File, error)
	Tree(ctx context.Context, n forge.NewCommit) (string, error)
	Commit(ctx context.Context, n forge.NewCommit, tree string) (forge.Commit, error)
	Move(ctx context.Context, branch, from, to string) error
	Remove(ctx context.Context, branch, from string) error
}

// looker is a place that remembers what it saw of the branches, until it is
// told to look again.
type looker interface {
	look(ctx context.Context, branches ...string) error
}
