package wrap

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// The modes of what Finish makes.
const (
	modeDir  fs.FileMode = 0o755
	modeFile fs.FileMode = 0o444
	modeExec fs.FileMode = 0o555
)

// layout is what will be made, by path relative to the prefix.
type layout struct {
	tree  *tree
	names map[string][]string // of the tree's directories
	items map[string]item
	err   error // the first collision between two of our own
}

type item struct {
	kind manifest.Kind
	mode fs.FileMode
	data []byte
	link string
}

func newLayout(t *tree) *layout {
	return &layout{tree: t, names: t.children(), items: map[string]item{}}
}

func (l *layout) add(p string, it item) {
	if _, taken := l.items[p]; taken && l.err == nil {
		l.err = fmt.Errorf("lay out %s: it is there twice", p)
	}
	if d := parent(p); !strings.HasPrefix(p, treeDir+"/") {
		l.dir(d)
	}
	l.items[p] = it
}

// dir makes a directory and those above it.
func (l *layout) dir(p string) {
	for ; p != ""; p = parent(p) {
		l.items[p] = item{kind: manifest.Dir, mode: modeDir}
	}
}

func (l *layout) file(p string, mode fs.FileMode, content string) {
	l.add(p, item{kind: manifest.Regular, mode: mode, data: []byte(content)})
}

// link makes a relative symbolic link at p to a path, both in the prefix.
func (l *layout) link(p, target string) {
	l.add(p, item{kind: manifest.Symlink, link: relTo(p, target)})
}

// write makes everything, parents first, and returns it as manifest entries,
// sorted. mtime is in Unix seconds.
func (l *layout) write(ctx context.Context, root *os.Root, mtime int64) ([]manifest.File, error) {
	paths := slices.Sorted(maps.Keys(l.items))
	made := make([]manifest.File, 0, len(paths))
	for _, p := range paths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f, err := l.items[p].make(root, p)
		if err != nil {
			return nil, err
		}
		f.MTime = mtime
		made = append(made, f)
	}
	for _, p := range slices.Backward(paths) {
		if err := setTime(root, p, mtime); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// make creates one item. Nothing that exists is written over.
func (it item) make(root *os.Root, p string) (manifest.File, error) {
	f := manifest.File{Path: p, Kind: it.kind}
	switch it.kind {
	case manifest.Dir:
		f.Mode = manifest.Mode(it.mode)
		return f, errors.Join(root.Mkdir(p, it.mode), root.Chmod(p, it.mode))
	case manifest.Symlink:
		f.Link = it.link
		return f, root.Symlink(it.link, p)
	}
	sum := sha256.Sum256(it.data)
	f.Mode, f.Size, f.SHA256 = manifest.Mode(it.mode), int64(len(it.data)), hex.EncodeToString(sum[:])
	return f, writeNew(root, p, it.mode, it.data)
}

func writeNew(root *os.Root, p string, mode fs.FileMode, data []byte) error {
	f, err := root.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode|0o200)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Chmod(mode), f.Close())
}

// setTime sets the mtime of a file, directory or link, never following a link.
func setTime(root *os.Root, p string, mtime int64) error {
	dir, err := root.Open(path.Dir(p))
	if err != nil {
		return err
	}
	defer dir.Close()
	// Not by way of nanoseconds: 64 bits of them end in the year 2262, and what a
	// tarball says is a second of any year.
	ts, err := unix.TimeToTimespec(time.Unix(mtime, 0))
	if err != nil {
		return &fs.PathError{Op: "set time of", Path: p, Err: err}
	}
	if err := unix.UtimesNanoAt(int(dir.Fd()), path.Base(p), []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &fs.PathError{Op: "set time of", Path: p, Err: err}
	}
	return nil
}

// restoreTimes gives the tree's own directory its time back, which the links
// added to it have changed.
func restoreTimes(root *os.Root, files []manifest.File) error {
	for i := range files {
		if files[i].Path == treeDir && files[i].MTime != 0 {
			return setTime(root, treeDir, files[i].MTime)
		}
	}
	return nil
}
