package main

import (
	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
	"github.com/rocm-nightly/rocm-nightly/repack"
)

// enough returns an error when a work cannot fit where dir is, and warns when
// it may not. What cannot be looked at is left to writing.
func (a *app) enough(what, dir string, need diskspace.Need) error {
	s, err := diskspace.Statfs(dir)
	if err != nil {
		a.log(a.stderr).Debug("what is free is not known", "error", err)
		return nil
	}
	switch s.Fit(need) {
	case diskspace.Short:
		return &diskspace.ShortError{What: what, Need: need, Space: s}
	case diskspace.Doubtful:
		if a.warned {
			return nil
		}
		a.warned = true
		a.log(a.stderr).Warn("there may not be enough room; trying it", "takes", need.String(), "free", s.String())
	}
	return nil
}

// repackRoom looks whether a prefix of a tarball of so many bytes can be made,
// and the rest of its download beside it; size is 0 if it is not known, and then
// all that is asked is that something can be written.
func (a *app) repackRoom(prefix, name string, rest diskspace.Need, size int64) error {
	need := rest
	if size > 0 {
		tree := diskspace.Guess(name, size)
		tree.Bytes += diskspace.Reserve(tree.Bytes)
		if a.omits {
			tree.Least = diskspace.Least{} // how little stays, nobody knows before
		}
		need = tree.Plus(rest)
	}
	if s, err := diskspace.Statfs(prefix); err == nil && s.Fit(need) != diskspace.Fits {
		repack.Sweep(prefix) // what runs that died have left may be all that is in the way
	}
	return a.enough("unpacking it", prefix, need)
}

// fetchRoom looks whether a download fits, and the file that is written of it:
// the download stays beside it until that is whole.
func (a *app) fetchRoom(spool string, stream bool) func(fetch.Ahead) error {
	return func(ahead fetch.Ahead) error {
		need := diskspace.Incompressible(ahead.Bytes())
		if !stream {
			need = need.Plus(diskspace.Incompressible(ahead.Size))
		}
		return a.enough("downloading it", spool, need)
	}
}
