package bump

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/rocm-nightly/rocm-nightly/bump/forge"
	"github.com/rocm-nightly/rocm-nightly/bump/pinfile"
)

// Write edits the files of repo in a local checkout at dir and touches nothing
// else: no git, no network. Result has Edits, Diff, and what a request would be
// called. Targets without a pin are left out. Files are read and written below
// dir alone; a symlink in place of a file is refused. Nothing is written unless
// every edit of every file can be made; each file is then replaced by one
// rename, its mode kept. Of the options, DryRun, Migrate and Older
// count. Errors are those of Run that have to do with files.
func Write(dir string, repo Repo, pins map[string]Pin, o Options) (_ *Result, err error) {
	repo, o = withDefaults(repo, o)
	p, err := planFiles(repo.Files, pins)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open checkout: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	modes := map[string]fs.FileMode{}
	read := func(_ context.Context, path string) (forge.File, error) {
		text, mode, err := readRegular(root, path)
		if err == nil {
			modes[path] = mode
		}
		return forge.File{Path: path, Mode: "100644", Text: text}, err
	}
	c, err := makeChange(context.Background(), p, read, o.Migrate)
	if err != nil {
		return nil, err
	}
	if c.older != "" && !o.Older {
		return &Result{Skipped: p.missing, Action: ActionNone, Message: c.older}, nil
	}
	res := &Result{Changed: len(c.files) > 0, Edits: c.edits, Diff: c.diff, Skipped: p.missing, Action: ActionNone, Message: "the pins are these already"}
	if !res.Changed {
		return res, nil
	}
	res.Title = titleOf(c.edits, c.pins)
	res.Message = fmt.Sprintf("changed %d values in %d files", len(c.edits), len(c.files))
	if o.DryRun {
		res.Message = fmt.Sprintf("would change %d values in %d files", len(c.edits), len(c.files))
		return res, nil
	}
	for _, f := range c.files {
		mode, there := modes[f.Path]
		if !there {
			mode = 0o644
		}
		if err := replaceFile(root, f.Path, mode, f.Text); err != nil {
			return nil, err
		}
	}
	return res, nil
}

// readRegular reads a regular file that is no larger than an edit takes.
func readRegular(root *os.Root, name string) (_ []byte, _ fs.FileMode, err error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("read %s: it is %s, not a regular file", name, describe(info.Mode()))
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	opened, err := f.Stat()
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", name, err)
	}
	if !os.SameFile(info, opened) {
		return nil, 0, fmt.Errorf("read %s: it changed while it was opened", name)
	}
	src, err := io.ReadAll(io.LimitReader(f, pinfile.MaxLen+1))
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", name, err)
	}
	return src, info.Mode().Perm(), nil
}

func describe(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeSymlink != 0:
		return "a symlink"
	}
	return "a device, socket or pipe"
}

// replaceFile writes beside name and renames, so that a reader sees the old
// or the new file.
func replaceFile(root *os.Root, name string, mode fs.FileMode, data []byte) error {
	temp := path.Join(path.Dir(name), ".rocm-nightly-"+path.Base(name))
	if err := root.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write %s: %w", name, err)
	}
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, errors.Join(err, root.Remove(temp)))
	}
	return nil
}
