package repack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// tiny is the smallest tarball that is a ROCm tree of a kind.
func tiny(t testing.TB) *bytes.Reader {
	t.Helper()
	var buf bytes.Buffer
	gz := gzip.NewWriter(&buf)
	tw := tar.NewWriter(gz)
	body := "#!/bin/sh\necho hello\n"
	err := tw.WriteHeader(&tar.Header{Name: "./bin/hello", Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(body))})
	_, werr := io.WriteString(tw, body)
	if err := errors.Join(err, werr, tw.Close(), gz.Close()); err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(buf.Bytes())
}

// leave makes a staging for base as a run that was killed leaves it.
func leave(t *testing.T, parent, base string) string {
	t.Helper()
	s, err := stageBeside(filepath.Join(parent, base))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(s.dir, "opt"), 0o755), s.lock.Close()); err != nil {
		t.Fatal(err)
	}
	return s.path
}

// What a dead run left for the same prefix is removed; what a live one works
// in, what is for another prefix and what is not certainly ours are not.
func TestSweepRemovesOnlyItsOwnDead(t *testing.T) {
	parent := t.TempDir()
	other := leave(t, parent, "other")
	live, err := stageBeside(filepath.Join(parent, "p"))
	if err != nil {
		t.Fatal(err)
	}
	dead := leave(t, parent, "p")
	stays := map[string]string{"another prefix's": other, "a live one": live.path}
	for what, name := range map[string]string{
		"the user's":     ".p.staging-mine",
		"without a lock": stagingName + strings.Repeat("A", 26),
		"a short name":   stagingName + "mine",
		"foreign marker": stagingName + strings.Repeat("B", 26),
		"a lock's link":  stagingName + strings.Repeat("C", 26),
	} {
		stays[what] = filepath.Join(parent, name)
		if err := os.MkdirAll(filepath.Join(stays[what], prefixName), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	err = errors.Join(
		os.WriteFile(filepath.Join(stays["a short name"], lockName), []byte(marker("p")), 0o600),
		os.WriteFile(filepath.Join(stays["foreign marker"], lockName), []byte(marker("p")+"x"), 0o600),
		os.Symlink(filepath.Join(stays["a short name"], lockName), filepath.Join(stays["a lock's link"], lockName)),
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(context.Background(), tiny(t), filepath.Join(parent, "p"), Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dead); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("debris is still there: %v", err)
	}
	for what, path := range stays {
		if _, err := os.Stat(filepath.Join(path, prefixName)); err != nil {
			t.Errorf("%s is gone: %v", what, err)
		}
	}
	if err := live.abort(); err != nil {
		t.Error(err)
	}
}

// What somebody put into a dead staging stays, and is in nobody's way; so is
// what belongs to somebody else.
func TestSweepIsNeverInTheWay(t *testing.T) {
	parent := t.TempDir()
	mine := filepath.Join(leave(t, parent, "p"), "mine")
	if err := os.WriteFile(mine, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		foreign := leave(t, parent, "p")
		if err := os.Chown(foreign, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if _, err := os.Stat(filepath.Join(foreign, prefixName, "opt")); err != nil {
				t.Errorf("another user's staging is gone: %v", err)
			}
		}()
	}
	if _, err := Run(context.Background(), tiny(t), filepath.Join(parent, "p"), Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Errorf("it is gone: %v", err)
	}
}

// A staging belongs to its run from the first moment: others that begin at the
// same time do not take it for a dead one's, nor the parents from under it.
func TestFreshStagingIsNotSwept(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "made/for/it/p")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 60 {
				s, err := stageBeside(dir)
				if err != nil {
					t.Error(err)
					return
				}
				sweep(s.parent, "p")
				_, err = os.Stat(s.dir)
				_, lerr := os.Stat(filepath.Join(s.path, lockName))
				if err := errors.Join(err, lerr, s.abort()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	// A parent stays where who made it ended before who used it.
	err := filepath.WalkDir(base, func(p string, _ fs.DirEntry, err error) error {
		if strings.HasPrefix(filepath.Base(p), stagingName) {
			t.Errorf("left behind: %s", p)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestEveryNameCanBeMade(t *testing.T) {
	parent := t.TempDir()
	for _, name := range []string{strings.Repeat("n", 250), "a*b", "a b\xff"} {
		leave(t, parent, name)
		if _, err := Run(context.Background(), tiny(t), filepath.Join(parent, name), Options{}); err != nil {
			t.Errorf("%.20q: %v", name, err)
		}
	}
	if names, err := os.ReadDir(parent); err != nil || len(names) != 3 {
		t.Errorf("%v, %v", names, err)
	}
}

func TestFailureTakesBackParents(t *testing.T) {
	base := t.TempDir()
	if _, err := Run(context.Background(), strings.NewReader("no tarball"), filepath.Join(base, "a/b/p"), Options{}); err == nil {
		t.Error("no error")
	}
	nothingLeft(t, base)
}

// Of two runs to one prefix the second to finish loses, and leaves nothing.
func TestTwoRunsToOnePrefix(t *testing.T) {
	for what, meanwhile := range map[string]func(dir string) error{
		"a prefix": func(dir string) error {
			_, err := Run(context.Background(), tiny(t), dir, Options{})
			return err
		},
		"a link": func(dir string) error { return os.Symlink("nowhere", dir) },
		"a file": func(dir string) error { return os.WriteFile(dir, nil, 0o644) },
	} {
		parent := t.TempDir()
		dir := filepath.Join(parent, "p")
		o := Options{Event: func(e Event) {
			if e.Stage == "audit" {
				if err := meanwhile(dir); err != nil {
					t.Error(err)
				}
			}
		}}
		_, err := Run(context.Background(), tiny(t), dir, o)
		if !errors.Is(err, ErrOccupied) || !strings.Contains(err.Error(), "meanwhile") {
			t.Errorf("%s: error %v", what, err)
		}
		if left, err := os.ReadDir(parent); err != nil || len(left) != 1 {
			t.Errorf("%s: left behind: %v, %v", what, left, err)
		}
	}
}

// What a rename could not take the place of is refused before a byte is read.
func TestOccupiedBeforeReading(t *testing.T) {
	parent := t.TempDir()
	in := func(name string) string { return filepath.Join(parent, name) }
	err := errors.Join(os.Mkdir(in("empty"), 0o755), os.Symlink("empty", in("link")), os.Symlink("nothing", in("dangling")),
		os.WriteFile(in("file"), nil, 0o644))
	if err != nil {
		t.Fatal(err)
	}
	for dir, words := range map[string]string{
		in("link"): "symlink", in("link") + "/": "symlink", in("dangling"): "symlink", in("file"): "not a directory", parent: "not empty",
		"/proc": "mount point",
	} {
		src := tiny(t)
		_, err := Run(context.Background(), src, dir, Options{})
		if !errors.Is(err, ErrOccupied) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: error %v", dir, err)
		}
		if int64(src.Len()) != src.Size() {
			t.Errorf("%s: the tarball was read", dir)
		}
	}
	if err := Vacant(in("empty")); err != nil {
		t.Errorf("an empty directory: %v", err)
	}
}

func TestBadOptionsBeforeReading(t *testing.T) {
	base := t.TempDir()
	for what, o := range map[string]Options{
		"colon": {FinalPrefix: "/a:b"}, "line end": {FinalPrefix: "/a\nb"}, "relative": {FinalPrefix: "a"}, "target": {Target: "a b"},
		"profile": {Profile: "x"}, "relative for a tree": {Layout: LayoutTree, FinalPrefix: "a"},
	} {
		src := tiny(t)
		if _, err := Run(context.Background(), src, filepath.Join(base, "a/p"), o); err == nil {
			t.Errorf("%s: taken", what)
		}
		if err := o.Check(base); err == nil || int64(src.Len()) != src.Size() {
			t.Errorf("%s: %v, %d bytes left", what, err, src.Len())
		}
		nothingLeft(t, base)
	}
	if err := (Options{}).Check("/with:colon"); err == nil {
		t.Error("a colon in the prefix itself was taken")
	}
	if err := (Options{FinalPrefix: "/a"}).Check("/with:colon"); err != nil {
		t.Error(err)
	}
}

// A full disk is named by the prefix, unless it is the source's.
func TestFullDiskIsNamed(t *testing.T) {
	full := fmt.Errorf("write x: %w", syscall.ENOSPC)
	s := &source{r: tiny(t)}
	if err := s.explain(full, "/some/prefix"); !strings.Contains(err.Error(), "/some/prefix") || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
	s.err = full
	if err := s.explain(full, "/some/prefix"); err != full {
		t.Errorf("%v", err)
	}
}
