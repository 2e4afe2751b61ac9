package repack

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/audit"
	"github.com/rocm-nightly/rocm-nightly/internal/demo"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

const version = "10.2.0a20260930"

// made is where tarballs are made that several tests read.
var made = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "repack-test-") })

var demoNight = sync.OnceValues(func() (string, error) {
	dir, err := made()
	if err != nil {
		return "", err
	}
	return demo.Night(context.Background(), dir, demo.NightOptions{Version: version})
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := made(); err == nil {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// nightly is the demo's tarball, with every trap in it.
func nightly(t testing.TB) string {
	t.Helper()
	path, err := demoNight()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func repackFile(t testing.TB, tarball, dir string, o Options) (*Result, error) {
	t.Helper()
	f, err := os.Open(tarball)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return Run(context.Background(), f, dir, o)
}

// snapshot lists everything about a tree that a user could notice.
func snapshot(t *testing.T, dir string) []string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		line := rel + " " + fi.Mode().String() + " " + fi.ModTime().UTC().String()
		switch {
		case fi.Mode().IsRegular():
			body, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			line += " " + string(body)
		case d.Type() == fs.ModeSymlink:
			to, err := os.Readlink(p)
			if err != nil {
				return err
			}
			line += " -> " + to
		}
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestSameTarballSamePrefix(t *testing.T) {
	tarball := nightly(t)
	base := t.TempDir()
	o := Options{FinalPrefix: "/opt/here", Target: "gfx1151"}
	old := unix.Umask(0o077)
	_, err := repackFile(t, tarball, filepath.Join(base, "one"), o)
	unix.Umask(old)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := repackFile(t, tarball, filepath.Join(base, "deeper/two"), o); err != nil {
		t.Fatal(err)
	}
	one, two := snapshot(t, filepath.Join(base, "one")), snapshot(t, filepath.Join(base, "deeper/two"))
	if len(one) != len(two) {
		t.Fatalf("%d and %d entries", len(one), len(two))
	}
	for i := range one {
		if one[i] != two[i] {
			t.Errorf("differs:\n%.200s\n%.200s", one[i], two[i])
		}
	}
}

func TestManifestTellsTheTruth(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "prefix")
	name, err := release.ParseName(filepath.Base(nightly(t)))
	if err != nil {
		t.Fatal(err)
	}
	res, err := repackFile(t, nightly(t), dir, Options{Release: release.Release{Name: name.String(), Family: name.Family, Version: name.Version}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, manifest.FilesName))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	files, err := manifest.ReadFiles(f)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{manifest.Name: true, manifest.FilesName: true, ".": true}
	for _, f := range files {
		listed[f.Path] = true
		checkListed(t, dir, f)
	}
	filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, p); !listed[rel] {
			t.Errorf("%s is not listed", rel)
		}
		return err
	})
	m := res.Manifest
	if m.Version != version || m.Counts.Files != res.Files || m.Counts.Symlinks < res.Links || m.Edits["run-path"] == 0 || m.Edits["interpreter"] == 0 {
		t.Errorf("%+v", m)
	}
	if res.ELF.Patched == 0 || res.Scripts == 0 || res.Links == 0 || res.Dropped == 0 {
		t.Errorf("%+v", res)
	}
	text, err := os.ReadFile(filepath.Join(dir, manifest.Name))
	if err != nil || strings.Contains(string(text), dir) {
		t.Errorf("the manifest names this machine: %v", err)
	}
}

func checkListed(t *testing.T, dir string, f manifest.File) {
	t.Helper()
	p := filepath.Join(dir, f.Path)
	fi, err := os.Lstat(p)
	if err != nil {
		t.Errorf("listed but absent: %v", err)
		return
	}
	switch f.Kind {
	case manifest.Symlink:
		if to, err := os.Readlink(p); err != nil || to != f.Link {
			t.Errorf("%s leads to %s, listed as %s", f.Path, to, f.Link)
		}
		return
	case manifest.Regular:
		m := &maker{}
		if m.root, err = os.OpenRoot(dir); err != nil {
			t.Fatal(err)
		}
		defer m.root.Close()
		sum, size, err := m.hash(f.Path)
		if err != nil || sum != f.SHA256 || size != f.Size {
			t.Errorf("%s is %s of %d bytes, listed as %s of %d: %v", f.Path, sum, size, f.SHA256, f.Size, err)
		}
	}
	if fi.Mode().Perm() != fs.FileMode(f.Mode) {
		t.Errorf("%s has mode %v, listed as %v", f.Path, fi.Mode(), f.Mode)
	}
	if f.MTime == 0 || fi.ModTime().Unix() != f.MTime {
		t.Errorf("%s has time %d, listed as %d", f.Path, fi.ModTime().Unix(), f.MTime)
	}
}

// nothingLeft tests that a failed run left nothing where it worked.
func nothingLeft(t *testing.T, parent string) {
	t.Helper()
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestFailureLeavesNothing(t *testing.T) {
	tarball := nightly(t)
	t.Run("digest", func(t *testing.T) {
		parent := t.TempDir()
		o := Options{Expect: []release.Expectation{{Digest: "sha256:00", Source: "the test"}}}
		_, err := repackFile(t, tarball, filepath.Join(parent, "p"), o)
		var mismatch *release.MismatchError
		if !errors.As(err, &mismatch) {
			t.Errorf("error %v", err)
		}
		nothingLeft(t, parent)
	})
	t.Run("cancelled", func(t *testing.T) {
		parent := t.TempDir()
		ctx, cancel := context.WithCancel(context.Background())
		f, err := os.Open(tarball)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		o := Options{Event: func(e Event) {
			if e.Stage == "patch" {
				cancel()
			}
		}}
		if _, err := Run(ctx, f, filepath.Join(parent, "p"), o); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		nothingLeft(t, parent)
	})
	t.Run("refused", func(t *testing.T) {
		parent := t.TempDir()
		_, err := repackFile(t, withoutKpack(t, tarball), filepath.Join(parent, "p"), Options{})
		var refused *RefusedError
		if !errors.As(err, &refused) || refused.Findings[0].Rule != audit.RuleKpack {
			t.Errorf("error %v", err)
		}
		nothingLeft(t, parent)
	})
	t.Run("options", func(t *testing.T) {
		for _, o := range []Options{{Layout: "x"}, {RunPath: "x"}, {Profile: "x"}, {FinalPrefix: "relative"}} {
			parent := t.TempDir()
			if _, err := repackFile(t, tarball, filepath.Join(parent, "p"), o); err == nil {
				t.Errorf("%+v was taken", o)
			}
			nothingLeft(t, parent)
		}
	})
}

// withoutKpack is the same tarball without its GPU kernels: what a careless
// "cp *" makes of it.
func withoutKpack(t *testing.T, tarball string) string {
	t.Helper()
	dir := t.TempDir()
	out := filepath.Join(t.TempDir(), filepath.Base(tarball))
	for _, argv := range [][]string{
		{"tar", "xzf", tarball, "-C", dir}, {"rm", "-r", filepath.Join(dir, ".kpack")}, {"tar", "czf", out, "-C", dir, "."},
	} {
		if text, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", argv, text)
		}
	}
	return out
}

// What the active generation has too is no regression, but what is fatal is
// refused always.
func TestBaseline(t *testing.T) {
	tarball := withoutKpack(t, nightly(t))
	o := Options{Audit: AuditOptions{Refuse: audit.RefuseNever}}
	bad := filepath.Join(t.TempDir(), "bad")
	res, err := repackFile(t, tarball, bad, o)
	if err != nil {
		t.Fatal(err)
	}
	if res.Audit.Fatal == 0 || res.Audit.Refused {
		t.Errorf("%+v", res.Audit)
	}
	o = Options{Baseline: func(context.Context) (*audit.Report, error) { return res.Report, nil }}
	var refused *RefusedError
	if _, err := repackFile(t, tarball, filepath.Join(t.TempDir(), "p"), o); !errors.As(err, &refused) {
		t.Errorf("error %v", err)
	}
}

func TestWhatIsThereIsNotTouched(t *testing.T) {
	tarball := nightly(t)
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	if err := os.WriteFile(precious, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := repackFile(t, tarball, dir, Options{}); !errors.Is(err, ErrOccupied) {
		t.Errorf("error %v", err)
	}
	if names, _ := os.ReadDir(dir); len(names) != 1 {
		t.Errorf("%v", names)
	}
	if _, err := repackFile(t, tarball, precious, Options{}); err == nil {
		t.Error("a file was taken for a directory")
	}
	empty := t.TempDir()
	if _, err := repackFile(t, tarball, empty, Options{}); err != nil {
		t.Errorf("an empty directory was refused: %v", err)
	}
}

func TestRecipe(t *testing.T) {
	recipe := func(d release.Digest, o Options) release.Digest {
		r, err := Recipe(d, o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	base := recipe("sha256:aa", Options{})
	for what, same := range map[string]Options{
		"defaults spelled out": {Layout: LayoutRoot, Profile: "fhs", RunPath: "rpath"},
		"another prefix":       {FinalPrefix: "/elsewhere"},
		"another audit":        {Audit: AuditOptions{Refuse: "never"}},
	} {
		if recipe("sha256:aa", same) != base {
			t.Errorf("%s changes the recipe", what)
		}
	}
	seen := []release.Digest{base}
	for what, other := range map[string]Options{
		"run path": {RunPath: "runpath"}, "target": {Target: "gfx1103"}, "profile": {Profile: "nix"}, "add": {AddRPath: []string{"/x"}},
		"layout": {Layout: LayoutTree}, "interpreter": {Interpreter: "/x"},
	} {
		r := recipe("sha256:aa", other)
		if slices.Contains(seen, r) {
			t.Errorf("%s does not change the recipe", what)
		}
		seen = append(seen, r)
	}
	if recipe("sha256:bb", Options{}) == base {
		t.Error("the tarball does not change the recipe")
	}
}

func TestInterpreterAndNixProfile(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"sh", "bash", "python3", "perl", "env", "readlink"} {
		if err := os.Symlink("/bin/sh", filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(t.TempDir(), "p")
	const interp = "/lib64/ld-linux-x86-64.so.2"
	if _, err := repackFile(t, nightly(t), dir, Options{Profile: "nix", InterpreterPath: []string{bin}, Interpreter: interp, Audit: AuditOptions{Refuse: audit.RefuseNever}}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bin/rocm-version", "opt/rocm/bin/rocm-version"} {
		body, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.HasPrefix(string(body), "#!"+bin+"/") {
			t.Errorf("%s begins with %.60q, %v", name, body, err)
		}
	}
	out, err := exec.Command(filepath.Join(dir, "bin/rocm-version")).CombinedOutput()
	if err != nil || !strings.Contains(string(out), version) {
		t.Errorf("%s, %v", out, err)
	}
}

// BenchmarkRepack repacks the tarball that ROCM_NIGHTLY_CORPUS_TARBALL names,
// or the demo's.
func BenchmarkRepack(b *testing.B) {
	tarball := os.Getenv("ROCM_NIGHTLY_CORPUS_TARBALL")
	if tarball == "" {
		tarball = nightly(b)
	}
	for b.Loop() {
		res, err := repackFile(b, tarball, filepath.Join(b.TempDir(), "p"), Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(res.Bytes)
	}
}
