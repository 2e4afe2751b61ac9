package fetch

import (
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"
)

var testNow = time.Date(2026, 10, 1, 6, 30, 0, 0, time.UTC)

func mustURL(t testing.TB, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func fixture(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/index.html")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestParsePageReadsTheRealFormat(t *testing.T) {
	p, err := parsePage(fixture(t), mustURL(t, "https://nightly.repo.example/rocm/core/tarball/"), testNow)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.releases) != 8 || len(p.unparsed) != 2 {
		t.Fatalf("%d releases, unparsed %q", len(p.releases), p.unparsed)
	}
	r := p.releases[0]
	if r.Family != "gfx1151" || r.Version.String() != "10.2.0a20260930" || r.Platform != "linux" || r.Tests {
		t.Errorf("first release: %+v", r)
	}
	if want := time.Date(2026, 9, 30, 3, 12, 44, 512000000, time.UTC); !r.MTime.Equal(want) || r.MTime.Location() != time.UTC {
		t.Errorf("mtime %v, want %v", r.MTime, want)
	}
	if want := "https://nightly.repo.example/rocm/core/tarball/therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz"; r.URL != want {
		t.Errorf("URL %s, want %s", r.URL, want)
	}
}

func page1(script string) string {
	return "<!DOCTYPE html><html><head><title>t</title></head><body><script>" + script + "</script></body></html>"
}

const one = `{"name":"therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz","mtime":1790737964.5}`

func TestParsePageToleratesChangesThatDoNotMatter(t *testing.T) {
	for name, html := range map[string]string{
		"const":                   page1(`const files = [` + one + `];`),
		"let":                     page1(`let files=[` + one + `]`),
		"var and whitespace":      page1("var\n files \t=\n [\n" + one + "\n] ;"),
		"no declaration":          page1(`files=[` + one + `]`),
		"window":                  page1(`window.files = [` + one + `];`),
		"statements around":       page1(`const a = [1,2]; if (a[0] < 3) {} const files = [` + one + `]; files.sort((x, y) => x[0] - y[0]); const b = ["]"];`),
		"brackets in a name":      page1(`const files = [{"name":"odd]name[.tar.gz","mtime":1},` + one + `]`),
		"unknown fields":          page1(`const files = [{"size":12,"sha256":"x","tags":["]",{}],` + one[1:] + `]`),
		"other scripts":           `<script>const profiles = [1];</script><script src=x></script>` + page1(`const files = [`+one+`]`),
		"empty one first":         page1(`let files = []; `) + page1(`files = [`+one+`]`),
		"a decoy first":           page1(`let files = [not json]; `) + page1(`files = [`+one+`]`),
		"an old one in //":        page1("// const files = [{\"name\":\"therock-dist-linux-gfx900-1.0.0.tar.gz\",\"mtime\":1}];\nconst files = [" + one + `];`),
		"an old one in /* */":     page1(`/* const files = [{"name":"therock-dist-linux-gfx900-1.0.0.tar.gz","mtime":1}]; */ const files = [` + one + `];`),
		"a URL before it":         page1(`const base = "https://h/"; const files = [` + one + `];`),
		"no html around":          `<script>const files = [` + one + `]`,
		"a comma behind the last": page1("const files = [\n" + one + ",\n];"),
		"a bad entry":             page1(`const files = [1, null, "x", {"name":7}, {}, ` + one + `]`),
	} {
		t.Run(name, func(t *testing.T) {
			p, err := parsePage([]byte(html), mustURL(t, "https://h/d/"), testNow)
			if err != nil {
				t.Fatal(err)
			}
			if len(p.releases) != 1 || p.releases[0].Family != "gfx1151" {
				t.Errorf("releases %v", p.releases)
			}
		})
	}
}

func TestParsePageRefusesAnotherLayout(t *testing.T) {
	for name, c := range map[string]struct{ html, says string }{
		"error page":       {`<html><title>Access Denied</title><body>403</body>`, `Access Denied`},
		"empty":            {``, "no script"},
		"links only":       {`<a href="therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz">x</a>`, "no script"},
		"script without":   {page1(`const items = [` + one + `]`), "no script"},
		"comparison":       {page1(`if (files == [1]) {}`), "no script"},
		"cut off":          {`<script>const files = [` + one + `,{"name":"thero`, "after 1 entries"},
		"cut off at comma": {`<script>const files = [` + one, "after 1 entries"},
		"javascript":       {page1(`const files = [{name: 'x'}]`), "cannot be read"},
		"unknown names":    {page1(`const files = [{"name":"amd-rocm-10.3.0-linux.tar.zst","mtime":1}]`), "amd-rocm-10.3.0-linux.tar.zst"},
		"escaping names":   {page1(`const files = [{"name":"../therock-dist-linux-gfx1151-10.2.0.tar.gz"},{"name":"a/therock-dist-linux-gfx1151-10.2.0.tar.gz"}]`), "none of its 2 names"},
		"nothing but tags": {strings.Repeat("<br>", maxTags+1), "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parsePage([]byte(c.html), mustURL(t, "https://u:secret@h/d/?sig=secret"), testNow)
			if _, ok := errors.AsType[*LayoutError](err); !ok || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "layout of the page changed") {
				t.Fatalf("error %v, want a LayoutError that says %q", err, c.says)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the error tells a secret: %v", err)
			}
		})
	}
}

func TestParsePageEmptyListIsNothingPublished(t *testing.T) {
	p, err := parsePage([]byte(page1(`const files = [];`)), mustURL(t, "https://h/d/"), testNow)
	if err != nil || len(p.releases) != 0 {
		t.Fatalf("%+v, %v", p, err)
	}
}

func TestMTimeThatCannotBeIsTheZeroTime(t *testing.T) {
	for _, raw := range []string{``, `null`, `"1790737964"`, `-1`, `0`, `1e300`, `99999999999999`, `{}`, `1890737964`} {
		if got := parseMTime([]byte(raw), testNow); !got.IsZero() {
			t.Errorf("parseMTime(%s) = %v", raw, got)
		}
	}
	if got := parseMTime([]byte(`1790737964.5`), testNow); got.Nanosecond() != 5e8 {
		t.Errorf("the fraction is lost: %v", got)
	}
}

func TestFileURL(t *testing.T) {
	for _, c := range []struct{ base, name, want string }{
		{"https://h/a/b/", "x.tar.gz", "https://h/a/b/x.tar.gz"},
		{"https://h/a/b", "x.tar.gz", "https://h/a/b/x.tar.gz"},
		{"https://h/a/index.html?q#f", "x.tar.gz", "https://h/a/x.tar.gz"},
		{"https://h", "x.tar.gz", "https://h/x.tar.gz"},
		{"https://u:p@h/a%2Fb/", "x+y 1.tar.gz", "https://h/a%2Fb/x%2By%201.tar.gz"},
	} {
		if got := fileURL(mustURL(t, c.base), c.name); got != c.want {
			t.Errorf("fileURL(%s, %s) = %s, want %s", c.base, c.name, got, c.want)
		}
	}
}

func FuzzPage(f *testing.F) {
	f.Add(fixture(f))
	for _, s := range []string{"", page1(`const files = [` + one + `]`), page1(`files=[]`), `<script>files=[[[[`, `<script>files = [` + one,
		page1(`const files = [{"name":"therock-dist-linux-multiarch-tests-10.2.0a20260930+bkc.20261001.tar.gz","mtime":null}]`)} {
		f.Add([]byte(s))
	}
	base := mustURL(f, "https://h/d/")
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := parsePage(body, base, testNow)
		if err != nil {
			if _, ok := errors.AsType[*LayoutError](err); !ok {
				t.Fatalf("error %T", err)
			}
			return
		}
		for _, r := range p.releases {
			u, err := url.Parse(r.URL)
			if err != nil || u.Host != "h" || !strings.HasPrefix(u.Path, "/d/") || strings.Count(u.Path, "/") != 2 || u.Path[3:] != r.Name {
				t.Fatalf("release %q has URL %q", r.Name, r.URL)
			}
			if r.MTime.After(testNow.Add(24 * time.Hour)) {
				t.Fatalf("release %q is from the future: %v", r.Name, r.MTime)
			}
		}
	})
}
