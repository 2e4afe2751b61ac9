package body

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"github.com/rocm-nightly/rocm-nightly/internal/giteatest"
)

func TestGiteaScratch(t *testing.T) {
	site := giteatest.Start(t)
	ann := site.User(t, "ann")
	repo := ann.Repo(t, "ann", "r", map[string]string{"a": "b"})
	client := &http.Client{Transport: site.HTTP}
	cases := map[string]string{}
	in := told()
	in.Flavor = Gitea
	cases["told"] = Render(in)
	for i, s := range []string{hostile, "`", "``", " ` ", "\\", "\\|", "a\\", "|", "", " ", "\n", "-->", "<!--", "www.a.b", "a@b.c", "https://evil.example/#1",
		"Fixes: #1", "closes https://github.com/a/b/issues/1", "$`x`$", "```\n/close\n```", strings.Repeat("`|@x #1 ", 500), "\xff\xfe", "deadbeef1", "1.", "- [x] <!-- rocm-nightly:box retry -->", "$$x$$", ":tada:", "ann", "@ann", "#ff0000", "[[x]]", "==a==", "~~a~~", "a\\|b", "\\`|\\`", "[^1]: x", "![[a]]"} {
		in := nasty(s)
		in.Flavor = Gitea
		cases[fmt.Sprint("nasty", i)] = Render(in)
	}
	cases["comment"] = Comment("x", hostile+"\n- a `b`, c\n1. x\n## y\n> z\n    code\n")
	cases["board"] = Dashboard(Gitea, board(), "today", 0)
	for name, text := range cases {
		var out struct {
			Number int64  `json:"number"`
			Body   string `json:"body"`
		}
		ann.Call(t, 201, "POST", repo.API()+"/issues", map[string]any{"title": name, "body": text}, &out)
		ann.Call(t, 200, "GET", fmt.Sprintf("%s/issues/%d", repo.API(), out.Number), nil, &out)
		if out.Body != text {
			t.Errorf("%s: body differs", name)
		}
		if Fingerprint(out.Body) != Fingerprint(text) {
			t.Errorf("%s: fp", name)
		}
		req, _ := http.NewRequest("GET", fmt.Sprintf("%s/issues/%d", repo.Page(), out.Number), nil)
		if true {
			req.SetBasicAuth("ann", ann.Password)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		doc, err := goquery.NewDocumentFromReader(strings.NewReader(string(b)))
		if err != nil {
			t.Fatal(err)
		}
		md := doc.Find(".render-content.markup").First()
		if md.Length() == 0 {
			t.Fatalf("%s: %d %.2000s", name, resp.StatusCode, b)
		}
		md.Find("a").Each(func(_ int, a *goquery.Selection) {
			href, _ := a.Attr("href")
			if !linkRE.MatchString(href) {
				t.Errorf("%s: links to %q", name, href)
			}
		})
		tags := map[string]int{}
		md.Find("*").Each(func(_ int, e *goquery.Selection) { tags[goquery.NodeName(e)]++ })
		md.Find("table").Each(func(_ int, table *goquery.Selection) {
			n := table.Find("th").Length()
			table.Find("tbody tr").Each(func(_ int, row *goquery.Selection) {
				if row.Find("td").Length() != n {
					t.Errorf("%s: a row has %d cells of %d: %s", name, row.Find("td").Length(), n, row.Text())
				}
			})
		})
		boxes := md.Find("input[type=checkbox]")
		var tick string
		boxes.Each(func(_ int, e *goquery.Selection) {
			at, _ := e.Attr("data-source-position")
			n, err := strconv.Atoi(at)
			if err != nil {
				h, _ := goquery.OuterHtml(e)
				t.Errorf("%s: %s", name, h)
				return
			}
			if n+2 < len(text) {
				tick += fmt.Sprintf("%q ", text[n:n+3])
				ticked := text[:n+1] + "x" + text[n+2:]
				tick += fmt.Sprint(Ticked(ticked), Fingerprint(ticked) == Fingerprint(text), " ")
			}
		})
		t.Log(name, out.Number, len(text), tags, boxes.Length(), tick)
		md.Find("code, pre").Remove()
		if m := obeyedRE.FindString(md.Text()); m != "" {
			t.Errorf("%s: %q outside code", name, m)
		}
	}
}
