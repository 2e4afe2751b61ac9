package bump

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/rocm-nightly/rocm-nightly/bump/pinfile"
)

// WriteCheckout edits files in a local checkout at dir and touches nothing
// else: no git, no network. It returns the values that changed. Targets
// without a pin are left out. Files are read and written below dir alone; a
// symlink in place of a file is refused. Nothing is written unless every edit
// of every file can be made; each file is then replaced by one rename, its
// mode kept.
func WriteCheckout(dir string, files []File, pins map[string]Pin) (_ []Edit, err error) {
	p, err := planFiles(files, pins)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open checkout: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	type change struct {
		path string
		mode fs.FileMode
		out  []byte
	}
	var changes []change
	var edits []Edit
	for _, w := range p.wants {
		src, mode, err := readRegular(root, w.path)
		if err != nil {
			return nil, err
		}
		out, es, err := w.edit(src)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(src, out) {
			changes = append(changes, change{w.path, mode, out})
			edits = append(edits, es...)
		}
	}
	for _, c := range changes {
		if err := replaceFile(root, c.path, c.mode, c.out); err != nil {
			return nil, err
		}
	}
	return edits, nil
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
