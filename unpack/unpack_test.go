package unpack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

var night = time.Date(2026, 9, 30, 3, 14, 15, 0, time.UTC)

// entry is one member of a test archive; the zero type is a regular file.
type entry struct {
	name, body, link string
	kind             byte
	mode             int64
}

// archive writes a gzip-compressed tar of entries.
func archive(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var tarball bytes.Buffer
	gz := gzip.NewWriter(&tarball)
	if _, err := gz.Write(rawTar(t, entries...)); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	return tarball.Bytes()
}

func rawTar(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	for _, e := range entries {
		hdr := &tar.Header{Name: e.name, Typeflag: e.kind, Linkname: e.link, Mode: e.mode, Size: int64(len(e.body)), ModTime: night, Uid: 1004, Uname: "rocm-signer"}
		if e.kind == 0 {
			hdr.Typeflag = tar.TypeReg
		}
		if e.mode == 0 {
			hdr.Mode = 0o644
		}
		if err := tw.WriteHeader(hdr); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(tw, e.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func openRoot(t testing.TB) (*os.Root, string) {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root, dir
}

func untar(t testing.TB, tarball []byte, o Options) (*Result, string, error) {
	t.Helper()
	root, dir := openRoot(t)
	res, err := Tree(context.Background(), bytes.NewReader(tarball), root, o)
	return res, dir, err
}

// A tarball of the shape that AMD publishes, with its traps.
func amdLike() []entry {
	long := strings.Repeat("deep-directory/", 20) + strings.Repeat("n", 120)
	return []entry{
		{name: "./", kind: tar.TypeDir, mode: 0o2777},
		{name: "./.info/", kind: tar.TypeDir, mode: 0o755},
		{name: "./.info/version", body: "10.2.0\n"},
		{name: "./.kpack/blas_lib_gfx1151.kpack", body: "KPAK"},
		{name: "./bin/", kind: tar.TypeDir, mode: 0o775},
		{name: "./bin/tool", body: "\x7fELF tool", mode: 0o4755},
		{name: "./bin/script", body: "#!/opt/python/bin/python3\nprint()\n", mode: 0o755},
		{name: "./bin/amdclang", kind: tar.TypeSymlink, link: "../lib/llvm/bin/clang"},
		{name: "./lib/libfoo.so.1.0.0", body: "\x7fELF foo", mode: 0o6777},
		{name: "./lib/libfoo.so.1", kind: tar.TypeLink, link: "./lib/libfoo.so.1.0.0"},
		{name: "./lib/libfoo.so", kind: tar.TypeSymlink, link: "/__w/rockrel/rockrel/build/stage/lib/libfoo.so.1"},
		{name: "./lib/gone.so", kind: tar.TypeSymlink, link: "/__w/rockrel/rockrel/build/stage/lib/gone.so.1"},
		{name: "./lib/libc.so.6", kind: tar.TypeSymlink, link: "/usr/lib/libfoo.so.1"},
		{name: "./lib/llvm/bin/clang", body: "\x7fELF clang", mode: 0o755},
		{name: "./lib/ompd.py", body: "x", mode: 0o444},
		{name: "./share/empty", body: ""},
		{name: "./share/" + long, body: "long"},
	}
}

func TestTreeOfAMDsShape(t *testing.T) {
	res, dir, err := untar(t, archive(t, amdLike()...), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		".info/version": "10.2.0\n", ".kpack/blas_lib_gfx1151.kpack": "KPAK", "bin/tool": "\x7fELF tool",
		"lib/libfoo.so.1": "\x7fELF foo", "lib/libfoo.so": "\x7fELF foo", "bin/amdclang": "\x7fELF clang", "share/empty": "",
	} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if to, err := os.Readlink(filepath.Join(dir, "lib/libfoo.so")); err != nil || to != "libfoo.so.1" {
		t.Errorf("the absolute link into the tree became %q, %v", to, err)
	}
	dropped := make([]string, 0, len(res.Dropped))
	for _, d := range res.Dropped {
		dropped = append(dropped, d.Path)
		if _, err := os.Lstat(filepath.Join(dir, d.Path)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s was dropped and is there: %v", d.Path, err)
		}
	}
	if !slices.Equal(dropped, []string{"lib/gone.so", "lib/libc.so.6"}) {
		t.Errorf("dropped %v", dropped)
	}
	one, err1 := os.Stat(filepath.Join(dir, "lib/libfoo.so.1"))
	two, err2 := os.Stat(filepath.Join(dir, "lib/libfoo.so.1.0.0"))
	if err1 != nil || err2 != nil || !os.SameFile(one, two) {
		t.Errorf("the hard link is not one: %v, %v", err1, err2)
	}
	checkModes(t, dir)
	checkResult(t, res, dir)
}

// checkModes tests that nothing but 0444, 0555 and directories of 0755 came out.
func checkModes(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir || d.Type() == fs.ModeSymlink {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		switch m := fi.Mode(); {
		case d.IsDir() && m == fs.ModeDir|0o755, m == 0o444, m == 0o555:
		default:
			t.Errorf("%s has mode %v", p, m)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// checkResult tests that the result lists just what is on disk, and rightly.
func checkResult(t *testing.T, res *Result, dir string) {
	t.Helper()
	listed := map[string]manifest.File{}
	for _, f := range res.Files {
		listed[f.Path] = f
	}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		f, ok := listed[rel]
		if !ok {
			t.Errorf("%s is not listed", rel)
			return nil
		}
		delete(listed, rel)
		if f.Kind == manifest.Regular {
			body, err := os.ReadFile(p)
			fi, _ := d.Info()
			if err != nil || hexSum(body) != f.SHA256 || f.Size != int64(len(body)) || fi.ModTime().Unix() != f.MTime {
				t.Errorf("%s is listed as %+v: %v", rel, f, err)
			}
			if (f.ELF != nil) != strings.HasPrefix(string(body), "\x7fELF") {
				t.Errorf("%s: ELF %v", rel, f.ELF)
			}
		}
		return nil
	})
	if err != nil || len(listed) > 0 {
		t.Errorf("listed but absent: %v, %v", listed, err)
	}
}

func TestHardLinkBeforeItsTargetAndToALink(t *testing.T) {
	_, dir, err := untar(t, archive(t,
		entry{name: "./a", kind: tar.TypeLink, link: "./b"},
		entry{name: "./b", kind: tar.TypeLink, link: "./c"},
		entry{name: "./c", body: "content"},
		entry{name: "./l", kind: tar.TypeSymlink, link: "c"},
		entry{name: "./m", kind: tar.TypeLink, link: "./l"},
	), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(got) != "content" {
		t.Errorf("%q, %v", got, err)
	}
	if to, err := os.Readlink(filepath.Join(dir, "m")); err != nil || to != "c" {
		t.Errorf("%q, %v", to, err)
	}
}

// A loop of links harms nobody and stays; it is the audit's to report.
func TestLinkLoopEnds(t *testing.T) {
	_, _, err := untar(t, archive(t,
		entry{name: "./a", kind: tar.TypeSymlink, link: "b"},
		entry{name: "./b", kind: tar.TypeSymlink, link: "a"},
		entry{name: "./c", kind: tar.TypeSymlink, link: "c/c/c"},
	), Options{})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTreeIsTheSameAtAnyParallelism(t *testing.T) {
	var entries []entry
	for i := range 300 {
		entries = append(entries, entry{name: "./d" + strings.Repeat("x", i%7) + "/" + strings.Repeat("f", i+1)[:min(i+1, 200)] + string(rune('a'+i%26)) + "-" + time.Duration(i).String(), body: strings.Repeat("b", i*37)})
	}
	tarball := archive(t, entries...)
	one, _, err := untar(t, tarball, Options{Writers: 1})
	if err != nil {
		t.Fatal(err)
	}
	eight, _, err := untar(t, tarball, Options{Writers: 8})
	if err != nil || !reflect.DeepEqual(one, eight) {
		t.Fatalf("results differ: %v", err)
	}
}

func TestLargeFilesAndHoles(t *testing.T) {
	noise := make([]byte, 3*chunkSize+12345)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	copy(noise[chunkSize:], make([]byte, chunkSize))
	empty := make([]byte, 5*chunkSize)
	res, dir, err := untar(t, archive(t, entry{name: "./big", body: string(noise)}, entry{name: "./zeros", body: string(empty)}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "big"))
	if err != nil || !bytes.Equal(got, noise) {
		t.Errorf("big differs: %v", err)
	}
	got, err = os.ReadFile(filepath.Join(dir, "zeros"))
	if err != nil || !bytes.Equal(got, empty) {
		t.Errorf("zeros differs: %v", err)
	}
	checkResult(t, res, dir)
}

func TestEditRewritesBeforeTheWrite(t *testing.T) {
	o := Options{
		Wants: func(p string, head []byte) bool { return bytes.HasPrefix(head, []byte("#!")) },
		Edit: func(p string, _ fs.FileMode, data []byte) ([]byte, []string, error) {
			return bytes.Replace(data, []byte("/opt/python/bin/python3"), []byte("/usr/bin/env python3"), 1), []string{"interpreter"}, nil
		},
	}
	res, dir, err := untar(t, archive(t, amdLike()...), o)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "bin/script")); string(got) != "#!/usr/bin/env python3\nprint()\n" {
		t.Errorf("%q", got)
	}
	i := slices.IndexFunc(res.Files, func(f manifest.File) bool { return f.Path == "bin/script" })
	if f := res.Files[i]; f.Before != hexSum([]byte("#!/opt/python/bin/python3\nprint()\n")) || !slices.Equal(f.Edits, []string{"interpreter"}) {
		t.Errorf("%+v", f)
	}
	checkResult(t, res, dir)
	boom := errors.New("boom")
	o.Edit = func(string, fs.FileMode, []byte) ([]byte, []string, error) { return nil, nil, boom }
	if _, _, err := untar(t, archive(t, amdLike()...), o); !errors.Is(err, boom) {
		t.Errorf("error %v", err)
	}
}

func TestTreeStopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	root, _ := openRoot(t)
	if _, err := Tree(ctx, bytes.NewReader(archive(t, amdLike()...)), root, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// GNU tar makes the tarballs, so what it makes of a real directory is read,
// long names, hard links and holes included.
func TestGNUTarOfADirectory(t *testing.T) {
	if _, err := exec.LookPath("tar"); err != nil {
		t.Skip("tar is not installed (Debian package tar)")
	}
	src := t.TempDir()
	long := filepath.Join(src, strings.Repeat("dir/", 40), strings.Repeat("f", 200))
	if err := os.MkdirAll(filepath.Dir(long), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{long: "long", filepath.Join(src, ".hidden"): "h", filepath.Join(src, "ünïcode"): "u"} {
		if err := os.WriteFile(name, []byte(body), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	hole := filepath.Join(src, "hole")
	if err := os.WriteFile(hole, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(hole, 9<<20); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(hole, filepath.Join(src, "twin")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"cfz"}, {"cSfz"}, {"--format=pax", "-cSzf"}, {"--format=pax", "-czf"}} {
		tarball := filepath.Join(t.TempDir(), "x.tar.gz")
		if out, err := exec.Command("tar", append(args, tarball, "-C", src, ".")...).CombinedOutput(); err != nil {
			t.Fatalf("tar %v: %s", args, out)
		}
		body, err := os.ReadFile(tarball)
		if err != nil {
			t.Fatal(err)
		}
		res, dir, err := untar(t, body, Options{})
		if err != nil {
			t.Fatalf("tar %v: %v", args, err)
		}
		checkResult(t, res, dir)
		if out, err := exec.Command("diff", "-r", src, dir).CombinedOutput(); err != nil {
			t.Errorf("tar %v: %s", args, out)
		}
	}
}
