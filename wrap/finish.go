package wrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// treeDir is where the ROCm tree lies in a prefix.
const treeDir = "opt/rocm"

// Finish makes a prefix of an unpacked tree: it adds the links that the tree
// lacks, the wrappers, the root-shaped links, the licenses, the environment files
// and the hooks. files are the tree's entries, with paths relative to the
// prefix; what Finish made is returned in the same form, sorted. Nothing that
// exists is written over: that is an error, and the prefix is then half made.
// Files get mode 0444 or 0555, everything the newest mtime found in files.
func Finish(ctx context.Context, root *os.Root, files []manifest.File, o Options) ([]manifest.File, error) {
	if err := o.Check(); err != nil {
		return nil, fmt.Errorf("finish prefix: %w", err)
	}
	o = o.withDefaults()
	fi, err := root.Stat(treeDir)
	if err != nil {
		return nil, fmt.Errorf("finish prefix: find the ROCm tree: %w", err)
	}
	if !fi.IsDir() {
		return nil, fmt.Errorf("finish prefix: %s is not a directory", treeDir)
	}
	l, err := plan(newTree(files, treeDir), o, func(p string) (bool, error) { return isScript(root, p) })
	if err != nil {
		return nil, fmt.Errorf("finish prefix: %w", err)
	}
	made, err := l.write(ctx, root, newest(files))
	if err != nil {
		return nil, fmt.Errorf("finish prefix: %w", err)
	}
	if err := restoreTimes(root, files); err != nil {
		return nil, fmt.Errorf("finish prefix: %w", err)
	}
	return made, nil
}

// plan lays out everything that stands around a tree. It writes nothing; script
// tells a script from other executable files.
func plan(t *tree, o Options, script func(treePath string) (bool, error)) (*layout, error) {
	l := newLayout(t)
	l.treeLinks()
	if err := l.binaries(o, script); err != nil {
		return nil, err
	}
	l.licenses()
	l.environmentFiles(o)
	l.hooks(o)
	l.rootLinks()
	return l, l.err
}

// isScript reports whether a file of the tree starts with "#!".
func isScript(root *os.Root, treePath string) (bool, error) {
	f, err := root.Open(treeDir + "/" + treePath)
	if err != nil {
		return false, fmt.Errorf("read the start of %s: %w", treePath, err)
	}
	defer f.Close()
	var head [2]byte
	_, err = io.ReadFull(f, head[:])
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the start of %s: %w", treePath, err)
	}
	return string(head[:]) == "#!", nil
}

// newest is the latest mtime of files, Unix seconds: the clock of a prefix.
func newest(files []manifest.File) int64 {
	var t int64
	for i := range files {
		t = max(t, files[i].MTime)
	}
	return t
}
