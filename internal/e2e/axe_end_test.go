package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// complete says what is wrong with a generation, nil if every file that its
// list names is there with its digest, and nothing else is.
func complete(dir string) error {
	list, err := os.Open(filepath.Join(dir, manifest.FilesName))
	if err != nil {
		return err
	}
	defer list.Close()
	m, err := os.Open(filepath.Join(dir, manifest.Name))
	if err != nil {
		return err
	}
	defer m.Close()
	if _, err := manifest.Read(m); err != nil {
		return err
	}
	listed := map[string]bool{manifest.FilesName: true, manifest.Name: true}
	err = manifest.EachFile(list, nil, func(f *manifest.File) error {
		listed[f.Path] = true
		return same(dir, f)
	})
	if err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		rel, rerr := filepath.Rel(dir, path)
		if err == nil && !e.IsDir() && !listed[rel] {
			err = fmt.Errorf("%s is not listed", rel)
		}
		return errors.Join(err, rerr)
	})
}

// same compares one entry with the list.
func same(dir string, f *manifest.File) error {
	path := filepath.Join(dir, f.Path)
	fi, err := os.Lstat(path)
	if err != nil {
		return err
	}
	switch {
	case fi.Mode().IsRegular():
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if sum := sha256.Sum256(b); f.SHA256 != "" && f.SHA256 != hex.EncodeToString(sum[:]) {
			return fmt.Errorf("%s is not what the list says", f.Path)
		}
	case fi.Mode()&fs.ModeSymlink != 0:
		if to, err := os.Readlink(path); err != nil || to != f.Link {
			return fmt.Errorf("%s leads to %q, not to %q: %v", f.Path, to, f.Link, err)
		}
	}
	return nil
}

// look fails the test unless everything under a final name is whole.
func (a *axe) look(t *testing.T, at string) {
	t.Helper()
	names, err := os.ReadDir(a.slot("generations"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range names {
		if err := complete(a.slot("generations", e.Name())); err != nil {
			t.Errorf("%s: %s is not whole: %v", at, e.Name(), err)
		}
	}
	to, err := os.Readlink(a.slot("current"))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if _, serr := os.Stat(a.slot("current", manifest.Name)); err != nil || serr != nil {
		t.Errorf("%s: current leads to %s: %v, %v", at, to, err, serr)
	}
}

// kept are the names that may be in the store when nothing is under way.
var kept = []string{
	"cache", "leases", "ledger.jsonl", "links.json", "links.lock", "looks.json", "run.lock", "slots", "spool", "spool/nightly", "store.json", "tarballs", "tarballs/nightly", axeSlot,
	axeSlot + "/checks.json", axeSlot + "/current", axeSlot + "/generations", axeSlot + "/records", axeSlot + "/runs", axeSlot + "/seals", axeSlot + "/state.json", axeSlot + "/switch.lock",
}

// debris lists what is in the store, and beside its link, that a finished run
// does not leave.
func (a *axe) debris(t *testing.T) (found []string) {
	t.Helper()
	err := filepath.WalkDir(a.root, func(path string, e fs.DirEntry, err error) error {
		rel, rerr := filepath.Rel(a.root, path)
		if err = errors.Join(err, rerr); err != nil || rel == "." || slices.Contains(kept, rel) {
			return err
		}
		if !a.belongs(rel) {
			found = append(found, rel)
		}
		if filepath.Dir(rel) == axeSlot+"/generations" {
			return fs.SkipDir // look sees to them
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	beside, err := os.ReadDir(filepath.Join(a.disk, "opt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range beside {
		if e.Name() != "rocm" && e.Name() != "link" { // the config's, and the one that fights and kills are about
			found = append(found, "opt/"+e.Name())
		}
	}
	return found
}

// belongs reports whether a name is of something that is kept: a record of a run,
// what is said of a generation that is there, a kept tarball.
func (a *axe) belongs(rel string) bool {
	dir, name := filepath.Split(rel)
	if strings.HasPrefix(name, ".") {
		return false // half of something
	}
	of := func(suffix string) bool {
		gen, ok := strings.CutSuffix(name, suffix)
		_, err := os.Lstat(a.slot("generations", gen))
		return ok && err == nil
	}
	switch filepath.Clean(dir) {
	case axeSlot + "/generations", axeSlot + "/records", "cache", "tarballs/nightly":
		return true
	case axeSlot + "/seals":
		return of(".seal")
	case axeSlot + "/runs":
		return !strings.HasSuffix(name, ".intoto.json") || of(".intoto.json")
	}
	if filepath.Dir(filepath.Clean(dir)) == axeSlot+"/records" {
		return name == "manifest.json" || name == "files.jsonl.zst" || name == "texts.jsonl.zst"
	}
	return strings.HasPrefix(dir, "tarballs/nightly/") && (name == "tarball.json" || name == "state.json" || len(strings.Trim(name, "0123456789")) == 0)
}

// end is what a run ends in: what does not depend on when it was, nor on how
// often it was begun.
type end struct {
	active      string
	generations map[string]string // digest of names, modes and content
	ledger      int               // lines
	link        string
}

func (e end) equal(o end) bool {
	return e.active == o.active && maps.Equal(e.generations, o.generations) && e.ledger == o.ledger && e.link == o.link
}

// end describes the store as it is.
func (a *axe) end(t *testing.T) end {
	t.Helper()
	e := end{active: a.active(), generations: map[string]string{}}
	names, err := os.ReadDir(a.slot("generations"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, n := range names {
		e.generations[n.Name()] = digestOf(t, a.slot("generations", n.Name()))
	}
	lines, err := os.ReadFile(filepath.Join(a.root, "ledger.jsonl"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, line := range bytes.Split(lines, []byte("\n")) {
		if bytes.HasSuffix(line, []byte("}")) { // a torn one counts for nothing
			e.ledger++
		}
	}
	e.link, _ = os.Readlink(filepath.Join(a.disk, "opt/rocm"))
	return e
}

// digestOf is a digest of a tree: names, modes, and content but for times.
func digestOf(t *testing.T, dir string) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || rel == manifest.FilesName || rel == manifest.Name {
			// They have the times of what is shared, and whether the ledger knew the
			// tarball, which a run that died may have seen to.
			return err
		}
		fmt.Fprintf(h, "%s %s\n", rel, fi.Mode())
		switch {
		case fi.Mode().IsRegular():
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(h, "%x\n", sha256.Sum256(b))
		case fi.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			fmt.Fprintln(h, to)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}
