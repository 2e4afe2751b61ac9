package wrap

import (
	"context"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// What Finish added can be told from what it was given, and is added again.
func TestWithoutAddedGivesWhatFinishWasGiven(t *testing.T) {
	const time, earlier = 1_700_000_000, 1_600_000_000
	dir := func(path string, mtime int64) manifest.File {
		return manifest.File{Path: path, Kind: manifest.Dir, Mode: 0o755, MTime: mtime}
	}
	for what, given := range map[string][]manifest.File{
		"lacks both":   {dir("opt", time), dir("opt/rocm", time), dir("opt/rocm/lib", earlier), dir("opt/rocm/lib/llvm", earlier), dir("opt/rocm/lib/llvm/amdgcn", earlier)},
		"has one":      {dir("opt", time), dir("opt/rocm", time), dir("opt/rocm/lib", earlier), dir("opt/rocm/lib/llvm", earlier), {Path: "opt/rocm/llvm", Kind: manifest.Symlink, Link: "lib/llvm", MTime: earlier}},
		"has another":  {dir("opt", time), dir("opt/rocm", time), dir("opt/rocm/lib", earlier), dir("opt/rocm/lib/llvm", earlier), {Path: "opt/rocm/llvm", Kind: manifest.Symlink, Link: "lib", MTime: time}},
		"a directory":  {dir("opt", time), dir("opt/rocm", time), dir("opt/rocm/amdgcn", time), dir("opt/rocm/lib", earlier)},
		"nothing else": {dir("opt", time), dir("opt/rocm", time)},
	} {
		root, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		for _, f := range given {
			if f.Kind == manifest.Symlink {
				err = root.Symlink(f.Link, f.Path)
			} else {
				err = root.Mkdir(f.Path, 0o755)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		made, err := Finish(context.Background(), root, given, Options{FinalPrefix: "/x"})
		if err != nil {
			t.Fatal(err)
		}
		all := slices.Concat(given, made)
		manifest.Sort(all)
		if got := WithoutAdded(all); !reflect.DeepEqual(got, given) {
			t.Errorf("%s: %+v, not %+v", what, got, given)
		}
	}
}
