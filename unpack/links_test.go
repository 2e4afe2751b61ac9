package unpack

import (
	"archive/tar"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

func symlink(name, to string) entry { return entry{name: name, kind: tar.TypeSymlink, link: to} }

// linksOf unpacks entries and returns path -> target of the links that came
// out; a dropped one has the target "dropped".
func linksOf(t *testing.T, entries []entry) map[string]string {
	t.Helper()
	res, dir, err := untar(t, archive(t, entries...), Options{})
	if err != nil {
		t.Fatal(err)
	}
	links := map[string]string{}
	for _, f := range res.Files {
		if f.Kind == manifest.Symlink {
			links[f.Path] = f.Link
			if to, err := os.Readlink(filepath.Join(dir, f.Path)); err != nil || to != f.Link {
				t.Errorf("%s is on disk %q, %v", f.Path, to, err)
			}
		}
	}
	for _, d := range res.Dropped {
		links[d.Path] = "dropped"
	}
	return links
}

// permutations calls f with every order of s.
func permutations[E any](s []E, f func([]E)) {
	if len(s) < 2 {
		f(s)
		return
	}
	for i := range s {
		rest := slices.Concat(s[:i], s[i+1:])
		permutations(rest, func(p []E) { f(append(slices.Clone(p), s[i])) })
	}
}

// What an absolute link means does not depend on where it stands.
func TestAbsoluteLinksInAnyOrder(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		entries []entry
		want    map[string]string
	}{
		"through another": {
			[]entry{symlink("zz", "/opt/rocm/lib"), symlink("aa", "/opt/rocm/zz/a.txt"), {name: "lib/a.txt", body: "a"}},
			map[string]string{"zz": "lib", "aa": "zz/a.txt"},
		},
		"through another, a shorter end exists": {
			[]entry{symlink("zz", "/opt/rocm/lib"), symlink("aa", "/opt/rocm/zz/a.txt"), {name: "lib/a.txt", body: "a"}, {name: "a.txt", body: "b"}},
			map[string]string{"zz": "lib", "aa": "zz/a.txt"},
		},
		"through two and a relative one": {
			[]entry{symlink("a", "/b/c"), symlink("c", "/b/d"), symlink("d", "e"), symlink("e", "/x/y/f"), {name: "f", body: "f"}},
			map[string]string{"a": "c", "c": "d", "d": "e", "e": "f"},
		},
		"through a dropped one": {
			[]entry{symlink("a", "/x/b/f"), symlink("b", "/nowhere"), {name: "d/f", body: "f"}},
			map[string]string{"a": "dropped", "b": "dropped"},
		},
		"to each other": {
			[]entry{symlink("a", "/x/b"), symlink("b", "/x/a"), symlink("c", "/x/a")},
			map[string]string{"a": "dropped", "b": "dropped", "c": "dropped"},
		},
		"to each other, a shorter end exists": {
			[]entry{symlink("a", "/x/b/f"), symlink("b", "/x/a/f"), {name: "f", body: "f"}},
			map[string]string{"a": "f", "b": "f"},
		},
		"to itself": {
			[]entry{symlink("lib/x", "/build/lib/x"), {name: "x", body: "x"}},
			map[string]string{"lib/x": "../x"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			permutations(c.entries, func(p []entry) {
				if got := linksOf(t, p); !reflect.DeepEqual(got, c.want) {
					t.Errorf("%v: %v, want %v", p, got, c.want)
				}
			})
		})
	}
}

// Chains of links that are longer than the kernel would follow, and links that
// multiply, cost no more than a walk of bounded length.
func TestLinksThatWasteTime(t *testing.T) {
	entries := []entry{{name: "l0000", body: "x"}}
	for i := range 3000 {
		entries = append(entries, symlink(fmt.Sprintf("l%04d", i+1), fmt.Sprintf("/x/l%04d", i)))
	}
	if links := linksOf(t, entries); links["l0040"] != "l0039" || links["l3000"] != "dropped" {
		t.Errorf("%q, %q", links["l0040"], links["l3000"])
	}
	entries = entries[:1]
	for i := range 3000 { // each name of 250 components, all of them links to here
		entries = append(entries, symlink(fmt.Sprintf("k%04d", i), strings.Repeat("k0000/", 125)+strings.Repeat("./", 125)))
	}
	if _, _, err := untar(t, archive(t, entries...), Options{}); !errors.Is(err, ErrRefused) {
		t.Errorf("error %v", err)
	}
}

// A target that is kept is as clean as a name; an absolute one is not kept.
func TestLinkTargetsAreText(t *testing.T) {
	for _, target := range []string{"a\nb", "a\x1b[31m", "a\xff", strings.Repeat("../", 300) + "a"} {
		_, _, err := untar(t, archive(t, symlink("victim", target)), Options{})
		var ee *EntryError
		if !errors.Is(err, ErrRefused) || !errors.As(err, &ee) || ee.Name != "victim" {
			t.Errorf("%q: %v", target, err)
		}
	}
	got := linksOf(t, []entry{symlink("a", "/x\n/nothing"), symlink("b", "/x\xff/c"), {name: "c", body: "c"}})
	if want := map[string]string{"a": "dropped", "b": "c"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
}
