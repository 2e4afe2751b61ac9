package repack

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/rocm-nightly/rocm-nightly/wrap"
)

// system works out what /etc is to know of a bare tree.
func (m *maker) system() error {
	if m.o.Etc == "" {
		return nil
	}
	texts, err := wrap.SystemFiles(m.files, m.wrapOptions())
	if err != nil {
		return err
	}
	m.res.Etc = slices.Sorted(maps.Keys(texts))
	m.res.etc, m.res.at = texts, time.Unix(m.newest(), 0)
	return nil
}

// etcWriter puts files into a directory such as /etc, which may be there and in
// use: nothing is written over, and what was made can be taken back.
type etcWriter struct {
	root  *os.Root
	files []string // made, in order
	dirs  []string // made, outermost first
	above []string // directories made above dir and dir itself, outermost first
}

// writeEtc writes texts, by path below dir, for the tree that is about to
// appear. A file that is there with the same content is taken for done.
func writeEtc(dir string, texts map[string]string, mtime time.Time) (w *etcWriter, err error) {
	w = &etcWriter{}
	if len(texts) == 0 {
		return w, nil
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write into %s: %w", dir, err), w.takeBack())
		}
	}()
	w.above = missingDirs(dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return w, err
	}
	if w.root, err = os.OpenRoot(dir); err != nil {
		return w, err
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if err := w.write(name, texts[name]); err != nil {
			return w, err
		}
	}
	made := slices.Concat(w.files, w.dirs)
	if len(w.above) > 0 {
		made = append(made, ".")
		if err := w.root.Chmod(".", 0o755); err != nil {
			return w, err
		}
	}
	for _, name := range made {
		if err := w.root.Chtimes(name, mtime, mtime); err != nil {
			return w, err
		}
	}
	return w, nil
}

func (w *etcWriter) write(name, text string) error {
	if err := w.mkdir(path.Dir(name)); err != nil {
		return err
	}
	f, err := w.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return w.sameAs(name, text)
	}
	if err != nil {
		return err
	}
	w.files = append(w.files, name)
	_, err = f.WriteString(text)
	return errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
}

// sameAs is nil if a file is already what it is to be.
func (w *etcWriter) sameAs(name, text string) error {
	there, err := readSmall(w.root, name, int64(len(text)))
	if err != nil || string(there) != text {
		return fmt.Errorf("%s is there with another content: remove it, or name another directory with --etc", name)
	}
	return nil
}

// mkdir makes a directory and those above it.
func (w *etcWriter) mkdir(name string) error {
	if name == "." {
		return nil
	}
	if fi, err := w.root.Stat(name); err == nil && fi.IsDir() {
		return nil
	}
	if err := w.mkdir(path.Dir(name)); err != nil {
		return err
	}
	if err := w.root.Mkdir(name, 0o755); err != nil {
		return err
	}
	w.dirs = append(w.dirs, name)
	return w.root.Chmod(name, 0o755)
}

// close ends the work; what was made stays.
func (w *etcWriter) close() error {
	if w.root == nil {
		return nil
	}
	return w.root.Close()
}

// takeBack removes what was made.
func (w *etcWriter) takeBack() (err error) {
	if w.root != nil {
		for _, name := range w.files {
			err = errors.Join(err, w.root.Remove(name))
		}
		for _, name := range slices.Backward(w.dirs) {
			_ = w.root.Remove(name) // somebody else may use it by now
		}
		err = errors.Join(err, w.root.Close())
		w.root = nil
	}
	for _, name := range slices.Backward(w.above) {
		_ = os.Remove(name) // likewise
	}
	return err
}

// apart refuses an etc directory that is in the tree: it would be there before
// the tree is.
func apart(etc, dir string) error {
	abs, err := filepath.Abs(etc)
	if err != nil {
		return err
	}
	if rel, err := filepath.Rel(dir, abs); err == nil && filepath.IsLocal(rel) {
		return fmt.Errorf("--etc %s is in the tree that --prefix %s makes: name a directory outside it", etc, dir)
	}
	if fi, err := os.Stat(abs); err == nil && !fi.IsDir() {
		return fmt.Errorf("--etc %s is no directory", etc)
	}
	return nil
}
