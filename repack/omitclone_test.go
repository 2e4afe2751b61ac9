package repack

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// A clone of a prefix that something was left out of is what the tarball gives.
func TestCloneOfWhatIsLeft(t *testing.T) {
	tarball := trimmable(t)
	from, _ := into(t, tarball, every())
	want, wanted := into(t, tarball, every())
	dir := t.TempDir()
	res, err := Clone(context.Background(), from, dir, every())
	if err != nil {
		t.Fatal(err)
	}
	same(t, want, dir)
	if groups(t, want) != groups(t, dir) || !reflect.DeepEqual(plain(res), plain(wanted)) {
		t.Errorf("%+v\nand\n%+v", plain(res), plain(wanted))
	}
	// What does not depend on the target is shared between targets.
	o := every()
	o.Omit = []string{"tests", "docs", "static", "llvm"}
	from, _ = into(t, tarball, o)
	o.Target = "gfx1030"
	want, _ = into(t, tarball, o)
	dir = t.TempDir()
	if _, err := Clone(context.Background(), from, dir, o); err != nil {
		t.Fatal(err)
	}
	same(t, want, dir)
}

func TestCloneNeedsTheSameParts(t *testing.T) {
	tarball := trimmable(t)
	whole := every()
	whole.Omit = nil
	from, _ := into(t, tarball, every())
	isUnfit(t, from, whole, "another omit")
	less := every()
	less.Omit = less.Omit[1:]
	isUnfit(t, from, less, "another omit")
	// The kernels that are there are the other's.
	other := every()
	other.Target = "gfx1030"
	isUnfit(t, from, other, "another target")
	all, _ := into(t, tarball, whole)
	isUnfit(t, all, every(), "another omit")
}

func TestCloneNeedsTheListOfWhatIsLeftOut(t *testing.T) {
	tarball := trimmable(t)
	dir, _ := into(t, tarball, every())
	list := filepath.Join(dir, manifest.OmittedName)
	whole, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	cut := func(text, what string) string {
		for line := range strings.Lines(text) {
			if strings.Contains(line, what) {
				return strings.Replace(text, line, "", 1)
			}
		}
		t.Fatalf("no line has %s", what)
		return ""
	}
	for what, c := range map[string]struct {
		change func(string) string
		words  string
	}{
		"a line is gone":       {func(s string) string { return cut(s, "libstatic.a") }, "contradict"},
		"another rule":         {func(s string) string { return strings.ReplaceAll(s, `"rule":"static"`, `"rule":"x"`) }, `"x"`},
		"out of the tree":      {func(s string) string { return strings.Replace(s, "opt/rocm/bin/test_tool", "opt/rocm/../test_tool", 1) }, "place"},
		"not where it belongs": {func(s string) string { return strings.Replace(s, "opt/rocm/bin/test_tool", "opt/rocm/zz", 1) }, "place"},
		"it is there":          {func(s string) string { return strings.Replace(s, "bin/test_tool", "bin/tool", 1) }, "is there"},
		"another kind":         {func(s string) string { return strings.Replace(s, `"kind":"file"`, `"kind":"pipe"`, 1) }, "kind"},
		"negative":             {func(s string) string { return strings.Replace(s, `"size":`, `"size":-`, 1) }, "such an entry"},
		"more than it says":    {func(s string) string { return strings.Replace(s, `"kind"`, `"x":1,"kind"`, 1) }, "writes it"},
		"no JSON":              {func(string) string { return "{" }, "read omitted.jsonl"},
		"needed by nobody": {func(s string) string {
			return strings.Replace(s, `"needed_by":"opt/rocm/lib/llvm/bin/clang"`, `"needed_by":"x"`, 1)
		}, "is there"},
	} {
		t.Run(what, func(t *testing.T) {
			if err := rewrite(list, func(string) string { return c.change(string(whole)) }); err != nil {
				t.Fatal(err)
			}
			isUnfit(t, dir, every(), c.words)
		})
	}
	if err := os.Remove(list); err != nil {
		t.Fatal(err)
	}
	isUnfit(t, dir, every(), "no such file")
	// A list that is no list of anything.
	if err := os.Mkdir(list, 0o755); err != nil {
		t.Fatal(err)
	}
	isUnfit(t, dir, every(), "no regular file")
}

// A GPU whose variables make another of it runs the other's kernels: those stay,
// and a prefix without them cannot be the source of one with them.
func TestKernelsOfTheGPUThatIsSaidToBe(t *testing.T) {
	tarball := trimmable(t)
	said := every()
	said.Env = map[string]string{"HSA_OVERRIDE_GFX_VERSION": "10.3.0"}
	real := every()
	real.Target = "gfx1030"
	have, _ := into(t, tarball, said)
	want, _ := into(t, tarball, real)
	got, omitted, _ := listed(t, have)
	wanted, _, _ := listed(t, want)
	for p := range wanted {
		if strings.Contains(p, "gfx1030") && got[p].Path == "" {
			t.Errorf("%s, which this GPU runs, was left out", p)
		}
	}
	if len(omitted) == 0 {
		t.Error("nothing was left out")
	}
	own, _ := into(t, tarball, every())
	isUnfit(t, own, said, "another env")
}
