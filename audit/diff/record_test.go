package diff

import (
	"bytes"
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// record keeps of a prefix what Record says, in a directory of its own.
func record(t testing.TB, prefix string) string {
	t.Helper()
	files, err := Record(context.Background(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func twoNights(t testing.TB) (a, b string) {
	rock := func(commit, flag string) string {
		return `{"the_rock_commit": "` + commit + `", "rocm_package_version": "10.2.0", "submodules": [{"submodule_name": "clr", "submodule_path": "core/clr",
			"submodule_url": "https://github.com/ROCm/clr.git", "pin_sha": "` + commit + `"}], "flags": {"THEROCK_X": "` + flag + `"}}`
	}
	old := tree{
		rockPath: rock(one, "ON"), ".info/version": "10.1.0\n", "lib/pkgconfig/hip.pc": "Name: hip\nVersion: 7.1\n", "lib/llvm/hip.cfg": "-O2\n",
		"share/hip/version": "HIP_VERSION_MAJOR=7\nHIP_VERSION_MINOR=1\n", "bin/x": "x", "include/a.h": "a", "include/b.h": "b",
	}
	return old.prefix(t), old.with(tree{
		rockPath: rock(two, "OFF"), ".info/version": "10.2.0\n", "lib/pkgconfig/hip.pc": "Name: hip\nVersion: 7.2\n", "lib/llvm/hip.cfg": "-O3\n",
		"share/hip/version": "HIP_VERSION_MAJOR=7\nHIP_VERSION_MINOR=2\n", "include/a.h": "A", "include/b.h": "", "include/c.h": "c",
	}).prefix(t)
}

// Of two trees that are gone, a report says what it says of the trees.
func TestRecordsTellWhatTreesTell(t *testing.T) {
	a, b := twoNights(t)
	byList := func(a, b string) *Report {
		r, err := Compare(context.Background(), Source{Name: "A", Dir: a, List: manifest.FilesName}, Source{Name: "B", Dir: b, List: manifest.FilesName}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	want := byList(a, b)
	if len(want.Sources.Submodules) != 1 || len(want.Sources.Flags) != 1 || len(want.Config) != 1 || len(want.Config[0].Diff) == 0 {
		t.Fatalf("%+v", want)
	}
	for name, pair := range map[string][2]string{"both": {record(t, a), record(t, b)}, "old": {record(t, a), b}, "new": {a, record(t, b)}} {
		got := byList(pair[0], pair[1])
		if got.A, got.B = want.A, want.B; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, not %+v", name, got, want)
		}
	}
}

func TestListDigest(t *testing.T) {
	a, _ := twoNights(t)
	plain, err := ListDigest(a)
	packed, perr := ListDigest(record(t, a))
	if err != nil || perr != nil || plain != packed || len(plain) != 64 {
		t.Errorf("%q %v, %q %v", plain, err, packed, perr)
	}
	if _, err := ListDigest(t.TempDir()); !os.IsNotExist(err) {
		t.Error(err)
	}
}

// A damaged record is an error, or a note: never a panic, and no tree that is
// equal to nothing.
func TestDamagedRecords(t *testing.T) {
	a, b := twoNights(t)
	good := record(t, a)
	files, err := Record(context.Background(), b)
	if err != nil {
		t.Fatal(err)
	}
	bomb, err := pack(func(w io.Writer) error {
		_, err := io.Copy(w, io.LimitReader(endless{}, maxListBytes+maxListBytes/8))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func(m map[string][]byte){
		"list torn":   func(m map[string][]byte) { m[PackedList] = m[PackedList][:len(m[PackedList])/2] },
		"list a bomb": func(m map[string][]byte) { m[PackedList] = bomb },
		"no list":     func(m map[string][]byte) { delete(m, PackedList) },
		"manifest":    func(m map[string][]byte) { m[manifest.Name] = []byte("[]") },
	} {
		m := maps.Clone(files)
		damage(m)
		if _, err := Compare(context.Background(), Source{Dir: good}, Source{Dir: on(t, m)}, Options{}); err == nil {
			t.Errorf("%s: compared", name)
		}
	}
	for name, texts := range map[string][]byte{"torn": files[PackedTexts][:9], "none": nil, "noise": bytes.Repeat([]byte{7}, 99)} {
		m := maps.Clone(files)
		if m[PackedTexts] = texts; texts == nil {
			delete(m, PackedTexts)
		}
		r := compare(t, good, on(t, m))
		if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "therock_manifest.json") }) {
			t.Errorf("%s: %q", name, r.Notes)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func on(t testing.TB, files map[string][]byte) string {
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
