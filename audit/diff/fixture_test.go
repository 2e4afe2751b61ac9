package diff

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// made caches ELF files by what they were made from, for all tests.
var made = struct {
	sync.Mutex
	dir   string
	files map[string]string
}{files: map[string]string{}}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "diff")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	made.dir = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// object is a real library: source, a version script and linker's arguments.
func compile(t testing.TB, source, versions string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skip("g++ is missing: install the package g++")
	}
	made.Lock()
	defer made.Unlock()
	key := fmt.Sprintf("%q", append([]string{source, versions}, args...))
	if b, ok := made.files[key]; ok {
		return b
	}
	base := filepath.Join(made.dir, fmt.Sprint(len(made.files)))
	write(t, base+".cc", source)
	all := []string{"-shared", "-fPIC", "-nostdlib", "-o", base + ".so", base + ".cc"}
	if versions != "" {
		write(t, base+".map", versions)
		all = append(all, "-Wl,--version-script="+base+".map")
	}
	if out, err := exec.Command("g++", append(all, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("g++ %q: %v\n%s", all, err, out)
	}
	b, err := os.ReadFile(base + ".so")
	if err != nil {
		t.Fatal(err)
	}
	made.files[key] = string(b)
	return string(b)
}

// tree is a ROCm tree: contents by path; "-> x" is a link to x, and what is in
// bin/ or begins with #! is executable.
type tree map[string]string

// with is the tree with some files more, or others; "" takes one out.
func (tr tree) with(more tree) tree {
	out := maps.Clone(tr)
	for p, s := range more {
		if out[p] = s; s == "" {
			delete(out, p)
		}
	}
	return out
}

func write(t testing.TB, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if link, ok := strings.CutPrefix(content, "-> "); ok {
		if err := os.Symlink(link, name); err != nil {
			t.Fatal(err)
		}
		return
	}
	mode := os.FileMode(0o644)
	if strings.Contains(name, "/bin/") || strings.HasPrefix(content, "#!") {
		mode = 0o755
	}
	if err := os.WriteFile(name, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

// on writes the tree into a new directory.
func (tr tree) on(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	tr.in(t, dir)
	return dir
}

func (tr tree) in(t testing.TB, dir string) {
	t.Helper()
	for p, s := range tr {
		write(t, filepath.Join(dir, p), s)
	}
}

// prefix writes the tree as a prefix with its lists.
func (tr tree) prefix(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	tr.in(t, filepath.Join(dir, rocmDir))
	list(t, dir)
	return dir
}

// list writes the files.jsonl and the manifest.json of a prefix.
func list(t testing.TB, dir string) {
	t.Helper()
	s, err := openSide(context.Background(), Source{Dir: dir}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.root.Close()
	var files []manifest.File
	for _, f := range s.files {
		if f.Kind == manifest.Regular {
			b, err := os.ReadFile(filepath.Join(dir, rocmDir, f.Path))
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(b)
			f.SHA256 = hex.EncodeToString(sum[:])
		}
		f.Path = rocmDir + "/" + f.Path
		files = append(files, f.File)
	}
	w, err := os.Create(filepath.Join(dir, manifest.FilesName))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := manifest.WriteFiles(w, files); err != nil {
		t.Fatal(err)
	}
	m, err := os.Create(filepath.Join(dir, manifest.Name))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := manifest.Write(m, &manifest.Manifest{Schema: manifest.Schema, Recipe: "sha256:00", Options: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
}

// compare compares two directories.
func compare(t testing.TB, a, b string) *Report {
	t.Helper()
	r, err := Compare(context.Background(), Source{Name: "A", Dir: a}, Source{Name: "B", Dir: b}, Options{Jobs: 2})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
