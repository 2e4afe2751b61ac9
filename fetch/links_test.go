package fetch

import (
	"strings"
	"testing"
	"time"
)

func TestLinksThatAreFollowed(t *testing.T) {
	for _, c := range []struct {
		name, page, href string
		url              string // "" is not followed
		refused          int
	}{
		{"beside", "https://h/d/", testName, "https://h/d/" + testName, 0},
		{"with a dot", "https://h/d/", "./" + testName, "https://h/d/" + testName, 0},
		{"absolute path", "https://h/d/", "/d/" + testName, "https://h/d/" + testName, 0},
		{"whole URL", "https://h/d/", "https://H:443/d/" + testName, "https://h/d/" + testName, 0},
		{"query and fragment", "https://h/d/?x#y", testName + "?download=1#top", "https://h/d/" + testName, 0},
		{"page with a name", "https://h/d/index.html", testName, "https://h/d/" + testName, 0},
		{"page without a slash", "https://h/d", "/d/" + testName, "https://h/d/" + testName, 0},
		{"plus", "https://h/d/", nameBKC, "https://h/d/" + strings.ReplaceAll(nameBKC, "+", "%2B"), 0},
		{"plus, escaped", "https://h/d/", strings.ReplaceAll(nameBKC, "+", "%2b"), "https://h/d/" + strings.ReplaceAll(nameBKC, "+", "%2B"), 0},
		{"directory escaped otherwise", "https://h/a%7Eb/", "/a~b/" + testName, "https://h/a~b/" + testName, 0},
		{"password in the page's URL", "https://u:secret@h/d/", testName, "https://h/d/" + testName, 0},
		{"a Nexus", "https://h/service/rest/repository/browse/raw/d/", "https://h/repository/raw/d/" + testName, "https://h/repository/raw/d/" + testName, 0},
		{"a Nexus below a path", "https://h/nx/service/rest/repository/browse/raw/d/", "/nx/repository/raw/d/" + nameBKC, "https://h/nx/repository/raw/d/" + strings.ReplaceAll(nameBKC, "+", "%2B"), 0},
		{"another repository of a Nexus", "https://h/service/rest/repository/browse/raw/d/", "https://h/repository/other/d/" + testName, "", 1},
		{"another Nexus", "https://h/service/rest/repository/browse/raw/d/", "https://g/repository/raw/d/" + testName, "", 1},
		{"another host", "https://h/d/", "https://g/d/" + testName, "", 1},
		{"another host, same scheme", "https://h/d/", "//g/d/" + testName, "", 1},
		{"another port", "https://h/d/", "https://h:8443/d/" + testName, "", 1},
		{"without TLS", "https://h/d/", "http://h/d/" + testName, "", 1},
		{"a file here", "https://h/d/", "file:///d/" + testName, "", 1},
		{"parent", "https://h/d/", "../" + testName, "", 1},
		{"parent, escaped", "https://h/d/", "%2e%2e/" + testName, "", 1},
		{"below", "https://h/d/", "old/" + testName, "", 1},
		{"another directory", "https://h/d/", "/e/" + testName, "", 1},
		{"a slash that is escaped", "https://h/d%2Fe/", "/d/e/" + testName, "", 1},
		{"unreadable", "https://h/d/", "https://h/%zz", "", 1},
		{"a directory", "https://h/d/", "old/", "", 0},
		{"the parent directory", "https://h/d/", "../", "", 0},
		{"sorting", "https://h/d/", "?C=M;O=A", "", 0},
		{"anchor", "https://h/d/", "#top", "", 0},
		{"mail", "https://h/d/", "mailto:a@h", "", 0},
		{"script", "https://h/d/", "javascript:go('" + testName + "')", "", 0},
		{"nothing", "https://h/d/", "", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := `<h1>Index of</h1><a href="` + c.href + `">x</a> <a href="therock-dist-linux-gfx900-7.9.0.tar.gz">y</a>`
			p, err := parsePage([]byte(body), mustURL(t, c.page), testNow)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range p.releases {
				if r.Family != "gfx900" {
					got = append(got, r.URL)
				}
			}
			if strings.Join(got, " ") != c.url || p.refused != c.refused || len(p.unparsed) != 0 {
				t.Errorf("URL %q, refused %d, unparsed %q", got, p.refused, p.unparsed)
			}
		})
	}
}

// TestNamesFromEscapedSlashes: a name is one segment, whatever it decodes to.
func TestNamesFromEscapedSlashes(t *testing.T) {
	p, err := parsePage([]byte(`<h1>Index of</h1><a href="..%2F`+testName+`">x</a><a href="`+testName+`">x</a>`), mustURL(t, "https://h/d/"), testNow)
	if err != nil || len(p.releases) != 1 || len(p.unparsed) != 1 || p.unparsed[0] != "../"+testName {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestBaseElement: what a browser would open is what counts.
func TestBaseElement(t *testing.T) {
	listing := `<a href="` + testName + `">` + testName + `</a>`
	_, err := parsePage([]byte(`<base href="/d/"><h1>Index of /d/</h1>`+listing), mustURL(t, "https://h/list/index.html"), testNow)
	if err == nil || !strings.Contains(err.Error(), "lead to another host or directory") {
		t.Errorf("another directory: %v", err)
	}
	p, err := parsePage([]byte(`<base href="https://h/d/">`+listing), mustURL(t, "https://h/d"), testNow)
	if err != nil || p.releases[0].URL != "https://h/d/"+testName {
		t.Errorf("the directory: %+v, %v", p, err)
	}
}

func TestTimeBesideALink(t *testing.T) {
	at := func(hour, minute, second int) time.Time {
		return time.Date(2026, 9, 30, hour, minute, second, 0, time.UTC)
	}
	const a = `<a href="` + testName + `">` + testName + `</a>`
	const other = `<a href="therock-dist-linux-gfx900-7.9.0.tar.gz">y</a>`
	for name, c := range map[string]struct {
		html string
		want time.Time
	}{
		"nginx":                {a + "  30-Sep-2026 03:14    12", at(3, 14, 0)},
		"Apache":               {a + " 2026-09-30 03:14  1.7G", at(3, 14, 0)},
		"before the link":      {"<pre>2026-09-30 03:14:22 12 " + a + "\n2026-09-01 01:01:01 12 " + other + "\n</pre>", at(3, 14, 22)},
		"before, one for all":  {"<pre>2026-09-01 01:01:01 12 " + other + " " + a + "\n2026-09-01 01:01:01 12 </pre>", time.Time{}},
		"before, after breaks": {"<pre>2026-09-30 03:14:22 12 " + a + "<br>2026-09-01 01:01:01 12 " + other + "<br></pre>", at(3, 14, 22)},
		"on the next line":     {"<pre>" + a + "\n2026-09-30 03:14:22</pre>", time.Time{}},
		"lighttpd":             {a + " 2026-Sep-30 03:14:22 1.6G", at(3, 14, 22)},
		"fancyindex":           {a + " 1.6 GiB 2026-Sep-30 03:14", at(3, 14, 0)},
		"HTTP":                 {a + " Wed, 30 Sep 2026 03:14:22 GMT", at(3, 14, 22)},
		"mail":                 {a + " Wed, 30 Sep 2026 05:14:22 +0200", at(3, 14, 22)},
		"Nexus":                {a + " Wed Sep 30 03:14:22 UTC 2026 12", at(3, 14, 22)},
		"Nexus, some zone":     {a + " Wed Sep 30 03:14:22 IST 2026 12", time.Time{}},
		"month of no name":     {a + " 2026-Foo-30 03:14:22", time.Time{}},
		"the first of two":     {a + " 2026-Sep-30 03:14:22 2026-09-30 05:14", at(3, 14, 22)},
		"seconds":              {a + " 2026-09-30 03:14:22", at(3, 14, 22)},
		"old Apache":           {a + " 30-Sep-2026 03:14:22", at(3, 14, 22)},
		"ISO 8601":             {a + " 2026-09-30T03:14:22Z", at(3, 14, 22)},
		"fraction":             {a + " 2026-09-30T03:14:22.500Z", at(3, 14, 22).Add(time.Second / 2)},
		"zone":                 {a + " 2026-09-30T05:14:22+02:00", at(3, 14, 22)},
		"zone behind space":    {a + " 2026-09-29 22:14:22 -0500", at(3, 14, 22)},
		"time element":         {a + ` <time datetime="2026-09-30T03:14:22Z">yesterday</time>`, at(3, 14, 22)},
		"own element":          {a + ` <relative-time datetime="2026-09-30T03:14:22Z">yesterday</relative-time>`, at(3, 14, 22)},
		"column before":        {`<tr><td>2026-09-30 03:14<td>` + a + `</tr>`, at(3, 14, 0)},
		"signature beside":     {`<ul><li>` + a + ` <a href="x.sig">sig</a> 2026-09-30 03:14</ul>`, at(3, 14, 0)},
		"size only":            {a + " 1794376103", time.Time{}},
		"date only":            {a + " 2026-09-30", time.Time{}},
		"no such day":          {a + " 2026-09-31 03:14", time.Time{}},
		"future":               {a + " 2036-09-30 03:14", time.Time{}},
		"of the next link":     {a + " " + other + " 2026-09-30 03:14", time.Time{}},
		"of the next row":      {`<li>` + a + `<li>` + other + ` 2026-09-30 03:14`, time.Time{}},
		"of two in a row":      {`<li>2026-09-30 03:14 ` + other + a + `</li>`, time.Time{}},
		"of the page":          {`<p>Generated 2026-09-30 03:14</p>` + a + `<hr>Generated 2026-09-30 03:14`, time.Time{}},
		"behind the list":      {`<ul><li>` + a + `</li></ul> 2026-09-30 03:14`, time.Time{}},
		"in a script":          {a + `<script>"2026-09-30 03:14"</script>`, time.Time{}},
		"too far behind":       {a + strings.Repeat(" ", maxBeside) + "2026-09-30 03:14", time.Time{}},
		"icon is a link too":   {`<a href="` + testName + `"><img></a> ` + a + " 2026-09-30 03:14", at(3, 14, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			html := c.html
			if strings.HasPrefix(html, "<tr>") {
				html = "<table>" + html + "</table>"
			}
			p, err := parsePage([]byte(html), mustURL(t, "https://h/d/"), testNow)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range p.releases {
				if r.Name == testName && !r.MTime.Equal(c.want) {
					t.Errorf("%v, want %v", r.MTime, c.want)
				}
			}
		})
	}
}

func TestSizeBesideALink(t *testing.T) {
	for text, want := range map[string]int64{
		" 30-Sep-2026 03:14   1794376103\n":            1794376103,
		" 2026-09-30 03:14  12\u00a0":                  12,
		" 2026-09-30 03:14:22 +0000 12 bytes":          12,
		" Wed Sep 30 03:14:22 UTC 2026 12":             12,
		" 2026-09-30 03:14  1.7G":                      0,
		" 2026-09-30 03:14  2 GiB":                     0,
		" 2026-09-30 03:14  -":                         0,
		" 2026-09-30 03:14  -12":                       0,
		" 2026-09-30 03:14  99999999999999999999":      0,
		" 2026-09-30 03:14":                            0,
		" 12 ":                                         0, // of no known column
		" 2026-09-30 03:14 12 therock-dist-other 4711": 0,
	} {
		if _, got := findTime([]byte(text)); got != want {
			t.Errorf("findTime(%q) finds %d bytes, want %d", text, got, want)
		}
	}
}

func TestCutOff(t *testing.T) {
	for body, want := range map[string]string{
		"<html><body><ul><li>x</ul></body></html>":         "",
		"<HTML><BODY><PRE>x</PRE></BODY></HTML>":           "",
		"<h1>x</h1>":                                       "",
		"<table><tr><td><table></table></td></tr></table>": "",
		"<html><body><ul><li>x</ul></body>":                "html",
		"<html><body><ul><li>x</ul>":                       "html",
		"<body><ul><li>x</ul>":                             "body",
		"<ul><li>x":                                        "ul",
		"<ul><li>x</ul><ul class='a'><li>y":                "ul",
		"<ol\n><li>x":                                      "ol",
		"<table><tbody><tr>":                               "table",
		"<pre>x</pr":                                       "pre",
		"<preface><tableau><old>":                          "",
		"<table></table><table></tablet>":                  "table",
	} {
		if got := cutOff([]byte(body)); got != want {
			t.Errorf("cutOff(%q) = %q, want %q", body, got, want)
		}
	}
}

func TestShortenedLabels(t *testing.T) {
	for label, want := range map[string]bool{
		testName:                       true,
		" zip " + testName + " 1.7 GB": true,
		"therock-dist-linux-gfx115..>": true,
		"therock-dist-linux-gfx115…":   true,
		"therock-dist-linux-...":       true,
		"therock..>":                   false,
		"therock-dist-linux-gfx110..>": false,
		"here":                         false,
		"":                             false,
	} {
		if got := isLabel(strings.TrimSpace(label), testName); got != want {
			t.Errorf("isLabel(%q) = %v", label, got)
		}
	}
}

// TestHostileListing: the time that a page takes grows with its length. With the
// square of it, these would take hours; the limit is for machines that are busy.
func TestHostileListing(t *testing.T) {
	for name, unit := range map[string]string{
		"links":     `<a href=x>`,
		"rows":      `<li><a href=` + testName + `>2026-09-30 03:14`,
		"tarballs":  `<a href=` + testName + `></a>`,
		"one row":   `<a href=y>z</a>`,
		"unclosed":  `<a href=x<`,
		"lines":     "<a href=y>z</a>\n",
		"long text": strings.Repeat("2026-09-30 03:1x ", 50) + `<a href=x>`,
	} {
		t.Run(name, func(t *testing.T) {
			body := `<h1>Index of</h1><table><tr><td>` + strings.Repeat(unit, maxTags/8/strings.Count(unit, "<"))
			start := time.Now()
			if _, _, err := parseIndex([]byte(body), mustURL(t, "https://h/d/"), testNow); err == nil {
				t.Error("a table without end is no error")
			}
			if took := time.Since(start); took > 2*time.Minute {
				t.Errorf("%d bytes took %s", len(body), took)
			}
		})
	}
}
