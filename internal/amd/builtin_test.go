package amd

import (
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

func TestBuiltinDecodesAndIsComplete(t *testing.T) {
	f, err := decode(builtinName, builtin, true)
	if err != nil {
		t.Fatal(err)
	}
	if len(builtin) > maxSize/4 {
		t.Errorf("the built-in file has %d bytes: one of its size would soon be refused", len(builtin))
	}
	d := Builtin()
	if d.Version != f.data.Version || len(d.Products) < 200 || len(d.Allow) != 0 {
		t.Errorf("version %q, %d products", d.Version, len(d.Products))
	}
	for name, want := range map[string]int{"nightly": 120, "dev": 30, "rc": 730, "stable": 0, "bkc": 120, "asan": 120} {
		if ch := d.Channels[name]; ch.Retention != want || len(ch.Indexes) == 0 {
			t.Errorf("%s: %+v", name, ch)
		}
	}
	for name, ch := range d.Channels {
		want := time.Duration(0)
		if name == "nightly" || name == "dev" {
			want = 96 * time.Hour
		}
		if ch.StaleAfter != want {
			t.Errorf("%s is stale after %s", name, ch.StaleAfter)
		}
	}
}

func TestBuiltinIsACopy(t *testing.T) {
	Builtin().Products["RX 7900 XTX"] = "gfx000"
	if got := Builtin().Products["RX 7900 XTX"]; got != "gfx1100" {
		t.Error(got)
	}
}

// The host of today and its frozen predecessor are asked in every run; that
// is how a moved index is noticed.
func TestTodayAndThePredecessorAreAsked(t *testing.T) {
	for name, want := range map[string][]string{
		"nightly": {"https://nightly.repo.amd.com/rocm/core/tarball/", "https://rocm.nightlies.amd.com/tarball-multi-arch/"},
		"dev":     {"https://dev.repo.amd.com/rocm/core/tarball/", "https://rocm.devreleases.amd.com/tarball-multi-arch/"},
		"rc":      {"https://rc.repo.amd.com/rocm/core/tarball/", "https://rocm.prereleases.amd.com/tarball-multi-arch/"},
		"bkc":     {"https://bkc.repo.amd.com/rocm/core/tarball/"},
		"stable":  {"https://stable.repo.amd.com/rocm/core/tarball/", "https://repo.amd.com/rocm/tarball-multi-arch/"},
		"asan":    {"https://nightly.repo.amd.com/rocm/core/tarball-asan/", "https://rocm.nightlies.amd.com/tarball-asan/"},
	} {
		if got := addresses(Builtin().Channels[name].Ask(release.Version{}, "", false)); !slices.Equal(got, want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func addresses(all []Index) []string {
	var urls []string
	for _, ix := range all {
		urls = append(urls, ix.URL)
	}
	return urls
}

// Which host is to serve which version, as AMD's own tools route them.
func TestRoutes(t *testing.T) {
	d := Builtin()
	for _, tt := range []struct {
		channel, version, want string // the first index whose route holds it, by a part of its address
	}{
		{"nightly", "10.2.0a20260930", "nightly.repo"},
		{"nightly", "10.1.0a20260823", "nightly.repo"},
		{"nightly", "10.1.0a20260822", "nightlies.amd.com/tarball-multi-arch"},
		{"nightly", "7.13.0a20260417", "nightlies.amd.com/tarball-multi-arch"},
		{"nightly", "7.12.0a20260121", "nightlies.amd.com/tarball/"},
		{"nightly", "7.0.0rc20250714", "nightlies.amd.com/tarball/"},
		{"dev", "10.1.0.dev0+0123456789abcdef0123456789abcdef01234567", "dev.repo"},
		{"dev", "10.0.0.dev0+0123456789abcdef0123456789abcdef01234567", "devreleases.amd.com/tarball-multi-arch"},
		{"dev", "7.11.0.dev0+0123456789abcdef0123456789abcdef01234567", "devreleases.amd.com/tarball/"},
		{"rc", "10.1.0rc0", "rc.repo"},
		{"rc", "10.0.0rc4", "prereleases.amd.com/tarball-multi-arch"},
		{"rc", "7.13.0rc0", "prereleases.amd.com/tarball-multi-arch"},
		{"stable", "10.0.0", "stable.repo"},
		{"stable", "7.14.1", "//repo.amd.com/rocm/tarball-multi-arch"},
		{"stable", "7.12.0", "//repo.amd.com/rocm/tarball/"},
		{"bkc", "10.2.0a20260930+bkc.20261001", "bkc.repo"},
		{"asan", "10.2.0a20260930", "nightly.repo.amd.com/rocm/core/tarball-asan"},
		{"asan", "7.14.0a20260601", "nightlies.amd.com/tarball-asan"},
	} {
		all := d.Channels[tt.channel].Indexes
		i := slices.IndexFunc(all, func(ix Index) bool { return ix.Holds(version(t, tt.version)) })
		if i < 0 || !strings.Contains(all[i].URL, tt.want) {
			t.Errorf("%s %s: %d of %v", tt.channel, tt.version, i, addresses(all))
		}
	}
}

func version(t *testing.T, s string) release.Version {
	t.Helper()
	v, err := release.ParseVersion(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestDenied(t *testing.T) {
	for name, want := range map[string]bool{
		"therock-dist-linux-gfx1151-7.14.0a20260609.tar.gz": true,
		"therock-dist-linux-gfx1150-7.14.0a20260611.tar.gz": true,
		"therock-dist-linux-gfx1151-7.14.0a20260612.tar.gz": true,
		"therock-dist-linux-gfx1151-7.14.0a20260608.tar.gz": false,
		"therock-dist-linux-gfx1151-7.14.0a20260613.tar.gz": false,
		"therock-dist-linux-gfx1152-7.14.0a20260611.tar.gz": false,
		"therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz": false,
	} {
		got := slices.ContainsFunc(Builtin().Patterns(), func(p string) bool {
			match, err := path.Match(p, name)
			return err == nil && match
		})
		if got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Tables refer to each other; what is said of nearness can be followed.
func TestTablesAgree(t *testing.T) {
	d := Builtin()
	for slug, targets := range d.Families {
		for _, target := range targets {
			if _, known := d.Targets[target]; !known {
				t.Errorf("family %s: %s is no target", slug, target)
			}
		}
	}
	for product, target := range d.Products {
		if _, known := d.Targets[target]; !known {
			t.Errorf("product %s: %s is no target", product, target)
		}
	}
	for name, target := range d.Targets {
		if target.Name == "" {
			t.Errorf("%s has no name", name)
		}
		for _, near := range target.Nearest {
			if _, known := d.Targets[near]; !known {
				t.Errorf("%s: nearest %s is no target", name, near)
			}
			// The stepping is the last digit: all but it is the generation.
			if name[:len(name)-1] != near[:len(near)-1] {
				t.Errorf("%s: %s is of another generation", name, near)
			}
		}
	}
	for _, cdna := range []string{"gfx908", "gfx90a", "gfx942", "gfx950", "gfx1250"} {
		if near := d.Targets[cdna].Nearest; len(near) > 0 {
			t.Errorf("%s: %v", cdna, near)
		}
	}
	for target, first := range map[string]string{
		"gfx1103": "gfx1100", "gfx1101": "gfx1100", "gfx1031": "gfx1030", "gfx1036": "gfx1030", "gfx1150": "gfx1151",
		"gfx90c": "gfx900", "gfx1012": "gfx1011", "gfx1200": "gfx1201", "gfx1201": "gfx1200",
	} {
		if near := d.Targets[target].Nearest; len(near) == 0 || near[0] != first {
			t.Errorf("%s: %v", target, near)
		}
	}
}

func TestHosts(t *testing.T) {
	hosts := Builtin().Hosts()
	for _, want := range []string{"nightly.repo.amd.com", "rocm.nightlies.amd.com", "archives.repo.amd.com"} {
		if !slices.Contains(hosts, want) {
			t.Errorf("%s is not among %v", want, hosts)
		}
	}
	if !slices.IsSorted(hosts) || len(slices.Compact(slices.Clone(hosts))) != len(hosts) {
		t.Error(hosts)
	}
}
