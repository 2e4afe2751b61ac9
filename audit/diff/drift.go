package diff

import (
	"context"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// current puts what is on the disk in place of what the list says, where they
// differ: a list tells what was installed, and somebody may have edited, removed
// or added files since. A file with the size and time of the list is believed;
// one with another time is read, for copies lose their times.
func (s *side) current(ctx context.Context, all []file, jobs int) ([]file, error) {
	l := &listing{by: make(map[string]*file, len(all)), linked: map[string]bool{}}
	for i := range all {
		f := &all[i]
		l.by[f.Path] = f
		if f.Same != "" {
			l.linked[f.Path], l.linked[f.Same] = true, true
		}
	}
	found, closed, err := s.walk(ctx, jobs, l)
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool, len(found))
	for i := range found {
		f := &found[i]
		if seen[f.Path] = true; l.by[f.Path] == nil && f.Kind != manifest.Dir && !ownList(f.Path) {
			s.drifted(f.Path)
		}
	}
	for i := range all {
		f := &all[i]
		switch {
		case seen[f.Path]:
		case slices.ContainsFunc(closed, func(dir string) bool { return strings.HasPrefix(f.Path, dir+"/") }):
			found = append(found, *f)
		default:
			s.drifted(f.Path)
		}
	}
	return found, nil
}

func (s *side) drifted(p string) {
	s.notes.add("not as the files.jsonl of "+s.Name+" has them, and compared as they are now", p, nil)
}

// listing is what a walk knows of a tree before.
type listing struct {
	by     map[string]*file
	linked map[string]bool // names that share an inode with others
}

// untouched is what the list says of a name of an open directory, if one look at
// it shows that it is still so; nil otherwise.
func (w *walker) untouched(dir *os.File, p string) *file {
	if w.listed == nil {
		return nil
	}
	was := w.listed.by[p]
	if was == nil || w.listed.linked[p] {
		return nil
	}
	var st unix.Stat_t
	if unix.Fstatat(int(dir.Fd()), path.Base(p), &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return nil
	}
	is := *was
	switch kind := st.Mode & unix.S_IFMT; {
	case kind == unix.S_IFDIR && was.Kind == manifest.Dir:
	case kind == unix.S_IFREG && was.regular() && was.SHA256 != "" && was.Size == st.Size && was.MTime == st.Mtim.Sec:
	default:
		return nil
	}
	is.Mode = manifest.Mode(st.Mode & 0o7777)
	return &is
}

// settled is what the list says of a name, if that is still so; nil otherwise.
func (w *walker) settled(f *file, fi fs.FileInfo) *file {
	if w.listed == nil {
		return nil
	}
	was := w.listed.by[f.Path]
	if was == nil || was.Kind != f.Kind {
		return nil
	}
	is := *was
	if first := w.listed.by[was.Same]; was.Same != "" && first != nil {
		// Which names are still one file, the walk finds out.
		is.Same, is.Size, is.MTime, is.SHA256, is.Before, is.ELF = "", first.Size, first.MTime, first.SHA256, first.Before, first.ELF
	}
	switch f.Kind {
	case manifest.Dir:
		is.Mode = f.Mode
		return &is
	case manifest.Symlink:
		if is.Link != f.Link {
			return nil
		}
		return &is
	case manifest.Regular:
	default:
		return nil
	}
	if is.Size != f.Size || is.SHA256 == "" {
		return nil
	}
	if is.MTime != fi.ModTime().Unix() {
		if digest, err := w.side.digest(f.Path); err != nil || digest != is.SHA256 {
			return nil
		}
	}
	is.Mode = f.Mode
	if w.listed.linked[f.Path] {
		w.several(f.Path, fi)
	}
	return &is
}

// drift notes a name that is not as the list has it.
func (w *walker) drift(f *file) {
	if w.listed == nil || w.listed.by[f.Path] == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.side.drifted(f.Path)
}
