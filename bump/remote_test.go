package bump

import (
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

func TestFromPin(t *testing.T) {
	version, err := release.ParseVersion(newVersion)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := release.ParseDigest(newHex)
	if err != nil {
		t.Fatal(err)
	}
	got := FromPin(release.Pin{
		Release: release.Release{Channel: "nightly", Name: "x.tar.gz", Family: "gfx110X-all", Version: version, URL: "https://h/x.tar.gz",
			MTime: time.Date(2026, 9, 30, 23, 0, 0, 0, time.FixedZone("", -7200))},
		Digest: digest, Size: 5,
	}, "gfx1103")
	want := Pin{Version: newVersion, URL: "https://h/x.tar.gz", SRI: newSRI, Hex: newHex, Nix32: newNix32, Size: 5, Date: "2026-10-01", Family: "gfx110X-all", Target: "gfx1103", Channel: "nightly", Name: "x.tar.gz"}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := FromPin(release.Pin{}, ""); got.Hex != "" || got.Date != "" {
		t.Errorf("of nothing: %+v", got)
	}
}

func TestParseRemote(t *testing.T) {
	for _, tt := range []struct{ raw, url, host, path, err string }{
		{raw: "https://github.com/me/rocm-flake.git", url: "https://github.com/me/rocm-flake.git", host: "github.com", path: "me/rocm-flake"},
		{raw: "https://me@h/a/b", url: "https://h/a/b", host: "h", path: "a/b"},
		{raw: "ssh://git@h:2222/a/b.git", url: "ssh://git@h:2222/a/b.git", host: "h:2222", path: "a/b"},
		{raw: "git@h:a/b.git", url: "git@h:a/b.git", host: "h", path: "a/b"},
		{raw: "h:a/b", url: "h:a/b", host: "h", path: "a/b"},
		{raw: "/srv/a b#c.git", url: "file:///srv/a%20b%23c.git"},
		{raw: "file:///srv/a.git", url: "file:///srv/a.git"},
		{raw: "", err: "no url"},
		{raw: "relative/path", err: "not an address"},
		{raw: "https://me:hunter2@h/a", err: "use token_env"},
		{raw: "https://me:hunter2@h/%zz", err: "cannot be parsed"},
		{raw: "https://h/a?token=x", err: "more than a host and a path"},
		{raw: "https:///a", err: "no host"},
		{raw: "git://h/a", url: "git://h/a", host: "h", path: "a"},
		{raw: "http://127.0.0.1:81/a", url: "http://127.0.0.1:81/a", host: "127.0.0.1:81", path: "a"},
		{raw: "http://localhost/a", url: "http://localhost/a", host: "localhost", path: "a"},
		{raw: "http://h/a", err: "http is for this machine only"},
		{raw: "ftp://h/a", err: "ftp is not allowed"},
		{raw: "ext::sh", err: "not an address"},
		{raw: "-oProxyCommand=x:y", err: "begins with a dash"},
		{raw: "-u@h:a", err: "begins with a dash"},
		{raw: "ssh://-oProxyCommand=x/y", err: "no host"},
		{raw: "a@-oProxy:x", err: "not an address"},
		{raw: "https://h/a\nb", err: "holds a space"},
	} {
		r, err := parseRemote(tt.raw)
		switch {
		case tt.err == "" && (err != nil || r.url != tt.url || r.host != tt.host || r.path != tt.path):
			t.Errorf("%q: %+v, %v", tt.raw, r, err)
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("%q: got %v, want %q in it", tt.raw, err, tt.err)
		case err != nil && strings.Contains(err.Error(), "hunter2"):
			t.Errorf("the password is in %v", err)
		}
	}
}

func TestCompareURL(t *testing.T) {
	for _, tt := range []struct{ forge, raw, want string }{
		{"github", "https://github.com/me/f.git", "https://github.com/me/f/compare/main...rocm-nightly/f?expand=1"},
		{"github", "git@github.com:me/f.git", "https://github.com/me/f/compare/main...rocm-nightly/f?expand=1"},
		{"gitea", "https://h:3000/me/f", "https://h:3000/me/f/compare/main...rocm-nightly/f"},
		{"gitea", "ssh://git@h:2222/me/f", "https://h/me/f/compare/main...rocm-nightly/f"},
		{"gitlab", "https://h/g/sub/f", "https://h/g/sub/f/-/merge_requests/new?merge_request%5Bsource_branch%5D=rocm-nightly%2Ff&merge_request%5Btarget_branch%5D=main"},
		{"git", "https://h/me/f", ""},
		{"github", "/srv/f.git", ""},
	} {
		r, err := parseRemote(tt.raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.compareURL(tt.forge, "main", "rocm-nightly/f"); got != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.forge, tt.raw, got, tt.want)
		}
	}
}

func TestCheckBranch(t *testing.T) {
	for name, ok := range map[string]bool{
		"main": true, "rocm-nightly/my.flake_1": true, "feature/ü": true,
		"": false, "-x": false, "a..b": false, "a b": false, "a/": false, "/a": false, "a//b": false, "a.lock": false, "a.lock/b": false,
		".a": false, "a/.b": false, "a.": false, "a~1": false, "a^": false, "a:b": false, "a*": false, "a\nb": false, "@": false, "HEAD": false,
		"a@{1}": false, "refs/heads/a": false, `a\b`: false,
	} {
		if err := checkBranch(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestTitle(t *testing.T) {
	pin := func(target, version string) Pin { return Pin{Target: target, Version: version} }
	edit := func(target, from, to string) Edit { return Edit{Target: target, From: from, To: to} }
	var many []Pin
	var manyEdits []Edit
	for _, target := range []string{"a", "b", "c", "d", "e"} {
		many = append(many, pin(target, "2"))
		manyEdits = append(manyEdits, edit(target, "1", "2"))
	}
	for _, tt := range []struct {
		edits []Edit
		pins  []Pin
		want  string
	}{
		{[]Edit{edit("a", "1", "2")}, []Pin{pin("a", "2")}, "rocm: 1 -> 2 (a)"},
		{[]Edit{edit("a", "sha256-x", "sha256-y")}, []Pin{pin("a", "2")}, "rocm: 2 (a)"},
		{[]Edit{edit("a", "1", "2"), edit("b", "1", "3")}, []Pin{pin("a", "2"), pin("b", "3")}, "rocm: 2, 3 (a, b)"},
		{[]Edit{edit("a", "1", "2")}, []Pin{pin("a", "2"), pin("b", "3")}, "rocm: 1 -> 2 (a)"},
		{manyEdits, many, "rocm: 1 -> 2 (5 targets)"},
		{[]Edit{edit("a", "1\n\nx: y", "2")}, []Pin{pin("a", "2")}, "rocm: 2 (a)"},
	} {
		if got := titleOf(tt.edits, tt.pins); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
