package unpack

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// FuzzTree unpacks any bytes of tar: nothing outside the root changes, nothing
// in it is harmful, no link leads out, the result is what is on disk, and all
// of it takes no longer than it may.
func FuzzTree(f *testing.F) {
	f.Add(rawTar(f, amdLike()...))
	for _, a := range attacks("/nowhere") {
		if a.gz == nil && len(a.tar) <= 16<<10 {
			f.Add([]byte(a.tar))
		}
	}
	y := newYard(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		root, dir := y.root(t, "root-0")
		defer os.RemoveAll(dir)
		before := y.look(t)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		res, err := Tree(ctx, bytes.NewReader(stored(t, string(raw))), root, Options{Limits: Limits{MaxBytes: 1 << 20, MaxEntries: 100}})
		if ctx.Err() != nil {
			t.Fatal("it takes too long")
		}
		if after := y.look(t); after != before {
			t.Fatalf("outside the root there was\n%s\nand is\n%s", before, after)
		}
		checkHarmless(t, dir)
		if err != nil {
			attack{is: errOther, stream: !errors.As(err, new(*EntryError))}.checkError(t, err)
			return
		}
		checkModes(t, dir)
		checkResult(t, res, dir)
		checkLinks(t, res, dir)
	})
}

// checkLinks tests that no symlink of the tree leads out of it, and that none
// would if what is missing on its way were made.
func checkLinks(t testing.TB, res *Result, dir string) {
	t.Helper()
	for _, f := range res.Files {
		if f.Kind == manifest.Symlink && leadsOut(dir, f.Path) {
			t.Errorf("%s -> %s leads out", f.Path, f.Link)
		}
	}
}

// leadsOut follows name below dir as a program would that takes what is missing
// for directories, and more links than the kernel.
func leadsOut(dir, name string) bool {
	at, todo := "", strings.Split(name, "/")
	for links := 0; len(todo) > 0 && links < 300; {
		part := todo[0]
		todo = todo[1:]
		if part == ".." && at == "" {
			return true
		}
		at = strings.TrimPrefix(path.Join("/", at, part), "/")
		to, err := os.Readlink(filepath.Join(dir, at))
		if err != nil || part == ".." {
			continue
		}
		if path.IsAbs(to) {
			return true
		}
		links++
		at = strings.TrimPrefix(path.Dir("/"+at), "/")
		todo = append(strings.Split(to, "/"), todo...)
	}
	return false
}
