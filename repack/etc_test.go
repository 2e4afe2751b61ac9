package repack

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/audit"
)

// staged makes DESTDIR/opt/rocm and DESTDIR/etc, as a package does.
func staged(t *testing.T, o Options) (dest string, res *Result, err error) {
	t.Helper()
	dest = filepath.Join(t.TempDir(), "staging-dir")
	o.Layout, o.Etc, o.Audit.Refuse = LayoutTree, filepath.Join(dest, "etc"), audit.RefuseNever
	res, err = repackFile(t, nightly(t), filepath.Join(dest, "opt/rocm"), o)
	return dest, res, err
}

// What a package is made of names where it will be installed, and nowhere the
// place where it was made.
func TestEtcForPackages(t *testing.T) {
	dest, res, err := staged(t, Options{FinalPrefix: "/opt/rocm", Target: "gfx1151", Env: map[string]string{"HSA_ENABLE_SDMA": "0"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Etc) < 2 {
		t.Errorf("%q", res.Etc)
	}
	err = filepath.WalkDir(dest, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		text := []byte(p[len(dest):])
		switch {
		case d.Type().IsRegular():
			body, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			text = append(text, body...)
		case d.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(p)
			if err != nil {
				return err
			}
			text = append(text, to...)
		}
		for _, trace := range []string{dest, "staging-dir", stagingName} {
			if bytes.Contains(text, []byte(trace)) {
				t.Errorf("%s holds %q", p, trace)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"profile.d/rocm-nightly.sh":      "'/opt/rocm/bin'",
		"ld.so.conf.d/rocm-nightly.conf": "/opt/rocm/lib\n",
	} {
		body, err := os.ReadFile(filepath.Join(dest, "etc", name))
		if err != nil || !strings.Contains(string(body), want) || strings.Contains(string(body), "/opt/rocm/opt") {
			t.Errorf("%s: %s, %v", name, body, err)
		}
		fi, err := os.Stat(filepath.Join(dest, "etc", name))
		tree, err2 := os.Stat(filepath.Join(dest, "opt/rocm"))
		if err != nil || err2 != nil || fi.Mode().Perm() != 0o644 || !fi.ModTime().Equal(tree.ModTime()) {
			t.Errorf("%s: %v, %v", name, fi.Mode(), fi.ModTime())
		}
	}
	if _, err := os.Stat(filepath.Join(dest, "opt/rocm/etc/profile.d/rocm-nightly.sh")); err == nil {
		t.Error("the tree has one of its own")
	}
}

// An etc that is there is added to, and nothing in it is written over; when that
// cannot be, nothing was made.
func TestEtcThatIsThere(t *testing.T) {
	const own = "profile.d/rocm-nightly.sh"
	for what, tc := range map[string]struct {
		prepare func(etc string) error
		want    string // in the error; "" for none
	}{
		"others' files": {func(etc string) error {
			return os.WriteFile(filepath.Join(etc, "profile.d/other.sh"), []byte("x"), 0o600)
		}, ""},
		"a foreign file": {func(etc string) error { return os.WriteFile(filepath.Join(etc, own), []byte("x"), 0o600) }, "another content"},
		"a foreign link": {func(etc string) error { return os.Symlink("/dev/null", filepath.Join(etc, own)) }, "another content"},
		"a link out":     {func(etc string) error { return os.Symlink("/tmp", filepath.Join(etc, "ld.so.conf.d")) }, "ld.so.conf.d"},
		"a file for a directory": {func(etc string) error {
			return os.WriteFile(filepath.Join(etc, "ld.so.conf.d"), nil, 0o600)
		}, "ld.so.conf.d"},
	} {
		t.Run(what, func(t *testing.T) {
			base := t.TempDir()
			etc, dir := filepath.Join(base, "etc"), filepath.Join(base, "rocm")
			if err := os.MkdirAll(filepath.Join(etc, "profile.d"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := tc.prepare(etc); err != nil {
				t.Fatal(err)
			}
			before := snapshot(t, etc)
			o := Options{Layout: LayoutTree, Etc: etc, FinalPrefix: "/opt/rocm", Audit: AuditOptions{Refuse: audit.RefuseNever}}
			_, err := repackFile(t, nightly(t), dir, o)
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if body, err := os.ReadFile(filepath.Join(etc, "profile.d/other.sh")); err != nil || string(body) != "x" {
					t.Errorf("%q, %v", body, err)
				}
				// The same again, for a tree elsewhere, finds everything done.
				if _, err := repackFile(t, nightly(t), dir+"2", o); err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v", err)
			}
			after := snapshot(t, etc)
			if strings.Join(names(after), "\n") != strings.Join(names(before), "\n") {
				t.Errorf("etc has changed: %q, was %q", after, before)
			}
			if _, err := os.Lstat(dir); err == nil {
				t.Error("the tree was made")
			}
		})
	}
	for what, o := range map[string]Options{
		"layout root": {Layout: LayoutRoot, Etc: "/x"}, "in the tree": {Layout: LayoutTree, Etc: "p/etc"}, "no directory": {Layout: LayoutTree, Etc: "/dev/null"},
		"a variable of the loader's": {Layout: LayoutTree, Etc: "/x", Env: map[string]string{"LD_PRELOAD": "/x"}},
	} {
		t.Chdir(t.TempDir())
		if _, err := repackFile(t, nightly(t), "p", o); err == nil {
			t.Errorf("%s is taken", what)
		}
		if _, err := os.Lstat("p"); err == nil {
			t.Errorf("%s: the tree was made", what)
		}
	}
}

// names leaves the times of a snapshot out.
func names(lines []string) []string {
	var all []string
	for _, l := range lines {
		name, _, _ := strings.Cut(l, " ")
		all = append(all, name)
	}
	return all
}

// Variables are a part of the recipe, none leave it as it was, and a prefix of
// the same tarball with others gives its tree.
func TestEnvIsPartOfTheRecipe(t *testing.T) {
	recipe := func(env map[string]string) string {
		r, err := Recipe("sha256:aa", Options{Env: env})
		if err != nil {
			t.Fatal(err)
		}
		return r.String()
	}
	if recipe(nil) != recipe(map[string]string{}) || recipe(nil) == recipe(map[string]string{"A": "1"}) {
		t.Error("the recipe does not follow the variables")
	}
	from, _ := into(t, nightly(t), Options{FinalPrefix: "/p", Env: map[string]string{"HSA_ENABLE_SDMA": "0"}})
	want, _ := into(t, nightly(t), Options{FinalPrefix: "/p", Env: map[string]string{"HSA_ENABLE_SDMA": "1"}})
	dir := t.TempDir()
	if _, err := Clone(t.Context(), from, dir, Options{FinalPrefix: "/p", Env: map[string]string{"HSA_ENABLE_SDMA": "1"}}); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(snapshot(t, dir), "\n"), strings.Join(snapshot(t, want), "\n"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
