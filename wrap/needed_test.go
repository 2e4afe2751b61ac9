package wrap

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

func soname(f manifest.File, name string) manifest.File {
	return with(f, func(e *manifest.ELF) { e.Soname = name })
}

func TestNeeded(t *testing.T) {
	tests := []struct {
		name     string
		files    []manifest.File
		unwanted string // a prefix of the paths
		want     string // PATH<FILE that needs it
	}{
		{name: "nobody needs it", files: []manifest.File{exe("bin/a", ""), lib("x/libx.so", "")}, unwanted: "x/"},
		{name: "needed, and what it needs", files: []manifest.File{
			exe("bin/a", "", "libx.so"), lib("x/libx.so", "", "liby.so"), lib("x/liby.so", ""), lib("x/libz.so", "", "liby.so"),
		}, unwanted: "x/", want: "x/libx.so<bin/a x/liby.so<x/libx.so"},
		{name: "needed by one of its own only", files: []manifest.File{
			exe("x/a", "", "libx.so"), lib("x/libx.so", ""), exe("bin/b", "", "libc.so.6"),
		}, unwanted: "x/"},
		{name: "in a circle", files: []manifest.File{
			exe("bin/a", "", "libx.so"), lib("x/libx.so", "", "liby.so"), lib("x/liby.so", "", "libx.so"),
		}, unwanted: "x/", want: "x/libx.so<bin/a x/liby.so<x/libx.so"},
		{name: "through links", files: []manifest.File{
			exe("bin/a", "", "libx.so.1"), sym("lib/libx.so.1", "../x/libx.so.1"), sym("x/libx.so.1", "libx.so.1.0"),
			sym("x/libx.so", "libx.so.1"), lib("x/libx.so.1.0", ""),
		}, unwanted: "x/", want: "x/libx.so.1.0<bin/a x/libx.so.1<bin/a"},
		{name: "through a link to a directory", files: []manifest.File{
			exe("bin/a", "", "libx.so.1"), sym("lib/libx.so.1", "../x/l/libx.so.1"), sym("x/l", "deep"), lib("x/deep/libx.so.1", ""),
		}, unwanted: "x/", want: "x/deep/libx.so.1<bin/a x/l<bin/a"},
		{name: "wherever it lies", files: []manifest.File{
			exe("bin/a", "$ORIGIN/../lib", "libx.so"), lib("lib/libx.so", ""), lib("x/libx.so", ""),
		}, unwanted: "x/", want: "x/libx.so<bin/a"},
		{name: "by its SONAME", files: []manifest.File{
			exe("bin/a", "", "libx.so.1"), soname(lib("x/libx-1.2.so", ""), "libx.so.1"),
		}, unwanted: "x/", want: "x/libx-1.2.so<bin/a"},
		{name: "a twin of another name", files: []manifest.File{
			exe("bin/a", "", "libx.so.1"), lib("x/libx.so.1.0", ""), hard("x/libx.so.1", "x/libx.so.1.0"),
		}, unwanted: "x/", want: "x/libx.so.1<bin/a"},
		{name: "needed by a twin that stays", files: []manifest.File{
			lib("x/liba.so", "", "libx.so"), hard("lib/liba.so", "x/liba.so"), lib("x/libx.so", ""),
		}, unwanted: "x/", want: "x/libx.so<lib/liba.so"},
		{name: "a path is asked for by its name", files: []manifest.File{exe("bin/a", "", "../x/libx.so"), lib("x/libx.so", "")}, unwanted: "x/", want: "x/libx.so<bin/a"},
		{name: "links that go round", files: []manifest.File{exe("bin/a", "", "libx.so"), sym("x/libx.so", "liby.so"), sym("x/liby.so", "libx.so")}, unwanted: "x/"},
		{name: "a link to a directory", files: []manifest.File{exe("bin/a", "", "libx.so"), dir("x/d"), sym("x/libx.so", "d")}, unwanted: "x/"},
		{name: "what is no ELF", files: []manifest.File{
			exe("bin/a", "", "data"), {Path: "x/data", Kind: manifest.Regular}, dir("x/d"),
		}, unwanted: "x/", want: "x/data<bin/a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, base := range []string{"", "opt/rocm"} {
				files := slices.Clone(tt.files)
				for i := range files {
					files[i].Path = path.Join(base, files[i].Path)
					if files[i].Same != "" {
						files[i].Same = path.Join(base, files[i].Same)
					}
				}
				var got []string
				for i, by := range Needed(files, base, func(i int) bool { return strings.HasPrefix(tt.files[i].Path, tt.unwanted) }) {
					by, _ = below(by, base)
					got = append(got, tt.files[i].Path+"<"+by)
				}
				slices.Sort(got)
				if strings.Join(got, " ") != tt.want {
					t.Errorf("in %q: %q, want %q", base, got, tt.want)
				}
			}
		})
	}
}

func TestStranded(t *testing.T) {
	files := []manifest.File{
		sym("a", "gone/x"), sym("b", "a"), sym("c", "nothing"), sym("d", "gone"), sym("e", "lib/f"), sym("g", "h"), sym("h", "g"),
		dir("lib"), {Path: "lib/f", Kind: manifest.Regular}, sym("lib/up", "../gone/x"), sym("lib/out", "../../gone"), sym("lib/up2", "../gone/y"),
	}
	got := map[string]string{}
	for i, missing := range Stranded(files, "", func(p, rest string) bool { return p == "gone" && (rest == "" || rest == "x") }) {
		got[files[i].Path] = missing
	}
	want := map[string]string{"a": "gone", "b": "gone", "d": "gone", "lib/up": "gone"}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Whatever a tree looks like: no file that stays needs one that does not, as
// the planner of run paths finds libraries, and nothing is kept for nothing.
func TestNothingNeededIsUnwanted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		files := anyTree(t)
		unwanted := rapid.SliceOfN(rapid.Bool(), len(files), len(files)).Draw(t, "unwanted")
		kept := Needed(files, "", func(i int) bool { return unwanted[i] })
		var rest, gone []manifest.File
		for i, f := range files {
			if _, needed := kept[i]; !unwanted[i] || needed || f.Kind == manifest.Dir {
				rest = append(rest, f)
			} else {
				gone = append(gone, f)
			}
		}
		heir := map[string]string{} // the names that are left refer to the first of them
		for i := range rest {
			f := &rest[i]
			if first, is := heir[f.Same]; is {
				f.Same = first
			} else if slices.ContainsFunc(gone, func(g manifest.File) bool { return g.Path == f.Same }) {
				heir[f.Same], f.Same = f.Path, ""
			}
		}
		before, after := newPlanner(files, RunPathOptions{}), newPlanner(rest, RunPathOptions{})
		for _, f := range rest {
			e := before.elf(&f, "")
			if e == nil {
				continue
			}
			for _, name := range e.Needed {
				if len(before.providers[name]) != len(after.providers[name]) {
					t.Fatalf("%s needs %s: in %q before, in %q after\nleft %+v\ngone %+v", f.Path, name, before.providers[name], after.providers[name], rest, gone)
				}
			}
		}
		for i, by := range kept {
			if !unwanted[i] || !slices.ContainsFunc(rest, func(f manifest.File) bool { return f.Path == by }) {
				t.Fatalf("%s is kept for %s", files[i].Path, by)
			}
		}
	})
}

// anyTree draws a small tree of libraries, links, hard links and programs.
func anyTree(t *rapid.T) []manifest.File {
	names := []string{"liba.so", "libb.so.1", "libc.so", "libd.so"}
	dirs := []string{"lib", "x", "x/y"}
	files := []manifest.File{dir("lib"), dir("x"), dir("x/y")}
	var firsts []manifest.File
	for i := range rapid.IntRange(2, 10).Draw(t, "n") {
		name := rapid.SampledFrom(names).Draw(t, "name")
		if rapid.Bool().Draw(t, "numbered") {
			name = fmt.Sprintf("%s.%d", name, i)
		}
		p := rapid.SampledFrom(dirs).Draw(t, "dir") + "/" + name
		if slices.ContainsFunc(files, func(f manifest.File) bool { return f.Path == p }) {
			continue
		}
		needed := rapid.SliceOfN(rapid.SampledFrom(names), 0, 2).Draw(t, "needed")
		switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
		case kind == 0:
			files = append(files, exe(p, "", needed...))
		case kind == 1:
			to := rapid.SampledFrom(files).Draw(t, "to").Path
			files = append(files, sym(p, strings.Repeat("../", strings.Count(p, "/"))+to))
		case kind == 2 && len(firsts) > 0:
			first := rapid.SampledFrom(firsts).Draw(t, "first")
			twin := first
			twin.Path, twin.Same = p, first.Path
			files = append(files, twin)
		default:
			f := lib(p, "", needed...)
			firsts = append(firsts, f)
			files = append(files, f)
		}
	}
	slices.SortFunc(files, func(a, b manifest.File) int { return strings.Compare(a.Path, b.Path) })
	return files
}
