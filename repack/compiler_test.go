package repack

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/wrap"
)

const compilerConfig = "opt/rocm/lib/llvm/bin/rocm.cfg"

// The compiler's configuration is the one file of a tree that names the final
// prefix, and the manifest tells it as every other edit.
func TestCompilerNamesTheFinalPrefix(t *testing.T) {
	tarball := nightly(t)
	one, first := into(t, tarball, Options{FinalPrefix: "/opt/one", Audit: never})
	two, _ := into(t, tarball, Options{FinalPrefix: "/opt/two", Audit: never})
	in := snapshot(t, filepath.Join(two, "opt/rocm"))
	var differ []string
	for i, line := range snapshot(t, filepath.Join(one, "opt/rocm")) {
		if line != in[i] {
			differ = append(differ, strings.Fields(line)[0])
		}
	}
	if !slices.Equal(differ, []string{"lib/llvm/bin/rocm.cfg"}) {
		t.Errorf("these files differ: %v", differ)
	}
	for dir, want := range map[string]string{one: "/opt/one", two: "/opt/two"} {
		if text := read(t, filepath.Join(dir, compilerConfig)); !strings.Contains(text, "\n$-Wl,-rpath,"+want+"/opt/rocm/lib\n") {
			t.Errorf("%s has\n%s", dir, text)
		}
	}
	if first.Manifest.Edits[wrap.RuleCompilerPath] != 1 {
		t.Errorf("%v", first.Manifest.Edits)
	}
	f := entryOf(t, one, compilerConfig)
	if f.Before == "" || f.Before != entryOf(t, two, compilerConfig).Before || !slices.Equal(f.Edits, []string{wrap.RuleCompilerPath}) {
		t.Errorf("%+v", f)
	}
	if !PerPrefix(compilerConfig) || PerPrefix("opt/rocm/bin/rocm-version") {
		t.Error("a store would share it with other prefixes")
	}
	fi, err := os.Stat(filepath.Join(one, compilerConfig))
	if err != nil || fi.Mode() != 0o444 || fi.ModTime().Unix() != f.MTime || fi.Size() != f.Size {
		t.Errorf("%v, %v, %+v", fi, err, f)
	}
}

// A package of the tree alone finds its libraries right in the final prefix.
func TestCompilerOfABareTree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tree")
	if _, err := repackFile(t, nightly(t), dir, Options{Layout: LayoutTree, FinalPrefix: "/opt/rocm", Audit: never}); err != nil {
		t.Fatal(err)
	}
	if text := read(t, filepath.Join(dir, "lib/llvm/bin/rocm.cfg")); !strings.Contains(text, "\n$-Wl,-rpath,/opt/rocm/lib\n") {
		t.Errorf("it has\n%s", text)
	}
	staged := filepath.Join(t.TempDir(), "pkg/opt/rocm")
	if _, err := repackFile(t, nightly(t), staged, Options{Layout: LayoutTree, Audit: never}); err != nil {
		t.Fatal(err)
	}
	if text := read(t, filepath.Join(staged, "lib/llvm/bin/rocm.cfg")); !strings.HasSuffix(text, "\n-frtlib-add-rpath") {
		t.Errorf("a tree that is staged has\n%s", text)
	}
}

// A clone has its own final prefix, or none where that cannot be said, and the
// prefix that it was taken from keeps its own.
func TestCloneNamesItsOwnPrefix(t *testing.T) {
	from, _ := into(t, nightly(t), Options{FinalPrefix: "/opt/one", Audit: never})
	before := snapshot(t, from)
	for _, final := range []string{"/opt/one", "/opt/two, too", "/opt/$ORIGIN"} {
		want, wanted := into(t, nightly(t), Options{FinalPrefix: final, Audit: never})
		for _, dedup := range []string{DedupHardLink, DedupOff} {
			dir := t.TempDir()
			res, err := Clone(context.Background(), from, dir, Options{FinalPrefix: final, Audit: never, Dedup: dedup})
			if err != nil {
				t.Fatal(err)
			}
			same(t, want, dir)
			if !slices.Equal(res.Skips, wanted.Skips) {
				t.Errorf("%s: %v and %v", final, res.Skips, wanted.Skips)
			}
			if left := slices.ContainsFunc(res.Skips, func(s Skip) bool { return s.Path == compilerConfig }); left != strings.Contains(final, "$") {
				t.Errorf("%s: %v", final, res.Skips)
			}
		}
	}
	if !slices.Equal(before, snapshot(t, from)) {
		t.Error("what it was taken from has changed")
	}
}

func read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func entryOf(t testing.TB, dir, name string) manifest.File {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, manifest.FilesName))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	files, err := manifest.ReadFiles(f)
	i := slices.IndexFunc(files, func(f manifest.File) bool { return f.Path == name })
	if err != nil || i < 0 {
		t.Fatalf("%s is not listed: %v", name, err)
	}
	return files[i]
}
