package body

import (
	"strings"
	"testing"
)

// A command is run at the top of the repository, and reaches the edited file.
func TestTrialOf(t *testing.T) {
	for file, want := range map[string]string{
		"flake.nix":                  "nix flake check",
		"pkgs/rocm/flake.nix":        "(cd pkgs/rocm && nix flake check)",
		"pkgs/pins.nix":              "(cd pkgs && nix-instantiate --parse pins.nix >/dev/null)",
		"PKGBUILD":                   "makepkg --verifysource && makepkg --nobuild",
		"docker/Dockerfile":          "(cd docker && docker build .)",
		"Dockerfile.rocm":            "docker build -f Dockerfile.rocm .",
		"debian/changelog":           "dpkg-buildpackage --unsigned-source --unsigned-changes",
		"a/debian/changelog":         "(cd a && dpkg-buildpackage --unsigned-source --unsigned-changes)",
		"README.md":                  "",
		"Dockerfile$(id)":            "",
		"a b/flake.nix":              "",
		"$(id)/flake.nix":            "",
		"-x/flake.nix":               "",
		"../flake.nix":               "",
		"/etc/flake.nix":             "",
		"a;b/PKGBUILD":               "",
		"third_party/repo.bzl":       "(cd third_party && bazel fetch //...)",
		"cmake/rocm.cmake":           "cmake -S . -B build",
		"a/../../b/flake.nix":        "",
		"./flake.nix":                "nix flake check",
		"x\n/flake.nix":              "",
		"docker/-f.Dockerfile":       "",
		"docker/rocm.Dockerfile":     "(cd docker && docker build -f rocm.Dockerfile .)",
		"Containerfile":              "podman build .",
		"deep/tree/with/default.nix": "(cd deep/tree/with && nix-build)",
	} {
		if got := trialOf(file); got != want {
			t.Errorf("%q is tried by %q, want %q", file, got, want)
		}
	}
}

// A branch in a fork is not at the origin of whoever tries it.
func TestForkIsFetched(t *testing.T) {
	in := told()
	in.Forked, in.Fork = true, "https://forge.example/bot/flake.git"
	if text := Render(in); !strings.Contains(text, "\ngit fetch https://forge.example/bot/flake.git rocm-nightly/my-flake && ") {
		t.Error("the fork is not fetched from")
	}
	for _, fork := range []string{"", "https://a/$(id)", "--upload-pack=id", "https://a/b c"} {
		in.Fork = fork
		if text := Render(in); strings.Contains(text, "git fetch ") {
			t.Errorf("with %q as the fork there is a command to fetch", fork)
		}
	}
}
