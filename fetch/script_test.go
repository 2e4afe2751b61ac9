package fetch

import (
	"net/url"
	"strings"
	"testing"
)

// TestListBehindOddScripts: what stands before the list is somebody's
// JavaScript, and at times all of it is one line.
func TestListBehindOddScripts(t *testing.T) {
	list := `const files = [` + entry("linux-gfx1151-10.2.0a20260930", 1790737964) + `];`
	for before, found := range map[string]bool{
		``:                                                   true,
		`const at = "https://h.example/";`:                   true,
		`const any = "https://h.example/*";`:                 true,
		`const root = 'a//b';`:                               true,
		"const root = `a//b\n'\"`;":                          true,
		`const quoted = 'it\'s // here';`:                    true,
		`const twice = s.replace(/\/\//, "/*");`:             true,
		`const q = s.replace(/"/g, "");`:                     true,
		`const half = a / 2; const other = b / 2;`:           true,
		`/* the list // of files */`:                         true,
		"// an apostrophe's line\n":                          true,
		"const broken = 'it never ends\n":                    true,
		`// `:                                                false,
		`/* `:                                                false,
		`/* a comment */ // `:                                false,
		`const at = "https://h.example/"; // `:               false,
		`const q = s.replace(/"/g, ""); /* `:                 false,
		"const root = 'a//b';\n/* \n":                        false,
		`const quoted = 'a\\'; /* it's not in use: `:         false,
		"const tick = `\\``; // ":                            false,
		`const old = 1; // const files = [{"name":"old"}]; `: false,
	} {
		base := &url.URL{Scheme: "https", Host: "h.example", Path: "/tarball/"}
		p, _, err := parseIndex([]byte(`<script>`+before+list+`</script>`), base, testNow)
		if (err == nil) != found || found && len(p.releases) != 1 {
			t.Errorf("behind %q: %v", before, err)
		}
	}
}

// FuzzCommented: whatever a comment holds, it is one until its end.
func FuzzCommented(f *testing.F) {
	for _, s := range []string{`"//"`, "`/*`", `'\'`, `/\//`, `= /"/ //`, "/* */", "'\n//", `"\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		commented(s)
		if line, _, _ := strings.Cut(s, "\n"); !commented("a = 1 // " + line) {
			t.Errorf("%q ends the comment of a line", line)
		}
		if text, _, _ := strings.Cut(s, "*"); !commented("'//'; /* "+text) || commented("/*"+text+"*/") {
			t.Errorf("%q moves the end of a comment", text)
		}
	})
}
