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

// TestAddressesOfOtherTargets: a file may hold the tarball of other GPUs as it
// is, but not take the new version along for them without their new hash.
func TestAddressesOfOtherTargets(t *testing.T) {
	t.Parallel()
	url := strings.ReplaceAll(night(n30)["gfx1151"].URL, n30, "10.2.0a20260101")
	other := strings.ReplaceAll(url, "gfx1151", "gfx110X-all")
	set := map[string]string{"gfx1151.version": "{{.Version}}"}
	for _, tt := range []struct {
		name, file, src string
		set             map[string]string
		fetches, err    string
	}{
		{"as it is", "a.json", `{"gfx1151": {"version": "1"}, "gfx1103": {"url": "` + other + `"}}`, set, fetches, ""},
		{"as it is, and nobody tells", "a.json", `{"gfx1151": {"version": "1"}, "gfx1103": {"url": "` + other + `"}}`, set, "", "write fetches: "},
		{"an older one of its own", "a.json", `{"gfx1151": {"version": "1", "old": "` + url + `"}}`, set, "", "its name is another one"},
		{"one version for both", "a.json", `{"version": "1", "a": "` + strings.ReplaceAll(url, "10.2.0a20260101", "${version}") + `", "b": "` + strings.ReplaceAll(other, "10.2.0a20260101", "${version}") + `"}`,
			map[string]string{"version": "{{.Version}}"}, "", "the new version is in this address too, of which nothing is verified"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, tt.file), []byte(tt.src), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := Write(dir, Repo{Files: []File{{Path: tt.file, Target: "gfx1151", Set: tt.set, Fetches: tt.fetches}}}, night(n30), Options{})
			var bad *URLError
			if tt.err == "" && err != nil || tt.err != "" && (!errors.As(err, &bad) || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("got %v, want %q in it", err, tt.err)
			}
		})
	}
}

// TestAddressThatStraysIsRefused: where the file does not tell all of an
// address, fetches tells the rest, but not what the file says otherwise.
func TestAddressThatStraysIsRefused(t *testing.T) {
	t.Parallel()
	const frozen = "https://rocm.nightlies.amd.com/tarball"
	const live = "https://nightly.repo.amd.com/rocm/core/tarball"
	for _, tt := range []struct {
		name, file, text string
		refused          string // "" if it is not
		migrated         string // what --migrate makes; "" if it changes no address
	}{
		{
			"family that an argument gives", "x.nix", "{ gpu }: rec { version = \"1\"; url = \"" + frozen + "/therock-dist-linux-${gpu}-${version}.tar.gz\"; }\n",
			"x.nix:1:51: it would fetch " + frozen + "/therock-dist-linux-${gpu}-" + n30, live + "/therock-dist-linux-${gpu}-${version}.tar.gz",
		},
		{
			"nothing but arguments", "x.nix", "{ version = \"1\"; url = { gpu, v }: \"" + frozen + "/therock-dist-linux-${gpu}-${v}.tar.gz\"; }\n",
			"it would fetch " + frozen, live + "/therock-dist-linux-${gpu}-${v}.tar.gz",
		},
		{
			"a variable of the environment", "x.cmake", "set(version 1)\nfile(DOWNLOAD \"" + frozen + "/therock-dist-linux-$ENV{GPU}-${version}.tar.gz\" x)\n",
			"it would fetch " + frozen, live + "/therock-dist-linux-$ENV{GPU}-${version}.tar.gz",
		},
		{
			"a format", "x.bzl", "version = \"1\"\ndef f(gpu):\n    return \"" + frozen + "/therock-dist-linux-%s-%s.tar.gz\" % (gpu, version)\n",
			"it would fetch " + frozen, live + "/therock-dist-linux-%s-%s.tar.gz",
		},
		{"right as far as it goes", "x.nix", "{ gpu }: rec { version = \"1\"; url = \"" + live + "/therock-dist-linux-${gpu}-${version}.tar.gz\"; }\n", "", ""},
		{"a host that an argument gives", "x.nix", "{ host }: rec { version = \"1\"; url = \"https://${host}/rocm/core/tarball/therock-dist-linux-gfx1151-${version}.tar.gz\"; }\n", "", ""},
		{"something else", "x.nix", "{ gpu }: rec { version = \"1\"; url = \"https://example.org/notes-${gpu}-${version}.html\"; }\n", "", ""},
		{"a host of its own", "x.nix", "rec { host = \"rocm.nightlies.amd.com\"; version = \"1\"; url = \"https://${host}/rocm/core/tarball/therock-dist-linux-gfx1151-${version}.tar.gz\"; }\n", "it would fetch " + frozen[:30], "host = \"nightly.repo.amd.com\";"},
		{"a mirror behind it", "x.json", `{"version": "1", "urls": ["` + live + `/therock-dist-linux-gfx1151-{version}.tar.gz", "https://mirror.example.org/therock-dist-linux-gfx1151-{version}.tar.gz"]}`, "", ""},
		{"mirrors alone", "x.json", `{"version": "1", "urls": ["https://mirror.example.org/therock-dist-linux-gfx1151-{version}.tar.gz"]}`, "it would fetch https://mirror.example.org", live},
		{"a query", "x.json", `{"version": "1", "url": "` + live + `/therock-dist-linux-gfx1151-{version}.tar.gz?x"}`, "tar.gz?x for gfx1151, and " + live + "/therock-dist-linux-gfx1151-" + n30 + ".tar.gz was verified (write " + live + "/therock-dist-linux-gfx1151-" + n30 + ".tar.gz there)", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, tt.file)
			if err := os.WriteFile(file, []byte(tt.text), 0o644); err != nil {
				t.Fatal(err)
			}
			repo := Repo{Files: []File{{Path: tt.file, Target: "gfx1151", Set: map[string]string{"version": "{{.Version}}"}, Fetches: fetches}}}
			_, err := Write(dir, repo, night(n30), Options{DryRun: true})
			var bad *URLError
			if tt.refused == "" && err != nil || tt.refused != "" && (!errors.As(err, &bad) || !strings.Contains(err.Error(), tt.refused)) {
				t.Errorf("got %v, want %q in it", err, tt.refused)
			}
			if tt.migrated == "" {
				return
			}
			if _, err := Write(dir, repo, night(n30), Options{Migrate: true}); err != nil {
				t.Error(err)
			}
			if got := readText(t, file); !strings.Contains(got, tt.migrated) {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestCouldBe(t *testing.T) {
	for _, tt := range []struct {
		text, want string
		could      bool
	}{
		{"a-\x00-b", "a-1-b", true}, {"a-\x00-b", "a--b", true}, {"a-\x00-b", "a-b", false}, {"\x00", "", true}, {"\x00\x00x", "yx", true},
		{"a\x00b\x00c", "abbc", true}, {"a\x00b\x00c", "acbc", true}, {"a\x00b\x00c", "acc", false}, {"abc", "abc", true}, {"abc", "abcd", false}, {"a\x00", "ba", false},
	} {
		if couldBe(tt.text, tt.want) != tt.could {
			t.Errorf("%q and %q: %v", tt.text, tt.want, !tt.could)
		}
	}
}
