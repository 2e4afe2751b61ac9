package aur

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func get(t *testing.T, parts ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func put(t *testing.T, text string, parts ...string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(parts...), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func written(t *testing.T, p *Package, dir string) []string {
	t.Helper()
	changed, err := p.Write(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	all := []string{"rocm-nightly-gfx1151-bin.install", "PKGBUILD", ".SRCINFO"}
	in := Input{Pin: pin(night), Files: rocm()}
	if got := written(t, made(t, in), dir); !slices.Equal(got, all) {
		t.Errorf("%q", got)
	}
	if got := written(t, made(t, in), dir); len(got) != 0 {
		t.Errorf("the same again changes %q", got)
	}

	// Maintainers stay, and a change under one version counts pkgrel up.
	put(t, "# Maintainer: Ada <ada@example.org>\n"+get(t, dir, "PKGBUILD"), dir, "PKGBUILD")
	put(t, "anything", dir, "README.md") // beside files of ours, files of others are left alone
	in.Depends = []string{"papi"}
	p := made(t, in)
	if got := written(t, p, dir); !slices.Equal(got, all[1:]) || p.Release != 2 {
		t.Errorf("%q, pkgrel %d", got, p.Release)
	}
	text := get(t, dir, "PKGBUILD")
	if !strings.Contains(text, "# Maintainer: Ada <ada@example.org>\n") || !strings.Contains(text, "\npkgrel=2\n") {
		t.Errorf("%s", text)
	}
	if !strings.Contains(get(t, dir, ".SRCINFO"), "\tpkgrel = 2\n") {
		t.Error(".SRCINFO has another pkgrel")
	}
	if p := made(t, in); len(written(t, p, dir)) != 0 || p.Release != 2 {
		t.Errorf("the same again has pkgrel %d", p.Release)
	}

	// A newer version begins with 1.
	in.Pin = pin("10.2.0a20261001")
	if p := made(t, in); !slices.Equal(written(t, p, dir), all[1:]) || p.Release != 1 {
		t.Errorf("pkgrel %d", p.Release)
	}
	if !strings.Contains(get(t, dir, "PKGBUILD"), "# Maintainer: Ada") {
		t.Error("the maintainer is lost")
	}
}

// Nothing of anybody else's is written over.
func TestWriteRefuses(t *testing.T) {
	p := made(t, Input{Pin: pin(night), Files: rocm()})
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T, dir string)
	}{
		{"a PKGBUILD of somebody else's", func(t *testing.T, dir string) { put(t, "pkgname=x\n", dir, "PKGBUILD") }},
		{"a file of somebody else's", func(t *testing.T, dir string) { put(t, "x", dir, "notes") }},
		{"a .SRCINFO alone", func(t *testing.T, dir string) { put(t, "x", dir, ".SRCINFO") }},
		{"another package of ours", func(t *testing.T, dir string) {
			other := made(t, Input{Name: "rocm-other-bin", Pin: pin(night), Files: rocm()})
			written(t, other, dir)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			c.prepare(t, dir)
			before := listing(t, dir)
			_, err := p.Write(dir, false)
			if _, ok := errors.AsType[*NotOursError](err); !ok {
				t.Fatalf("%v", err)
			}
			if !slices.Equal(before, listing(t, dir)) {
				t.Error("something was written")
			}
			if _, err := p.Write(dir, true); err != nil {
				t.Errorf("with force: %v", err)
			}
		})
	}
}

// listing lists names and contents.
func listing(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name()+"\n"+get(t, dir, e.Name()))
	}
	return out
}

// A link is neither followed nor replaced, not even with force.
func TestWriteFollowsNoLink(t *testing.T) {
	p := made(t, Input{Pin: pin(night), Files: rocm()})
	for _, name := range []string{"PKGBUILD", ".SRCINFO", p.installName()} {
		dir, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
		put(t, "mine", victim)
		if err := os.Symlink(victim, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		for _, force := range []bool{false, true} {
			if _, err := p.Write(dir, force); err == nil || !strings.Contains(err.Error(), name+": is no regular file") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got := get(t, victim); got != "mine" {
			t.Errorf("%s: %q was written through a link", name, got)
		}
	}
}

// A checkout of the AUR is empty but for what git keeps.
func TestWriteIntoACheckout(t *testing.T) {
	p, dir := made(t, Input{Pin: pin(night), Files: rocm()}), t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, "*\n", dir, ".gitignore")
	written(t, p, dir)
	if !bytes.Equal([]byte(get(t, dir, "PKGBUILD")), p.PKGBUILD()) || get(t, dir, ".gitignore") != "*\n" {
		t.Error("not as it should be")
	}
}
