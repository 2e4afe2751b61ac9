package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/fault"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// swap is a directory in the staged tree in which hard links wait until all
// are made and files.jsonl is written anew. Only then they are renamed over
// the files that they replace: until then nothing of the tree has changed, and
// whatever fails can be left.
type swap struct {
	root *os.Root
	name string
	dir  *os.File
	time time.Time // of the tree's own directory, before

	mu    sync.Mutex // for what follows
	wants []*want
	temps [][]string // of each want, one for each of its names
	next  int
	list  string // the new files.jsonl, "" if it did not change
}

const swapPrefix = ".reuse-"

func newSwap(root *os.Root) (*swap, error) {
	fi, err := root.Stat(".")
	if err != nil {
		return nil, err
	}
	s := &swap{root: root, name: swapPrefix + random(), time: fi.ModTime()}
	if err := root.Mkdir(s.name, 0o700); err != nil {
		return nil, err
	}
	if s.dir, err = root.Open(s.name); err != nil {
		return nil, errors.Join(err, root.Remove(s.name))
	}
	return s, nil
}

// add makes one link for each name of w, or none.
func (s *swap) add(w *want, link func(dir *os.File, name string) error) error {
	s.mu.Lock()
	first := s.next
	s.next += len(w.names)
	s.mu.Unlock()
	if err := fault.Point("store.reuse.link"); err != nil {
		return err
	}
	var temps []string
	for i := range w.names {
		temp := path.Join(s.name, strconv.Itoa(first+i))
		if err := link(s.dir, path.Base(temp)); err != nil {
			for _, made := range temps {
				// What stays is removed with the directory.
				_ = s.root.Remove(made)
			}
			return err
		}
		temps = append(temps, temp)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wants, s.temps = append(s.wants, w), append(s.temps, temps)
	return nil
}

// relist writes the new files.jsonl, which has the times of the links.
func (s *swap) relist(files []manifest.File) (err error) {
	changed := false
	for _, w := range s.wants {
		changed = changed || w.mtime != w.file.MTime
	}
	if !changed {
		return nil
	}
	old, err := s.root.Lstat(manifest.FilesName)
	if err != nil {
		return err
	}
	was := make([]int64, len(s.wants))
	for i, w := range s.wants {
		was[i] = w.file.MTime
		setTimes(w, w.mtime)
	}
	defer func() {
		if err != nil {
			for i, w := range s.wants {
				setTimes(w, was[i])
			}
		}
	}()
	name := path.Join(s.name, manifest.FilesName)
	if err := fault.Point("store.reuse.list"); err != nil {
		return err
	}
	if err := s.write(name, files, old); err != nil {
		return err
	}
	s.list = name
	return nil
}

func setTimes(w *want, unix int64) {
	for _, f := range w.names {
		f.MTime = unix
	}
}

// write makes a files.jsonl with the mode and time of the old one.
func (s *swap) write(name string, files []manifest.File, old fs.FileInfo) (err error) {
	f, err := s.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := manifest.WriteFiles(f, files); err != nil {
		return err
	}
	if err := f.Chmod(old.Mode().Perm()); err != nil {
		return err
	}
	return s.root.Chtimes(name, old.ModTime(), old.ModTime())
}

// place is a link that waits, and the name that it is to have.
type place struct {
	temp      string // in the swap's directory
	dir, name string
}

// commit puts everything in its place. After an error the tree is not whole:
// renames in a directory that was just written to fail when the disk does.
func (s *swap) commit() error {
	if err := fault.Point("store.reuse.commit"); err != nil {
		return err
	}
	var places []place
	for i, w := range s.wants {
		for j, f := range w.names {
			places = append(places, place{path.Base(s.temps[i][j]), path.Dir(f.Path), path.Base(f.Path)})
		}
	}
	if s.list != "" {
		places = append(places, place{path.Base(s.list), ".", manifest.FilesName})
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.dir, b.dir) })
	for len(places) > 0 {
		n := 1
		for n < len(places) && places[n].dir == places[0].dir {
			n++
		}
		if err := s.settle(places[:n]); err != nil {
			return err
		}
		places = places[n:]
	}
	return nil
}

// settle puts the links of one directory in their places, and gives it the
// time back that it had.
func (s *swap) settle(places []place) error {
	dir := places[0].dir
	d, err := s.root.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	fi, err := d.Stat()
	if err != nil {
		return err
	}
	for _, p := range places {
		err := uninterrupted(func() error {
			if err := fault.Call("store.reuse.rename"); err != nil {
				return err
			}
			return unix.Renameat(int(s.dir.Fd()), p.temp, int(d.Fd()), p.name)
		})
		if err != nil {
			return &os.LinkError{Op: "rename", Old: path.Join(s.name, p.temp), New: path.Join(dir, p.name), Err: err}
		}
	}
	if dir == "." {
		return nil // end gives it its time back
	}
	return s.root.Chtimes(dir, fi.ModTime(), fi.ModTime())
}

// end removes the directory, with what was not put in its place. Of nil it does
// nothing.
func (s *swap) end() error {
	if s == nil {
		return nil
	}
	err := errors.Join(s.dir.Close(), fault.Point("store.reuse.end"), s.root.RemoveAll(s.name))
	if e := s.root.Chtimes(".", s.time, s.time); e != nil {
		err = errors.Join(err, fmt.Errorf("set times: %w", e))
	}
	return err
}
