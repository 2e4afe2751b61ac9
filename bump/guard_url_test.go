package bump

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMigrateMovesTheAddress: the pin that people copy names a host that has
// been frozen; one run with migrate puts that right as well.
func TestMigrateMovesTheAddress(t *testing.T) {
	t.Parallel()
	const old = "https://rocm.nightlies.amd.com/tarball"
	text := func(dir, version string) string {
		return "rec {\n  gpu = \"gfx1151\";\n  version = \"" + version + "\";\n  src = fetchurl { url = \"" + dir + "/therock-dist-linux-gfx1151-${version}.tar.gz\"; };\n}\n"
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "x.nix")
	if err := os.WriteFile(file, []byte(text(old, "1")), 0o644); err != nil {
		t.Fatal(err)
	}
	repo := Repo{Files: []File{{Path: "x.nix", Target: "gfx1151", Set: map[string]string{"version": "{{.Version}}"}}}}
	_, err := Write(dir, repo, night(n30), Options{})
	var bad *URLError
	if !errors.As(err, &bad) || bad.File != "x.nix" || bad.Line != 4 || !strings.Contains(bad.Fetches, old) || !strings.Contains(err.Error(), "--migrate") {
		t.Fatalf("got %v", err)
	}
	res, err := Write(dir, repo, night(n30), Options{Migrate: true})
	if err != nil || len(res.Edits) != 2 || res.Edits[0].Attr != "url" || !strings.Contains(res.Diff, "+  src = fetchurl { url = \"https://nightly.repo.amd.com/rocm/core/tarball/") {
		t.Fatalf("%+v, %v", res, err)
	}
	if got := readText(t, file); got != text("https://nightly.repo.amd.com/rocm/core/tarball", n30) {
		t.Errorf("got %s", got)
	}
	// Another name is no matter of host or directory.
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text(old, "1"), "linux-gfx1151", "linux-gfx1201")), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(dir, repo, night(n30), Options{Migrate: true}); !errors.As(err, &bad) || !strings.Contains(err.Error(), "its name is another one") {
		t.Errorf("got %v", err)
	}
}
