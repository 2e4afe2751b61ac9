package fetch

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"
)

// The files in testdata list the same four tarballs. nginx.html, nginx.json
// and python.html are those servers' own; the others follow what Apache 2.4,
// lighttpd, Caddy, object and artifact stores and page generators write.
const (
	tarballSize   = 1794376103
	nameBKC       = "therock-dist-linux-gfx1151-10.2.0a20260928+bkc.20260929.tar.gz"
	nameMultiarch = "therock-dist-linux-multiarch-10.2.0a20260930.tar.gz"
	nameAdhoc     = "therock-dist-linux-gfx1151-ADHOCBUILD.tar.gz"
)

func testdata(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// serveTestdata answers every request as file says for its URL, without a
// content type that would tell the format.
func serveTestdata(t testing.TB, file func(*url.URL) string) string {
	return indexServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Write(testdata(t, file(r.URL)))
	})
}

func TestListReadsEveryFormat(t *testing.T) {
	const prefix = "v4/tarball/"
	for _, c := range []struct {
		file   string
		keys   string        // directory of the keys of a bucket
		grain  time.Duration // what the format leaves out of times
		refuse int
		size   int64 // 0 where the format rounds it, or leaves it out
		noTime bool
	}{
		{file: "nginx.html", grain: time.Minute, size: tarballSize},
		{file: "nginx.json", grain: time.Second, size: tarballSize},
		{file: "fancyindex.html", grain: time.Minute},
		{file: "lighttpd.html", grain: time.Second},
		{file: "caddy.html", grain: time.Second},
		{file: "python.html", noTime: true},
		{file: "artifactory.html", grain: time.Minute},
		{file: "minio.xml", keys: prefix, grain: time.Second, size: tarballSize},
		{file: "apache.html", grain: time.Minute},
		{file: "apache-table.html", grain: time.Minute},
		{file: "table.html", grain: time.Second, refuse: 1},
		{file: "list.html", grain: time.Second},
		{file: "bucket-1.xml", keys: prefix, grain: time.Second, size: tarballSize},
		{file: "bucket-v1-1.xml", keys: prefix, grain: time.Second, size: tarballSize},
		{file: "files.json", grain: time.Second, size: tarballSize},
		{file: "files.ndjson", grain: time.Second, size: tarballSize},
	} {
		t.Run(c.file, func(t *testing.T) {
			at := serveTestdata(t, func(u *url.URL) string {
				if q := u.Query(); q.Get("continuation-token") == "1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=" && q.Get("list-type") == "2" || q.Get("marker") == prefix+testName {
					return strings.TrimSuffix(c.file, "1.xml") + "2.xml"
				}
				return c.file
			})
			l, err := nightClient(t).List(t.Context(), "nightly", Sources(at+"?prefix=v4%2Ftarball%2F"))
			if err != nil {
				t.Fatal(err)
			}
			if s := l.Sources[0]; s.Releases != 3 || s.Unparsed != 1 || s.Refused != c.refuse || l.Unparsed[0] != nameAdhoc {
				t.Errorf("source %+v, unparsed %q", s, l.Unparsed)
			}
			want := map[string]time.Time{
				testName:      time.Date(2026, 9, 30, 3, 14, 22, 0, time.UTC),
				nameMultiarch: time.Date(2026, 9, 30, 4, 3, 31, 0, time.UTC),
				nameBKC:       time.Date(2026, 9, 29, 5, 21, 7, 0, time.UTC),
			}
			for _, r := range l.Releases {
				if c.noTime {
					want[r.Name] = time.Time{}
				}
				if r.Size != c.size {
					t.Errorf("%s has %d bytes, want %d", r.Name, r.Size, c.size)
				}
				if got := r.MTime.Truncate(c.grain); !got.Equal(want[r.Name].Truncate(c.grain)) || r.MTime.Location() != time.UTC {
					t.Errorf("%s is of %v", r.Name, r.MTime)
				}
				if u := at + c.keys + strings.ReplaceAll(r.Name, "+", "%2B"); r.URL != u {
					t.Errorf("URL %s, want %s", r.URL, u)
				}
				delete(want, r.Name)
			}
			if len(want) > 0 {
				t.Errorf("not listed: %v", want)
			}
		})
	}
}

func TestEmptyIndexIsNothingPublished(t *testing.T) {
	for name, body := range map[string]string{
		"array":           ` [ ] ` + "\n",
		"bucket":          `<?xml version="1.0"?><ListBucketResult><KeyCount>0</KeyCount><IsTruncated>false</IsTruncated></ListBucketResult>`,
		"bare bucket":     "\xef\xbb\xbf" + `<ListBucketResult></ListBucketResult>`,
		"directory":       `<html><head><title>Index of /x/</title></head><body><h1>Index of /x/</h1><hr><pre><a href="../">../</a>` + "\n" + `</pre><hr></body></html>`,
		"Python's":        `<title>Directory listing for /x/</title><h1>Directory listing for /x/</h1><hr><ul></ul>`,
		"only a title":    `<TITLE>INDEX OF /x</TITLE>`,
		"only a headline": `<h1>Index of /x</h1><a href="/">Parent Directory</a>`,
		"subdirectories":  `<h1>Index of /x</h1><ul><li><a href="v4/">v4/</a></ul>`,
	} {
		t.Run(name, func(t *testing.T) {
			p, next, err := parseIndex([]byte(body), mustURL(t, "https://h/x/"), testNow)
			if err != nil || next != nil || p.names() != 0 || p.known(mustURL(t, "https://h/x/")) != nil {
				t.Errorf("%+v, %v, %v", p, next, err)
			}
		})
	}
}

func TestIndexOfNoFormatIsRefused(t *testing.T) {
	const contents = `<Contents><Key>` + testName + `</Key></Contents>`
	for name, c := range map[string]struct{ body, says string }{
		"nothing":              {" \n", "it is empty"},
		"prose":                {`<title>Downloads</title><p>Get <a href="` + testName + `">tonight's build</a>!`, `no listing of links (title "Downloads")`},
		"text":                 {"ok\n", "no script"},
		"cut off listing":      {`<html><head><title>Index of /x/</title></head><body><pre><a href="../">../</a>`, "cut off after 0 names: <html>"},
		"cut off table":        {`<table><tr><td><a href="` + testName + `">` + testName + `</a>`, "cut off after 1 names: <table>"},
		"other names":          {`<h1>Index of /x</h1><a href="a.tar.gz">a.tar.gz</a><a href="b">b</a>`, `none of its 2 names is one that is known (such as "a.tar.gz")`},
		"other hosts":          {`<h1>Index of /x</h1><a href="https://cdn/x/` + testName + `">` + testName + `</a>`, "all 1 references to files lead to another host"},
		"array cut off":        {`[{"name":"` + testName + `"}`, "after 1 entries"},
		"array and a comma":    {`[{"name":"` + testName + `"},]`, "cannot be read"},
		"array and more":       {`[{"name":"` + testName + `"}] [`, "something follows"},
		"array of other names": {`["a","b"]`, "none of its 2 names"},
		"an error in JSON":     {`{"message":"Not Found","status":"404"}`, "none of its 1 names"},
		"lines cut off":        {`{"name":"` + testName + "\"}\n{\"na", "after 1 entries"},
		"lines of no JSON":     {"{{", "after 0 entries"},
		"an error in XML":      {`<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>`, "an XML document of <Error>"},
		"XML cut off":          {`<?xml version="1.0"?><ListBucketResult>` + contents + `<Conte`, "cannot be read"},
		"XML of entities":      {`<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa">]><ListBucketResult><Contents><Key>&a;</Key></Contents></ListBucketResult>`, "cannot be read"},
		"no way to go on":      {`<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>`, "does not say how to go on"},
		"a bad key":            {`<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>%zz</Key></Contents></ListBucketResult>`, "the key \"%zz\""},
		"a bad marker":         {`<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><NextMarker>%zz</NextMarker></ListBucketResult>`, "the marker \"%zz\""},
		"nothing but keys":     {`<ListBucketResult>` + strings.Repeat("<Contents/>", maxTags) + `</ListBucketResult>`, "more than"},
		"keys of other names":  {`<ListBucketResult><Contents><Key>index.html</Key></Contents></ListBucketResult>`, `none of its 1 names`},
		"keys that climb":      {`<ListBucketResult><Contents><Key>../` + testName + `</Key></Contents><Contents><Key>/` + testName + `</Key></Contents></ListBucketResult>`, "all 2 references"},
		"one name twice":       {bucketPage("", "v4/tarball-asan/"+testName, "v4/tarball/"+testName), "add a prefix"},
		"a key without end":    {`<ListBucketResult><Contents><Key>` + strings.Repeat("a/", maxKey) + testName + `</Key></Contents></ListBucketResult>`, "none of its 1 names"},
	} {
		t.Run(name, func(t *testing.T) {
			base := mustURL(t, "https://u:secret@h/x/?sig=secret")
			p, _, err := parseIndex([]byte(c.body), base, testNow)
			if err == nil {
				err = p.known(base)
			}
			if !isA[*LayoutError](err) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error %v, want a LayoutError that says %q", err, c.says)
			}
		})
	}
}

func TestMTimeOfJSON(t *testing.T) {
	want := time.Date(2026, 9, 30, 3, 14, 22, 0, time.UTC)
	for raw, want := range map[string]time.Time{
		`"2026-09-30T03:14:22Z"`:              want,
		`"2026-09-30T05:14:22+02:00"`:         want,
		`"2026-09-30T03:14:22.25Z"`:           want.Add(250 * time.Millisecond),
		`"Wed, 30 Sep 2026 03:14:22 GMT"`:     want,
		`"2036-09-30T03:14:22Z"`:              {},
		`"1999-09-30T03:14:22Z"`:              {},
		`"yesterday"`:                         {},
		`""`:                                  {},
		`"2026-09-30 03:14:22Z"`:              want, // as RFC 3339 allows
		`"2026-09-30t03:14:22z"`:              want,
		`" 2026-09-30T03:14:22Z "`:            want,
		`"Wed, 30 Sep 2026 05:14:22 +0200"`:   want,
		`"Wednesday, 30-Sep-26 03:14:22 GMT"`: want, // the old forms of HTTP
		`"Wed Sep 30 03:14:22 2026"`:          want,
		`"2026-09-30T03:14:22"`:               {}, // of no zone
		`"1790738062"`:                        {},
		`1790738062`:                          want,
		`1790738062.0`:                        want,
		`1.790738062e9`:                       want,
		`1790738062.25`:                       want.Add(250 * time.Millisecond),
		`1790738062000`:                       {}, // milliseconds are not agreed on
		`true`:                                {},
		`[1790738062]`:                        {},
	} {
		if got := parseMTime([]byte(raw), testNow); !got.Equal(want) {
			t.Errorf("parseMTime(%s) = %v, want %v", raw, got, want)
		}
	}
}

func TestSizeOfJSON(t *testing.T) {
	for raw, want := range map[string]int64{
		`12`: 12, `12.0`: 12, `1794376103`: 1794376103, `1.794376103e9`: 1794376103, `9007199254740992`: 1 << 53,
		``: 0, `null`: 0, `-1`: 0, `12.5`: 0, `"12"`: 0, `1e300`: 0, `[]`: 0, `9223372036854775807`: 0,
	} {
		if got := parseSize([]byte(raw)); got != want {
			t.Errorf("parseSize(%s) = %d, want %d", raw, got, want)
		}
	}
}

// TestEncodings: bytes that mean the same text in other ways.
func TestEncodings(t *testing.T) {
	const array = `[{"name":"` + testName + `","mtime":1790738062,"size":12}]`
	utf16 := func(s string, first, second int) string {
		b := make([]byte, 2*len(s))
		for i := range len(s) {
			b[2*i+first], b[2*i+second] = s[i], 0
		}
		return string(b)
	}
	for name, c := range map[string]struct{ body, says string }{
		"mark":                  {"\xef\xbb\xbf" + array, ""},
		"mark before NDJSON":    {"\xef\xbb\xbf\r\n" + array[1:len(array)-1] + "\r\n\r\n", ""},
		"mark before a page":    {"\xef\xbb\xbf" + page1(`const files=`+array), ""},
		"mark before a bucket":  {"\xef\xbb\xbf" + bucketPage("", testName), ""},
		"space around":          {" \r\n\t" + array + "\r\n", ""},
		"escapes":               {strings.Replace(array, "-", `\u002d`, 1), ""},
		"UTF-16, low end first": {"\xff\xfe" + utf16(array, 0, 1), "UTF-16"},
		"UTF-16, high first":    {"\xfe\xff" + utf16(array, 1, 0), "UTF-16"},
		"UTF-16 without a mark": {utf16(array, 0, 1), "UTF-16"},
		"UTF-16 of HTML":        {utf16("<h1>Index of /", 1, 0), "UTF-16"},
	} {
		t.Run(name, func(t *testing.T) {
			p, _, err := parseIndex([]byte(c.body), mustURL(t, "https://h/d/"), testNow)
			if c.says != "" {
				if !isA[*LayoutError](err) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil || len(p.releases) != 1 || p.releases[0].Name != testName {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
}

// TestPlusInEveryFormat: literal in a name, escaped in a URL, once.
func TestPlusInEveryFormat(t *testing.T) {
	escaped := strings.ReplaceAll(nameBKC, "+", "%2B")
	for name, body := range map[string]string{
		"script":          page1(`const files = [{"name":"` + nameBKC + `","mtime":1}];`),
		"script, \\u002b": page1(`const files = [{"name":"` + strings.ReplaceAll(nameBKC, "+", `\u002b`) + `","mtime":1}];`),
		"array":           `[{"name":"` + nameBKC + `"}]`,
		"NDJSON":          `{"name":"` + nameBKC + `"}`,
		"link":            `<h1>Index of /</h1><a href="` + nameBKC + `">x</a>`,
		"link, escaped":   `<h1>Index of /</h1><a href="` + escaped + `">x</a>`,
		"bucket":          bucketPage("", nameBKC),
		"bucket, url":     bucketPage("<EncodingType>url</EncodingType>", escaped),
	} {
		t.Run(name, func(t *testing.T) {
			p, _, err := parseIndex([]byte(body), mustURL(t, "https://h/d/"), testNow)
			if err != nil || len(p.releases) != 1 || p.releases[0].Name != nameBKC || p.releases[0].URL != "https://h/d/"+escaped {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
}

func FuzzIndex(f *testing.F) {
	files, err := os.ReadDir("testdata")
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range files {
		if !e.IsDir() {
			f.Add(testdata(f, e.Name()))
		}
	}
	for _, s := range []string{"", "[]", "{}", "[{\"name\":1}]", "<?xml", "<?xml?><html>", "<ListBucketResult/>", "<h1>Index of</h1><a href=x>", `<base href=//g/><h1>Index of`,
		`<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>a/../b/` + nameBKC + `</Key></Contents></ListBucketResult>`,
		`<tr><a href="..%2f` + testName + `"><a href="%2e%2e/` + testName + `"><li><a href="//g/` + testName + `">` + testName} {
		f.Add([]byte(s))
	}
	base := mustURL(f, "https://h/d/?list-type=1")
	f.Fuzz(func(t *testing.T, body []byte) {
		p, next, err := parseIndex(body, base, testNow)
		if err != nil {
			if _, ok := errors.AsType[*LayoutError](err); !ok || p != nil {
				t.Fatalf("page %v, error %T", p, err)
			}
			return
		}
		for _, r := range p.releases {
			u, err := url.Parse(r.URL)
			if err != nil || u.Scheme != "https" || u.Host != "h" || u.RawQuery+u.Fragment != "" || !strings.HasPrefix(u.Path, "/d/") || path.Base(u.Path) != r.Name || slices.Contains(strings.Split(u.Path, "/"), "..") {
				t.Fatalf("release %q has URL %q", r.Name, r.URL)
			}
			if r.MTime.After(testNow.Add(24*time.Hour)) || !r.MTime.IsZero() && r.MTime.Year() < 2015 {
				t.Fatalf("release %q is of %v", r.Name, r.MTime)
			}
		}
		if next != nil {
			if u := next.url(base); u.Host != "h" || u.Path != "/d/" || u.RawQuery == base.RawQuery {
				t.Fatalf("the next page is %s", u)
			}
		}
	})
}
