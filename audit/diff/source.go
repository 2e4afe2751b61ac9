package diff

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// ErrNotTree is matched when a directory is neither a prefix nor a ROCm tree.
var ErrNotTree = errors.New("neither a prefix nor a ROCm tree: it has no opt/rocm, no bin and no lib")

// Source is one side of a comparison.
type Source struct {
	// Name is what the report calls it; "" is Dir.
	Name string
	// Dir is a prefix (it has opt/rocm) or a bare ROCm tree. It may also hold
	// nothing but List and a manifest.json, or what Record returns: then contents
	// are not compared.
	Dir string
	// List is the name of the files.jsonl in Dir, which is believed. "" takes
	// files.jsonl where there is one, for what it still tells of the tree: what
	// was changed since is read. Without one all of the tree is read.
	List string
}

// rocmDir is where a prefix has its ROCm tree.
const rocmDir = "opt/rocm"

// maxEntries bounds a tree: AMD's have about 30,000 files.
const maxEntries = 1 << 20

// errTooMany stops the reading of a tree that would fill the memory.
var errTooMany = fmt.Errorf("it has more than %d names", maxEntries)

// file is one name of a ROCm tree.
type file struct {
	manifest.File
	err error // why it could not be read
}

// other is the kind of a name that is no file, directory or symlink.
const other manifest.Kind = "other"

func (f *file) regular() bool { return f.Kind == manifest.Regular }

// loads tells whether f is a dynamic object that processors load.
func (f *file) loads() bool {
	return f.ELF != nil && f.ELF.Dynamic && f.ELF.Machine != "amdgpu"
}

// host is loads, for one name of each object.
func (f *file) host() bool { return f.loads() && f.Same == "" }

// side is one of the two trees, read.
type side struct {
	Side
	root   *os.Root // of the directory that was named
	rocm   string   // the ROCm tree in it: rocmDir or ""
	here   bool     // the tree itself is there, so that contents can be read
	files  []file   // of the ROCm tree, sorted
	byPath map[string]*file
	beside map[string]*file // of a prefix: what is outside of its ROCm tree
	libs   map[string]bool  // names that a NEEDED can mean: SONAMEs and names of files
	rock   *rockManifest
	texts  map[string][]byte // of a record, by path; nil until they were read
	notes  notes
}

// openSide reads the names of one side.
func openSide(ctx context.Context, src Source, jobs int) (*side, error) {
	dir, err := filepath.Abs(src.Dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	s := &side{root: root, byPath: map[string]*file{}, beside: map[string]*file{}, libs: map[string]bool{}}
	if s.Name = src.Name; s.Name == "" {
		s.Name = src.Dir
	}
	if err := s.read(ctx, src.List, jobs); err != nil {
		root.Close() // opened for reading
		return nil, err
	}
	return s, nil
}

func (s *side) read(ctx context.Context, list string, jobs int) error {
	s.Layout = "tree"
	if fi, err := s.root.Stat(rocmDir); err == nil && fi.IsDir() {
		s.rocm, s.Layout, s.here = rocmDir, "root", true
	} else if isDir(s.root, "bin") || isDir(s.root, "lib") {
		s.here = true
	}
	all, err := s.readList(list)
	switch {
	case err == nil:
		if s.Listed = true; list == "" && s.here {
			all, err = s.current(ctx, all, jobs)
		}
		if err != nil {
			return err
		}
	case list != "" || !errors.Is(err, fs.ErrNotExist):
		return err
	case !s.here:
		return fmt.Errorf("%w; name one, or its files.jsonl", ErrNotTree)
	default:
		if all, _, err = s.walk(ctx, jobs, nil); err != nil {
			return err
		}
	}
	if err := s.readManifest(); err != nil {
		return err
	}
	return s.place(all)
}

func isDir(root *os.Root, name string) bool {
	fi, err := root.Stat(name)
	return err == nil && fi.IsDir()
}

// readList reads a files.jsonl.
func (s *side) readList(name string) ([]file, error) {
	if name == "" {
		name = manifest.FilesName
	}
	f, err := s.openList(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []file
	err = manifest.EachFile(io.LimitReader(f, maxListBytes), nil, func(m *manifest.File) error {
		if !fs.ValidPath(m.Path) || m.Path == "." {
			return fmt.Errorf("read %s: %.200q is no path", name, m.Path)
		}
		if len(all) >= maxEntries {
			return errTooMany
		}
		m.Size = max(m.Size, 0)
		all = append(all, file{File: *m})
		return nil
	})
	return all, err
}

// readManifest reads manifest.json, if there is one.
func (s *side) readManifest() error {
	f, err := s.open(manifest.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	m, err := manifest.Read(f)
	if err != nil && !s.Listed {
		s.notes.add("manifest.json of "+s.Name, "", err) // any tree may have a file of that name
		return nil
	}
	if err != nil {
		return err
	}
	s.Version, s.Digest, s.Recipe = m.Version, m.Digest, m.Recipe
	for rule := range m.Omitted {
		s.Omitted = append(s.Omitted, rule)
	}
	slices.Sort(s.Omitted)
	return nil
}

// place sorts names into those of the ROCm tree and those beside it.
func (s *side) place(all []file) error {
	if s.Listed && s.rocm == "" && slices.ContainsFunc(all, func(f file) bool { return strings.HasPrefix(f.Path, rocmDir+"/") }) {
		s.rocm, s.Layout = rocmDir, "root"
	}
	s.files = make([]file, 0, len(all))
	for i := range all {
		f := &all[i]
		if s.rocm == "" {
			if f.Path != manifest.Name && f.Path != manifest.FilesName && f.Path != manifest.OmittedName {
				s.files = append(s.files, *f)
			}
			continue
		}
		in, ok := strings.CutPrefix(f.Path, s.rocm+"/")
		if !ok {
			s.beside[f.Path] = f
			continue
		}
		f.Path = in
		if same, ok := strings.CutPrefix(f.Same, s.rocm+"/"); ok {
			f.Same = same
		}
		s.files = append(s.files, *f)
	}
	slices.SortStableFunc(s.files, func(a, b file) int { return strings.Compare(a.Path, b.Path) })
	s.files = slices.CompactFunc(s.files, func(a, b file) bool { return a.Path == b.Path })
	return s.index()
}

// index makes what is looked up by name.
func (s *side) index() error {
	for i := range s.files {
		f := &s.files[i]
		s.byPath[f.Path] = f
		switch f.Kind {
		case manifest.Regular:
			s.Files++
			if f.Same == "" {
				s.Bytes += f.Size
			}
		case manifest.Symlink:
			s.Links++
		}
		if f.ELF != nil && f.ELF.Soname != "" {
			s.libs[f.ELF.Soname] = true
		}
	}
	for i := range s.files {
		f := &s.files[i]
		if base := path.Base(f.Path); strings.Contains(base, ".so") && f.Kind != manifest.Dir && !s.dangling(f) {
			s.libs[base] = true
		}
		// A hard link has the content of its first name.
		if first := s.byPath[f.Same]; f.Same != "" && first != nil && f.SHA256 == "" {
			f.SHA256, f.Before, f.Size = first.SHA256, first.Before, first.Size
		}
	}
	if s.Files == 0 && len(s.beside) == 0 {
		return fmt.Errorf("%w; name one, or its files.jsonl", ErrNotTree)
	}
	return nil
}

// follow finds the file that a name of the ROCm tree leads to, nil if there is
// none or if it leads through a link to a directory.
func (s *side) follow(p string) *file {
	const maxHops = 40 // path_resolution(7)
	f := s.byPath[p]
	for range maxHops {
		if f == nil || f.Kind != manifest.Symlink {
			return f
		}
		f = s.byPath[path.Join(path.Dir(f.Path), f.Link)]
	}
	return nil
}

// dangling tells whether a link leads to a name that is not in its directory,
// though the directory is there.
func (s *side) dangling(f *file) bool {
	if f.Kind != manifest.Symlink || path.IsAbs(f.Link) || s.follow(f.Path) != nil {
		return false
	}
	for range 40 {
		next := path.Join(path.Dir(f.Path), f.Link)
		g := s.byPath[next]
		if g == nil {
			dir := s.byPath[path.Dir(next)]
			return path.Dir(next) == "." || dir != nil && dir.Kind == manifest.Dir
		}
		f = g
		if f.Kind != manifest.Symlink || path.IsAbs(f.Link) {
			return false
		}
	}
	return true
}

// finds tells whether a library is found under a name.
func (s *side) finds(p string) bool {
	f := s.byPath[p]
	return f != nil && !s.dangling(f)
}

// open opens a regular file by its name in the directory. Links are not
// followed to it, and a pipe is not waited for.
func (s *side) open(name string) (*os.File, error) {
	f, err := s.root.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		f.Close() // opened for reading
		return nil, &fs.PathError{Op: "open", Path: name, Err: cmpErr(err, errNotRegular)}
	}
	return f, nil
}

var errNotRegular = errors.New("not a regular file")

// errNoContent is why nothing can be read of a side that is a list alone.
var errNoContent = errors.New("there is a list of files, but not the files")

func cmpErr(err, instead error) error {
	if err != nil {
		return err
	}
	return instead
}

// openIn opens a regular file of the ROCm tree.
func (s *side) openIn(p string) (*os.File, error) {
	if !s.here {
		return nil, errNoContent
	}
	return s.open(path.Join(s.rocm, p))
}

// text reads a file of the ROCm tree that is at most limit bytes long.
func (s *side) text(p string, limit int64) ([]byte, error) {
	if !s.here {
		return s.kept(p)
	}
	f, err := s.openIn(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return bounded(f, limit)
}
