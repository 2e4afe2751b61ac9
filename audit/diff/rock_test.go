package diff

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

const (
	one = "1111111111111111111111111111111111111111"
	two = "2222222222222222222222222222222222222222"
)

// Every way to write a repository gives one page; what is no repository of a
// known forge gives none.
func TestRangeLink(t *testing.T) {
	span := "https://github.com/ROCm/llvm-project/compare/" + one + "..." + two
	for url, want := range map[string]string{
		"https://github.com/ROCm/llvm-project.git":              span,
		"https://github.com/ROCm/llvm-project":                  span,
		"https://github.com/ROCm/llvm-project/":                 span,
		"http://github.com/ROCm/llvm-project.git":               span,
		"git@github.com:ROCm/llvm-project.git":                  span,
		"ssh://git@github.com/ROCm/llvm-project.git":            span,
		"git://github.com/ROCm/llvm-project.git":                span,
		"https://gitlab.com/a/b/c.git":                          "https://gitlab.com/a/b/c/-/compare/" + one + "..." + two,
		"https://gitlab.freedesktop.org/mesa/mesa.git":          "https://gitlab.freedesktop.org/mesa/mesa/-/compare/" + one + "..." + two,
		"https://github.com/ROCm/a.b.git":                       "https://github.com/ROCm/a.b/compare/" + one + "..." + two,
		"":                                                      "",
		"javascript:alert(1)//github.com/a/b":                   "",
		"https://github.com.evil.example/a/b":                   "",
		"https://evil.example/github.com/a/b":                   "",
		"https://user:secret@github.com/a/b":                    "",
		"https://github.com@evil.example/a/b":                   "",
		"https://github.com:8443/a/b":                           "",
		"https://gitlab.evil.example/a/b":                       "",
		"https://github.com/a":                                  "",
		"https://github.com/a/b/c":                              "",
		"https://github.com/a/../b":                             "",
		"https://github.com/a/b c":                              "",
		"https://github.com/a/b)[x](https://evil.example":       "",
		"https://github.com/a/b\"onmouseover=1":                 "",
		"https://github.com/a/b?x=1":                            "",
		"https://github.com/a/b#x":                              "",
		"https://github.com/a/b\nhttps://evil.example":          "",
		"https://github.com/a/`b`":                              "",
		"../llvm-project.git":                                   "",
		"file:///etc/passwd":                                    "",
		"https://github.com/a/" + strings.Repeat("b", 600):      "",
		"ftp://github.com/a/b":                                  "",
		"https://github.com/%2e%2e/b":                           "",
		"https://GITHUB.com/ROCm/llvm-project":                  "",
		"https://github.com/ROCm/llvm-project.git\u202egit.exe": "",
		"https://github.com/<img src=x>/b":                      "",
	} {
		if got := rangeLink(url, one, url, two); got != want {
			t.Errorf("%q: %q", url, got)
		}
	}
	url := "https://github.com/a/b"
	for _, c := range []struct{ urlA, a, urlB, b, want string }{
		{url, one, url, one, ""},
		{url, "", url, two, url + "/commit/" + two},
		{url, "main", url, two, url + "/commit/" + two},
		{url, one, url, "main", ""},
		{url, one, url, two + ")", ""},
		{url, one, url, strings.Repeat("A", 40), ""},
		{url, one, "https://github.com/other/b", two, "https://github.com/other/b/commit/" + two},
		{"git@github.com:A/b.git", one, url, two, url + "/compare/" + one + "..." + two},
		{"", "", url, strings.Repeat("a", 64), url + "/commit/" + strings.Repeat("a", 64)},
	} {
		if got := rangeLink(c.urlA, c.a, c.urlB, c.b); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func TestSubmodules(t *testing.T) {
	const url = "https://github.com/a/b.git"
	for _, c := range []struct {
		name    string
		a, b    *rockSubmodule
		why     string
		differs bool
		link    bool
	}{
		{"same", &rockSubmodule{URL: url, Pin: one}, &rockSubmodule{URL: "git@github.com:a/b", Pin: one}, "", false, false},
		{"changed", &rockSubmodule{URL: url, Pin: one}, &rockSubmodule{URL: url, Pin: two}, "changed", true, true},
		{"added", nil, &rockSubmodule{URL: url, Pin: two}, "added", true, true},
		{"removed", &rockSubmodule{URL: url, Pin: two}, nil, "removed", true, false},
		{"moved", &rockSubmodule{URL: url, Pin: one}, &rockSubmodule{URL: "https://github.com/c/b", Pin: two}, "moved", true, true},
		{"moved to nowhere known", &rockSubmodule{URL: url, Pin: one}, &rockSubmodule{URL: "https://evil.example/c/b", Pin: two}, "moved", true, false},
		{"patches", &rockSubmodule{URL: url, Pin: one}, &rockSubmodule{URL: url, Pin: one, Patches: []string{"p"}}, "patches", true, false},
		{"without git", &rockSubmodule{URL: url}, &rockSubmodule{URL: url}, "", false, false},
	} {
		s, differs := compareSubmodule("x", c.a, c.b)
		if differs != c.differs || differs && (s.Why != c.why || (s.Link != "") != c.link) {
			t.Errorf("%s: %+v, %v", c.name, s, differs)
		}
	}
}

// Manifests that nobody meant are refused, whatever their size.
func TestParseRockRefuses(t *testing.T) {
	many, _ := json.Marshal(rockManifest{Submodules: make([]rockSubmodule, maxSubmodules+1)})
	patches, _ := json.Marshal(rockManifest{Submodules: []rockSubmodule{{Patches: make([]string, maxPatches+1)}}})
	for _, in := range []string{
		"", "{", "[]", `"x"`, `{"submodules": {}}`, `{"submodules": [1]}`, `{"the_rock_commit": 1}`, `{"flags": []}`,
		fmt.Sprintf(`{"the_rock_commit": %q}`, strings.Repeat("a", maxWord+1)), string(many), string(patches),
		strings.Repeat("[", 100_000),
	} {
		if m, err := parseRock([]byte(in)); err == nil {
			t.Errorf("%.60q was read: %.200v", in, m)
		}
	}
	for _, in := range []string{`{}`, `null`, `{"the_rock_commit": null, "submodules": [{"pin_sha": null, "patches": null}]}`, rockA} {
		if _, err := parseRock([]byte(in)); err != nil {
			t.Errorf("%q: %v", in, err)
		}
	}
}

var safeLink = regexp.MustCompile(`\Ahttps://(github\.com|gitlab\.com|gitlab\.freedesktop\.org|gitlab\.kitware\.com)/[A-Za-z0-9._/-]+\z`)

// FuzzRock: any bytes are refused, or give links to known forges alone.
func FuzzRock(f *testing.F) {
	f.Add([]byte(rockA))
	f.Add([]byte(`{"submodules":[{"submodule_name":"a","submodule_url":"git@github.com:x/y.git","pin_sha":"` + two + `"}]}`))
	f.Add([]byte(`{"submodules":[{"submodule_url":"https://github.com/x/](y"}],"flags":{"a":[1,{}]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseRock(b)
		if err != nil {
			return
		}
		for name, s := range submodules(m) {
			other := *s
			other.Pin = one
			for _, pair := range [][2]*rockSubmodule{{nil, s}, {s, nil}, {&other, s}, {s, s}} {
				got, differs := compareSubmodule(name, pair[0], pair[1])
				if got.Link != "" && (!differs || !safeLink.MatchString(got.Link)) {
					t.Fatalf("%q", got.Link)
				}
			}
		}
		for _, raw := range m.Flags {
			if len(flagText(raw)) > 210 {
				t.Fatalf("%q", raw)
			}
		}
	})
}
