package aur

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxFile bounds what is read of a file that is there, in bytes. The AUR takes
// none that is longer.
const maxFile = 250 << 10

// beside are names that an empty checkout of the AUR may have.
var beside = []string{".git", ".gitignore", "LICENSE", "LICENSES", "REUSE.toml"}

// NotOursError says that a directory has files that Write would not touch.
type NotOursError struct {
	Dir  string
	Name string // of the first of them
	Why  string
}

func (e *NotOursError) Error() string {
	return fmt.Sprintf("%s is left alone: %s %s (--force writes over files, and leaves the others)", e.Dir, e.Name, e.Why)
}

// Write writes the three files into dir, which it makes, and returns the names
// of those that changed. dir must hold nothing else than a fresh checkout has,
// or files of ours; with force it may, and files are written over. Symbolic
// links are never followed, nor replaced.
//
// Of a PKGBUILD that is there, the lines that name maintainers are kept. Where
// the version stays and something else changes, pkgrel is counted up.
func (p *Package) Write(dir string, force bool) (changed []string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("write the package: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("write the package: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	old, err := p.look(root, dir, force)
	if err != nil {
		return nil, err
	}
	p.follow(old)
	for _, f := range []struct {
		name string
		text []byte
	}{{p.installName(), p.Install()}, {"PKGBUILD", p.PKGBUILD()}, {".SRCINFO", p.SRCINFO()}} {
		if bytes.Equal(old[f.name], f.text) {
			continue
		}
		if err := replace(root, f.name, f.text); err != nil {
			return changed, fmt.Errorf("write %s/%s: %w", dir, f.name, err)
		}
		changed = append(changed, f.name)
	}
	return changed, nil
}

// look reads those of the three files that are there, and refuses a directory
// that is somebody else's.
func (p *Package) look(root *os.Root, dir string, force bool) (map[string][]byte, error) {
	old := map[string][]byte{}
	for _, name := range []string{"PKGBUILD", p.installName(), ".SRCINFO"} {
		text, err := read(root, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, fmt.Errorf("write the package: %s/%s: %w", dir, name, err)
		default:
			old[name] = text
		}
	}
	if force {
		return old, nil
	}
	if text, there := old["PKGBUILD"]; there {
		switch name := assigned(text, "pkgname"); {
		case !bytes.Contains(text, []byte("\n"+marker+"\n")):
			return nil, &NotOursError{dir, "PKGBUILD", "was not written by rocm-nightly"}
		case name != p.Name:
			return nil, &NotOursError{dir, "PKGBUILD", fmt.Sprintf("is that of %.100q, not of %s", name, p.Name)}
		}
		return old, nil
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("write the package: %w", err)
	}
	for _, e := range entries {
		if !slices.Contains(beside, e.Name()) {
			return nil, &NotOursError{dir, fmt.Sprintf("%.100q", e.Name()), "is in it"}
		}
	}
	return old, nil
}

// read reads a regular file.
func read(root *os.Root, name string) ([]byte, error) {
	fi, err := root.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case !fi.Mode().IsRegular():
		return nil, errors.New("is no regular file: remove it")
	case fi.Size() > maxFile:
		return nil, fmt.Errorf("is longer than %d bytes: remove it", maxFile)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	return text, errors.Join(err, f.Close())
}

// replace writes a file beside its place and moves it there: whoever reads sees
// the old text or the new.
func replace(root *os.Root, name string, text []byte) error {
	tmp := name + ".rocm-nightly-new"
	if err := root.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = root.Rename(tmp, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(tmp))
	}
	return nil
}

// maintainerRE matches the comments that say who to turn to.
var maintainerRE = regexp.MustCompile(`(?m)^# (?:Maintainer|Contributor): [^\r\n]{1,200}$`)

// maxMaintainers bounds how many are kept.
const maxMaintainers = 50

// follow takes over what stays of the files that are there.
func (p *Package) follow(old map[string][]byte) {
	was := old["PKGBUILD"]
	p.maintainers = nil
	for _, m := range maintainerRE.FindAll(was, maxMaintainers) {
		p.maintainers = append(p.maintainers, string(m))
	}
	p.Release = 1
	if assigned(was, "pkgver") != p.Version {
		return
	}
	n, err := strconv.Atoi(assigned(was, "pkgrel"))
	if err != nil || n < 1 || n > 1e6 {
		return
	}
	p.Release = n
	if !bytes.Equal(p.PKGBUILD(), was) || !bytes.Equal(p.Install(), old[p.installName()]) {
		p.Release++
	}
}

// assigned returns the plain value of NAME=VALUE, "" if there is none.
func assigned(text []byte, name string) string {
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, name+"="); ok {
			return strings.Trim(strings.TrimSpace(v), `'"`)
		}
	}
	return ""
}
