package bump

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/bump/pinfile"
)

func checkout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(
		os.Mkdir(filepath.Join(dir, "sub"), 0o755),
		os.WriteFile(filepath.Join(dir, "flake.nix"), fixture(t, "flake.nix"), 0o640),
		os.WriteFile(filepath.Join(dir, "sub/pins.nix"), fixture(t, "pins.nix"), 0o644),
	); err != nil {
		t.Fatal(err)
	}
	return dir
}

// writeCheckout is Write for files alone; it returns the values that changed.
func writeCheckout(dir string, files []File, pins map[string]Pin) ([]Edit, error) {
	res, err := Write(dir, Repo{Files: files}, pins, Options{})
	if err != nil {
		return nil, err
	}
	return res.Edits, nil
}

func TestWriteCheckout(t *testing.T) {
	dir := checkout(t)
	files := []File{
		{Path: "flake.nix", Target: "gfx1151", Set: map[string]string{"version": "{{.Version}}", "srcHash": "{{.SRI}}"}, Fetches: fetches},
		{Path: "sub/pins.nix", Target: "gfx900", Set: map[string]string{"version": "{{.Version}}"}, Fetches: fetches},
	}
	edits, err := writeCheckout(dir, files, night(newVersion))
	if err != nil || len(edits) != 2 || edits[1] != (Edit{"flake.nix", "version", "gfx1151", "10.2.0a20260928", newVersion}) {
		t.Fatalf("%+v, %v", edits, err)
	}
	src, err := os.ReadFile(filepath.Join(dir, "flake.nix"))
	if err != nil || !bytes.Contains(src, []byte(`version = "`+newVersion+`"; # bumped`)) {
		t.Errorf("%v\n%s", err, src)
	}
	if info, err := os.Stat(filepath.Join(dir, "flake.nix")); err != nil || info.Mode() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if edits, err = writeCheckout(dir, files, night(newVersion)); err != nil || len(edits) != 0 {
		t.Errorf("again: %+v, %v", edits, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".rocm*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWriteCheckoutStaysInside(t *testing.T) {
	dir, outside := checkout(t), t.TempDir()
	victim := filepath.Join(outside, "flake.nix")
	if err := errors.Join(
		os.WriteFile(victim, fixture(t, "flake.nix"), 0o644),
		os.Symlink(outside, filepath.Join(dir, "dir")),
		os.Symlink(victim, filepath.Join(dir, "link.nix")),
	); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"dir/flake.nix": "escapes", "link.nix": "it is a symlink", "../flake.nix": "not a relative path", "sub": "it is a directory", "none": "no such file",
	} {
		_, err := writeCheckout(dir, []File{{Path: path, Set: map[string]string{"version": "{{.Version}}"}, Fetches: fetches}}, night(newVersion))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q in it", path, err, want)
		}
	}
	if src, err := os.ReadFile(victim); err != nil || !bytes.Equal(src, fixture(t, "flake.nix")) {
		t.Errorf("a file outside was changed: %v", err)
	}
}

func TestWriteCheckoutIsAllOrNothing(t *testing.T) {
	dir := checkout(t)
	_, err := writeCheckout(dir, []File{
		{Path: "flake.nix", Set: map[string]string{"version": "{{.Version}}"}, Fetches: fetches},
		{Path: "sub/pins.nix", Set: map[string]string{"version": "{{.Version}}"}, Fetches: fetches},
	}, night(newVersion))
	var match *pinfile.MatchError
	if !errors.As(err, &match) || match.File != "sub/pins.nix" || match.Count != 3 {
		t.Fatalf("got %v", err)
	}
	if src, err := os.ReadFile(filepath.Join(dir, "flake.nix")); err != nil || !bytes.Equal(src, fixture(t, "flake.nix")) {
		t.Errorf("the first file was written although the second could not be: %v", err)
	}
}
