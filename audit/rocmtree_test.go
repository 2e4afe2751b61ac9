package audit

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

// newBare is a fixture with nothing in it but these files; a name that ends in a
// slash is a directory.
func newBare(t *testing.T, names ...string) *fixture {
	t.Helper()
	f := &fixture{TB: t, dir: real(t, t.TempDir()), host: t.TempDir()}
	for _, name := range names {
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(f.path(name), 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		f.text(name, "x\n", 0o644)
	}
	return f
}

func TestWhatIsNoROCmTreeIsFatal(t *testing.T) {
	for _, c := range []struct {
		name   string
		files  []string
		detail string // of the finding, "" for none
		hint   string
	}{
		{"empty", []string{"opt/rocm/"}, "holds neither bin nor lib: this is not a ROCm tree", "empty"},
		{"empty, with a root around", []string{"opt/rocm/", "bin/x", "lib/x"}, "holds neither bin nor lib: this is not a ROCm tree", "empty"},
		{"one top-level directory", []string{"opt/rocm/rocm-7/bin/x", "opt/rocm/README"},
			"holds neither bin nor lib: this is not a ROCm tree; the tarball has one top-level directory rocm-7", "content of rocm-7:"},
		{"several above it", []string{"opt/rocm/opt/rocm/lib/x"},
			"holds neither bin nor lib: this is not a ROCm tree; the tarball has one top-level directory opt", "content of opt/rocm:"},
		{"one that leads nowhere", []string{"opt/rocm/a\x1b/b/"},
			`holds neither bin nor lib: this is not a ROCm tree; the tarball has one top-level directory a\x1b`, `content of a\x1b:`},
		{"two directories", []string{"opt/rocm/a/bin/x", "opt/rocm/b/bin/x"}, "holds neither bin nor lib: this is not a ROCm tree", "at its top"},
		{"files of these names", []string{"opt/rocm/bin", "opt/rocm/lib"}, "holds neither bin nor lib: this is not a ROCm tree", "at its top"},
		{"empty ones", []string{"opt/rocm/bin/", "opt/rocm/lib/"}, "holds neither bin nor lib: this is not a ROCm tree", "at its top"},
		{"bare, a file", []string{"bin"}, "holds neither bin nor lib: this is not a ROCm tree", "at its top"},
		{"bare, one directory", []string{"lib", "x/lib/y"},
			"holds neither bin nor lib: this is not a ROCm tree; the tarball has one top-level directory x", "content of x:"},
		{"only bin", []string{"opt/rocm/bin/x"}, "", ""},
		{"only lib", []string{"opt/rocm/lib/x"}, "", ""},
		{"bare, only lib", []string{"lib/x"}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newBare(t, c.files...)
			r := f.audit(f.options())
			if c.detail == "" {
				if r.Counts.Fatal != 0 {
					t.Errorf("%+v", r.Findings)
				}
				return
			}
			if r.Counts.Fatal != 1 || r.Findings[0].Rule != RuleTree {
				t.Fatalf("%+v", r.Findings)
			}
			if got := r.Findings[0]; got.Detail != c.detail || !strings.Contains(got.Hint, c.hint) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A tree whose lib is a link to lib64 has a lib.
func TestALinkedLibCounts(t *testing.T) {
	f := newBare(t, "opt/rocm/lib64/x")
	f.link("opt/rocm/lib", "lib64")
	if r := f.audit(f.options()); r.Counts.Fatal != 0 {
		t.Errorf("%+v", r.Findings)
	}
}

func TestErrNotTreeSaysWhatToTry(t *testing.T) {
	for want, files := range map[string][]string{
		"has them at its top":                       {"README"},
		"try the content of the directory x/y in":   {"x/y/bin/z", "README"},
		`try the content of the directory a\x1b in`: {"a\x1b/b"},
	} {
		f := newBare(t, files...)
		if _, err := Run(context.Background(), f.dir, f.options()); !errors.Is(err, ErrNotTree) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: no %q", err, want)
		}
	}
}

// Globs of a configuration name files as they are on disk.
func TestAllowSeesTheRealName(t *testing.T) {
	f := newFixture(t)
	f.link(rocm+"share/\x1b", "y")
	f.link(rocm+`share/\x1b`, "y")
	o := f.options()
	o.Allow = []Allow{{Rule: RuleLink, Path: "share/\x1b"}}
	r := f.audit(o)
	if r.Allowed != 1 || len(r.Findings) != 1 || r.Findings[0].Path != `opt/rocm/share/\\x1b` {
		t.Errorf("%+v", r)
	}
	o.Allow = []Allow{{Rule: RuleTree, Path: "**"}}
	if _, err := Run(context.Background(), f.dir, o); err != nil {
		t.Errorf("the rule cannot be allowed: %v", err)
	}
}
