package unpack

import (
	"archive/tar"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// read walks the archive and feeds the writers.
func (u *unpacker) read(r io.Reader) error {
	s, err := newStream(u.ctx, r, u.o.Limits, u.o.Decompressor)
	if err != nil {
		return err
	}
	defer s.Close()
	u.src = s
	tr := tar.NewReader(s)
	for {
		hdr, err := tr.Next()
		if err == io.EOF {
			err := s.finish()
			u.checks, u.engine = s.checks(), s.engine
			return err
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) { // of names we judge ourselves
			return fmt.Errorf("unpack: read entry %d of the tarball: %w", u.entries+1, truncated(err))
		}
		if err := u.entry(hdr, tr); err != nil {
			return err
		}
	}
}

// truncated marks the errors by which a stream that was cut shows itself.
func truncated(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, ErrTruncated) {
		return fmt.Errorf("%w: %w", ErrTruncated, err)
	}
	return err
}

// entry handles one entry of the archive.
func (u *unpacker) entry(hdr *tar.Header, content io.Reader) error {
	if u.entries++; u.entries > u.o.Limits.MaxEntries {
		return &EntryError{hdr.Name, u.tooMany()}
	}
	if hdr.Typeflag == tar.TypeXGlobalHeader {
		if err := global(hdr); err != nil {
			return &EntryError{hdr.Name, err}
		}
		return nil
	}
	name, err := cleanName(hdr.Name)
	if err == nil {
		err = oneReading(hdr)
	}
	if err != nil {
		return &EntryError{hdr.Name, err}
	}
	if err := u.kind(name, hdr, content); err != nil {
		var ee *EntryError
		if errors.As(err, &ee) {
			return err
		}
		return &EntryError{hdr.Name, err}
	}
	return nil
}

func (u *unpacker) kind(name string, hdr *tar.Header, content io.Reader) error {
	switch hdr.Typeflag {
	case tar.TypeDir:
		return u.dir(name, hdr)
	case tar.TypeReg, tar.TypeGNUSparse, tar.TypeCont:
		if err := u.file(name, hdr, content); err != nil {
			return err
		}
		return used(content)
	case tar.TypeSymlink:
		return u.symlink(name, hdr)
	case tar.TypeLink:
		target, err := cleanName(hdr.Linkname)
		if err != nil {
			return fmt.Errorf("hard link to %.200q: %w", hdr.Linkname, err)
		}
		if err := u.remember(target); err != nil {
			return err
		}
		return u.link(link{path: name, target: target, hard: true, mtime: clampTime(hdr.ModTime)})
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		return fmt.Errorf("%w: a device or FIFO has no place in a ROCm", ErrRefused)
	}
	return fmt.Errorf("%w: entry of unknown type %q", ErrRefused, hdr.Typeflag)
}

// used tells whether a file has been read to the end of what is stored of it:
// a sparse one may have more than its map gives a place to.
func used(content io.Reader) error {
	if _, err := content.Read(nil); err != nil && err != io.EOF {
		return err
	}
	return nil
}

// symlink takes a symlink for later.
func (u *unpacker) symlink(name string, hdr *tar.Header) error {
	target, err := cleanTarget(hdr.Linkname)
	if err = cmp.Or(err, u.remember(target)); err != nil {
		return err
	}
	return u.link(link{path: name, target: target, mtime: clampTime(hdr.ModTime)})
}

// dir makes a directory, or takes over one that a file implied.
func (u *unpacker) dir(name string, hdr *tar.Header) error {
	if name == "." {
		return nil // the prefix's own mode is not the builder's to choose
	}
	if was := u.nodes[name]; was != nil && was.Kind != manifest.Dir {
		return fmt.Errorf("%w: it is already a %s", ErrRefused, was.Kind)
	}
	reason := u.omit(name, manifest.Dir, 0)
	if err := u.mkdir(name, reason != ""); err != nil {
		return err
	}
	if _, absent := u.omitted[name]; absent {
		u.omitted[name] = reason
	}
	u.nodes[name].MTime = clampTime(hdr.ModTime)
	return nil
}

// mkdir makes name and its parents. Each becomes an entry of the result once.
// It calls itself maxDepth times at most. For what is omitted the names are
// taken alone, until something that is kept needs them.
func (u *unpacker) mkdir(name string, omitted bool) error {
	was := u.nodes[name]
	_, absent := u.omitted[name]
	switch {
	case was != nil && was.Kind != manifest.Dir:
		return fmt.Errorf("%w: its parent %q is not a directory", ErrRefused, name)
	case was != nil && (omitted || !absent):
		return nil
	}
	if err := u.mkdir(path.Dir(name), omitted); err != nil {
		return err
	}
	if was == nil {
		if err := u.add(name, &manifest.File{Path: name, Kind: manifest.Dir, Mode: dirMode}); err != nil {
			return err
		}
	}
	if omitted {
		u.omitted[name] = ""
		return nil
	}
	delete(u.omitted, name)
	return u.makeDir(name)
}

// makeDir makes a directory whose parent is there.
func (u *unpacker) makeDir(name string) error {
	in, err := u.dirs.open(path.Dir(name))
	if err != nil {
		return err
	}
	if err := in.mkdir(path.Base(name), dirMode); err != nil {
		return err
	}
	if !u.probed {
		exact, err := in.has(path.Base(name), unix.S_IFDIR|dirMode)
		if err != nil {
			return err
		}
		u.probed = true
		u.plainModes.Store(exact)
	}
	if u.plainModes.Load() {
		return nil
	}
	return u.root.Chmod(name, dirMode) // whatever the umask says
}

// dirMode is the mode of all directories. Files have less of it.
const dirMode = 0o755

// claim takes f's name for it, which is omitted for a reason that is not "".
func (u *unpacker) claim(f *manifest.File, reason string) error {
	if f.Path == "." {
		return fmt.Errorf("%w: the root of the archive is not a directory", ErrRefused)
	}
	if was := u.nodes[f.Path]; was != nil {
		return fmt.Errorf("%w: it is already a %s: listed twice", ErrRefused, was.Kind)
	}
	if err := u.mkdir(path.Dir(f.Path), reason != ""); err != nil {
		return err
	}
	if reason != "" {
		u.omitted[f.Path] = reason
	}
	return u.add(f.Path, f)
}

// add puts a new name into the tree: one that an entry gives or implies, since
// an entry of a few bytes can imply many directories.
func (u *unpacker) add(name string, f *manifest.File) error {
	if len(u.nodes) > u.o.Limits.MaxEntries { // "." is one of them
		return u.tooMany()
	}
	u.nodes[name] = f
	return u.remember(name)
}

// remember counts a name or link target that stays in memory. They could fill
// it long before there are too many entries.
func (u *unpacker) remember(text string) error {
	if u.text += int64(len(text)); u.text > u.o.Limits.maxText() {
		return fmt.Errorf("%w: names and link targets of more than %d bytes in all (raise unpack.max_entries if this is right)", ErrRefused, u.o.Limits.maxText())
	}
	return nil
}

func (u *unpacker) tooMany() error {
	return fmt.Errorf("%w: more than %d entries, implied directories counted (raise unpack.max_entries if this is right)", ErrRefused, u.o.Limits.MaxEntries)
}
