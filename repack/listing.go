package repack

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// checkList tells whether files are those of a prefix that Into could have
// made: sorted, each in a directory that comes before it, and with nothing in
// them that leads elsewhere.
func checkList(files []manifest.File, entries int, bytes int64) error {
	if bytes <= 0 {
		bytes = maxBytes
	}
	byPath := make(map[string]*manifest.File, len(files))
	tree := 0
	for i := range files {
		f := &files[i]
		if i > 0 && f.Path <= files[i-1].Path {
			return fmt.Errorf("%q is not in its place", f.Path)
		}
		if err := checkEntry(f); err != nil {
			return fmt.Errorf("%q: %w", f.Path, err)
		}
		if d := byPath[path.Dir(f.Path)]; path.Dir(f.Path) != "." && (d == nil || d.Kind != manifest.Dir) {
			return fmt.Errorf("%q is in no directory", f.Path)
		}
		byPath[f.Path] = f
		if inTree(f.Path) {
			tree++
		}
		if f.Kind == manifest.Regular && f.Same == "" {
			if f.Size > bytes {
				return errors.New("the files have more bytes than unpack.max_bytes allows")
			}
			bytes -= f.Size
		}
	}
	// The tree's own directory is no entry of the tarball.
	if byPath[treeDir] == nil || byPath[treeDir].Kind != manifest.Dir || tree-1 > entries {
		return fmt.Errorf("it has %d files in %s", tree, treeDir)
	}
	return checkTwins(files, byPath)
}

var sumForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// checkEntry tells whether an entry has what its kind has, and no more.
func checkEntry(f *manifest.File) error {
	mode := fs.FileMode(f.Mode)
	plain := f.Link == "" && f.Size >= 0 && (mode == 0o444 || mode == 0o555) && sumForm.MatchString(f.SHA256)
	empty := f.Size == 0 && f.SHA256 == "" && f.Before == "" && f.Same == "" && f.Edits == nil && f.ELF == nil
	switch {
	case !fs.ValidPath(f.Path) || f.Path == "." || len(f.Path) > maxName || strings.ContainsRune(f.Path, 0):
		return errors.New("it is no path")
	case f.MTime < 0 || f.Path == manifest.Name || f.Path == manifest.FilesName || f.Path == manifest.OmittedName:
	case f.Kind == manifest.Regular && plain:
		return nil
	case f.Kind == manifest.Dir && empty && f.Link == "" && mode == 0o755:
		return nil
	case f.Kind == manifest.Symlink && empty && mode == 0 && f.Link != "" && !path.IsAbs(f.Link) && !strings.ContainsRune(f.Link, 0):
		return nil
	}
	return errors.New("no prefix has such an entry")
}

// checkTwins tells whether the names of each inode agree.
func checkTwins(files []manifest.File, byPath map[string]*manifest.File) error {
	for i := range files {
		f := &files[i]
		if f.Same == "" {
			continue
		}
		first := byPath[f.Same]
		if first == nil || first.Kind != manifest.Regular || first.Same != "" || !inTree(f.Path) || !inTree(first.Path) ||
			first.SHA256 != f.SHA256 || first.Size != f.Size || first.Mode != f.Mode || first.MTime != f.MTime {
			return fmt.Errorf("%q is not the same as %q", f.Path, f.Same)
		}
	}
	return nil
}

// matches compares what is on disk with its entry in the manifest. Of a link
// only the kind is compared; the time is, of regular files.
func matches(fi fs.FileInfo, f *manifest.File) error {
	kind := map[manifest.Kind]fs.FileMode{manifest.Regular: 0, manifest.Dir: fs.ModeDir, manifest.Symlink: fs.ModeSymlink}
	switch {
	case fi.Mode().Type() != kind[f.Kind]:
		return fmt.Errorf("%s is no %s any more", f.Path, f.Kind)
	case f.Kind == manifest.Symlink:
		return nil
	case fi.Mode() != fs.FileMode(f.Mode)|kind[f.Kind]:
		return fmt.Errorf("%s has mode %v, not %v", f.Path, fi.Mode(), fs.FileMode(f.Mode))
	case f.Kind == manifest.Dir:
		return nil
	case fi.Size() != f.Size:
		return fmt.Errorf("%s has %d bytes, not %d", f.Path, fi.Size(), f.Size)
	case !fi.ModTime().Equal(time.Unix(f.MTime, 0)):
		return fmt.Errorf("%s was written to after it was made", f.Path)
	}
	return nil
}
