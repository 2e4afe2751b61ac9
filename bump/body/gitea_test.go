package body

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"github.com/rocm-nightly/rocm-nightly/internal/giteatest"
)

// A real Gitea keeps a text as it is, makes nothing of what strangers wrote, and
// has boxes that a person can tick and that are seen.
func TestGiteaShowsIt(t *testing.T) {
	t.Parallel()
	site := giteatest.Start(t)
	ann := site.User(t, "ann")
	repo := ann.Repo(t, "ann", "r", nil)
	client := &http.Client{Transport: site.HTTP}
	ann.Call(t, 201, "POST", repo.API()+"/issues", map[string]any{"title": "the first, which is to stay open"}, nil)
	in := told()
	in.Flavor = Gitea
	evil := nasty(hostile + " @ann closes #1 closes ann/r#1")
	evil.Flavor = Gitea
	for _, c := range []struct{ name, text, box string }{
		{"body", Render(in), BoxRetry},
		{"hostile", Render(evil), BoxRetry},
		{"dashboard", Dashboard(Gitea, board(), "today", 0), BoxRetry + ":nixpkgs"},
		{"comment", Comment("closed", hostile+" @ann closes #1\n- a\n## b\n> c\n1. d"), ""},
	} {
		at, text := issue(t, ann, repo, c.name, c.text)
		if text != c.text {
			t.Errorf("%s: Gitea has made another text of it", c.name)
		}
		boxes := page(t, client, fmt.Sprintf("%s/issues/%d", repo.Page(), at), c.name)
		if len(boxes) == 0 {
			continue
		}
		// As the page's own script does, which sends the text with CRLF.
		ticked := strings.ReplaceAll(text[:boxes[0]+1]+"x"+text[boxes[0]+2:], "\n", "\r\n")
		var out struct{ Body string }
		ann.Call(t, 201, "PATCH", fmt.Sprintf("%s/issues/%d", repo.API(), at), map[string]any{"body": ticked}, &out)
		if got := Ticked(out.Body); !slices.Equal(got, []string{c.box}) || Fingerprint(out.Body) != Fingerprint(c.text) {
			t.Errorf("%s: ticked %q, want %q; fingerprint %q", c.name, got, c.box, Fingerprint(out.Body))
		}
	}
	var events []struct{ Type string }
	ann.Call(t, 200, "GET", repo.API()+"/issues/1/timeline", nil, &events)
	if len(events) > 0 {
		t.Errorf("an issue is spoken of by a text: %v", events)
	}
}

// issue makes an issue and reads its text back.
func issue(t *testing.T, ann giteatest.User, repo giteatest.Repo, title, text string) (int64, string) {
	t.Helper()
	var out struct {
		Number int64
		Body   string
	}
	ann.Call(t, 201, "POST", repo.API()+"/issues", map[string]any{"title": title, "body": text}, &out)
	ann.Call(t, 200, "GET", fmt.Sprintf("%s/issues/%d", repo.API(), out.Number), nil, &out)
	return out.Number, out.Body
}

// page looks at a text as Gitea shows it, and returns where its boxes stand.
func page(t *testing.T, client *http.Client, address, name string) (boxes []int) {
	t.Helper()
	resp, err := client.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	doc, err := goquery.NewDocumentFromReader(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		t.Fatal(err)
	}
	shown := doc.Find(".render-content.markup").First()
	if shown.Length() == 0 {
		t.Fatalf("%s: no text on the page: %s", name, resp.Status)
	}
	shown.Find("a, img").Each(func(_ int, a *goquery.Selection) {
		if href, _ := a.Attr("href"); !linkRE.MatchString(href) {
			t.Errorf("%s: links to %q", name, href)
		}
	})
	shown.Find("table").Each(func(_ int, table *goquery.Selection) {
		n := table.Find("th").Length()
		table.Find("tbody tr").Each(func(_ int, row *goquery.Selection) {
			if row.Find("td").Length() != n {
				t.Errorf("%s: a row has %d cells of %d: %s", name, row.Find("td").Length(), n, row.Text())
			}
		})
	})
	shown.Find("input").Each(func(_ int, box *goquery.Selection) {
		at, _ := box.Attr("data-source-position")
		n, err := strconv.Atoi(at)
		if err != nil {
			t.Errorf("%s: a box that cannot be ticked", name)
		}
		boxes = append(boxes, n)
	})
	shown.Find("code, pre").Remove()
	if m := obeyedRE.FindString(shown.Text()); m != "" {
		t.Errorf("%s: %q stands outside code", name, m)
	}
	return boxes
}
