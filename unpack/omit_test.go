package unpack

import (
	"archive/tar"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// without omits what one of prefixes begins.
func without(prefixes ...string) func(string, manifest.Kind, int64) string {
	return func(name string, _ manifest.Kind, _ int64) string {
		for _, p := range prefixes {
			if strings.HasPrefix(name, p) {
				return "because of " + p
			}
		}
		return ""
	}
}

func TestOmit(t *testing.T) {
	in := archive(t,
		entry{name: "./bin/", kind: tar.TypeDir, mode: 0o755},
		entry{name: "./bin/a", body: "a"},
		entry{name: "./tests/", kind: tar.TypeDir, mode: 0o755},
		entry{name: "./tests/x", body: strings.Repeat("x", 3<<20)},
		entry{name: "./tests/deep/y", body: "y"},
		entry{name: "./tests/link", kind: tar.TypeSymlink, link: "x"},
		entry{name: "./tests/hard", kind: tar.TypeLink, link: "./tests/x"},
		entry{name: "./bin/to-x", kind: tar.TypeSymlink, link: "../tests/x"},
		entry{name: "./bin/to-y", kind: tar.TypeSymlink, link: "/build/tests/deep/y"},
		entry{name: "./bin/b", kind: tar.TypeLink, link: "./bin/a"},
	)
	type asked struct {
		kind manifest.Kind
		size int64
	}
	all := map[string]asked{}
	omit := without("tests/")
	res, dir, err := untar(t, in, Options{Omit: func(name string, kind manifest.Kind, size int64) string {
		all[name] = asked{kind, size}
		if name == "tests" {
			return "because of tests"
		}
		return omit(name, kind, size)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if want := (map[string]asked{
		"bin": {manifest.Dir, 0}, "bin/a": {manifest.Regular, 1}, "tests": {manifest.Dir, 0}, "tests/x": {manifest.Regular, 3 << 20},
		"tests/deep/y": {manifest.Regular, 1}, "tests/link": {manifest.Symlink, 0}, "tests/hard": {manifest.Regular, 0},
		"bin/to-x": {manifest.Symlink, 0}, "bin/to-y": {manifest.Symlink, 0}, "bin/b": {manifest.Regular, 0},
	}); !reflect.DeepEqual(all, want) {
		t.Errorf("asked about %v", all)
	}
	because := "because of tests/"
	if want := []manifest.Dropped{
		{Path: "tests", Reason: "because of tests"}, {Path: "tests/deep/y", Reason: because}, {Path: "tests/hard", Reason: because},
		{Path: "tests/link", Reason: because}, {Path: "tests/x", Reason: because},
	}; !reflect.DeepEqual(res.Omitted, want) {
		t.Errorf("omitted %v", res.Omitted)
	}
	var names []string
	for _, f := range res.Files {
		names = append(names, f.Path)
	}
	if got := strings.Join(names, " "); got != "bin bin/a bin/b bin/to-x bin/to-y" {
		t.Errorf("files %s", got)
	}
	if _, err := os.Lstat(filepath.Join(dir, "tests")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("tests is there: %v", err)
	}
	// An absolute link means the same whether what it means is there.
	if to, err := os.Readlink(filepath.Join(dir, "bin/to-y")); to != "../tests/deep/y" || err != nil {
		t.Errorf("link to %q, %v", to, err)
	}
	if res.Bytes != 3<<20+2 {
		t.Errorf("%d bytes", res.Bytes)
	}
}

// A directory that is left out is there all the same where something kept is
// in it, whatever comes first, and has its own time.
func TestOmittedDirectoryWithKeptFile(t *testing.T) {
	d, f := entry{name: "./d/", kind: tar.TypeDir, mode: 0o755}, entry{name: "./d/e/kept", body: "x"}
	for _, entries := range [][]entry{{d, f}, {f, d}} {
		res, dir, err := untar(t, archive(t, entries...), Options{Omit: func(name string, _ manifest.Kind, _ int64) string {
			if name == "d" {
				return "it is d"
			}
			return ""
		}})
		if err != nil || len(res.Omitted) != 0 || len(res.Files) != 3 || res.Files[0].MTime != night.Unix() {
			t.Errorf("%+v, %v", res, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "d/e/kept")); err != nil {
			t.Error(err)
		}
	}
}

func TestOmitJudgesAllTheSame(t *testing.T) {
	every := Options{Omit: func(string, manifest.Kind, int64) string { return "all of it" }}
	for what, entries := range map[string][]entry{
		"listed twice":   {{name: "./a", body: "1"}, {name: "./a", body: "2"}},
		"below a link":   {{name: "./a", kind: tar.TypeSymlink, link: "b"}, {name: "./a/x", body: "2"}},
		"below a file":   {{name: "./a", body: "1"}, {name: "./a/x", body: "2"}},
		"a device":       {{name: "./a", kind: tar.TypeChar}},
		"a name outside": {{name: "./../a", body: "1"}},
		"a dead twin":    {{name: "./a", kind: tar.TypeLink, link: "nothing"}},
	} {
		if _, _, err := untar(t, archive(t, entries...), every); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", what, err)
		}
	}
	every.Limits.MaxBytes = 10
	if _, _, err := untar(t, archive(t, entry{name: "./a", body: "more than ten bytes"}), every); !errors.Is(err, ErrRefused) {
		t.Errorf("a large one: %v", err)
	}
}

// The content has passed when the link comes.
func TestKeptHardLinkToAnOmittedFile(t *testing.T) {
	first, second := entry{name: "./tests/x", body: "x"}, entry{name: "./bin/x", kind: tar.TypeLink, link: "./tests/x"}
	third := entry{name: "./bin/y", kind: tar.TypeLink, link: "./tests/z"}
	middle := entry{name: "./tests/z", kind: tar.TypeLink, link: "./tests/x"}
	for _, entries := range [][]entry{{first, second}, {second, first}, {first, middle, third}} {
		_, _, err := untar(t, archive(t, entries...), Options{Omit: without("tests/")})
		var ee *EntryError
		if !errors.Is(err, ErrRefused) || !errors.As(err, &ee) || !strings.HasPrefix(ee.Name, "bin/") || !strings.Contains(err.Error(), `"tests/x", which is left out`) {
			t.Errorf("%v", err)
		}
	}
	// The other way round nothing is lost.
	res, _, err := untar(t, archive(t, entry{name: "./bin/x", body: "x"}, entry{name: "./tests/x", kind: tar.TypeLink, link: "./bin/x"},
		entry{name: "./bin/y", kind: tar.TypeLink, link: "./tests/x"}), Options{Omit: without("tests/")})
	if err != nil || len(res.Files) != 3 || res.Files[2].Same != "bin/x" {
		t.Errorf("%+v, %v", res, err)
	}
}
