package fetch

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// bucketPage is one page of a listing; more is what it says of the next.
func bucketPage(more string, keys ...string) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">` + more)
	for _, k := range keys {
		fmt.Fprintf(&b, `<Contents><Key>%s</Key><LastModified>2026-09-30T03:14:22.000Z</LastModified><Size>3</Size></Contents>`, k)
	}
	return b.String() + `</ListBucketResult>`
}

func TestBucketKeys(t *testing.T) {
	for _, c := range []struct{ name, base, key, url string }{
		{"at the root", "https://b.s3.example", testName, "https://b.s3.example/" + testName},
		{"with a query", "https://b.s3.example/?list-type=2&prefix=v4/", "v4/tarball/" + testName, "https://b.s3.example/v4/tarball/" + testName},
		{"path style", "https://s3.example/b", "v4/" + testName, "https://s3.example/b/v4/" + testName},
		{"path style, slash", "https://s3.example/b/", "v4/" + testName, "https://s3.example/b/v4/" + testName},
		{"plus and space", "https://h/", "a +%/" + nameBKC, "https://h/a%20%2B%25/" + strings.ReplaceAll(nameBKC, "+", "%2B")},
		{"parent", "https://h/", "a/../" + testName, ""},
		{"here", "https://h/", "./" + testName, ""},
		{"no name", "https://h/", "a//" + testName, ""},
		{"root", "https://h/", "/" + testName, ""},
		{"prefix that is no directory", "https://h/", "x-" + testName, ""},
		{"directory", "https://h/", testName + "/", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, next, err := parseIndex([]byte(bucketPage("", c.key)), mustURL(t, c.base), testNow)
			if err != nil || next != nil {
				t.Fatal(next, err)
			}
			got := ""
			if len(p.releases) == 1 {
				got = p.releases[0].URL
			}
			if got != c.url {
				t.Errorf("URL %q, want %q", got, c.url)
			}
		})
	}
}

// TestBucketSpellings: XML that says the same.
func TestBucketSpellings(t *testing.T) {
	const ns = `="http://s3.amazonaws.com/doc/2006-03-01/"`
	key := `<Key>` + nameBKC + `</Key>`
	for name, body := range map[string]string{
		"a comment before it":     `<!-- made by hand --><ListBucketResult><Contents>` + key + `</Contents></ListBucketResult>`,
		"a comment in the prolog": `<?xml version="1.0" encoding="utf-8"?><!-- > --><ListBucketResult><Contents>` + key + `</Contents></ListBucketResult>`,
		"a name space":            `<ListBucketResult xmlns` + ns + `><Contents>` + key + `</Contents></ListBucketResult>`,
		"a name space's prefix":   `<s3:ListBucketResult xmlns:s3` + ns + `><s3:Contents><s3:Key>` + nameBKC + `</s3:Key></s3:Contents></s3:ListBucketResult>`,
		"CDATA":                   `<ListBucketResult><Contents><Key><![CDATA[` + nameBKC + `]]></Key></Contents></ListBucketResult>`,
		"references":              `<ListBucketResult><Contents><Key>` + strings.ReplaceAll(nameBKC, "+", "&#x2b;") + `</Key></Contents></ListBucketResult>`,
		"spaces":                  "\n<ListBucketResult>\n<IsTruncated> false </IsTruncated>\n<Contents>" + key + "<Size>\n</Size></Contents></ListBucketResult >\n",
	} {
		p, next, err := parseIndex([]byte(body), mustURL(t, "https://b.s3.example/"), testNow)
		if err != nil || next != nil || len(p.releases) != 1 || p.releases[0].URL != "https://b.s3.example/"+strings.ReplaceAll(nameBKC, "+", "%2B") {
			t.Errorf("%s: %+v, %v, %v", name, p, next, err)
		}
	}
}

// TestBucketThatIsCutOff: version 2 goes on by a token alone. A server of it
// ignores markers, and would send its first page again.
func TestBucketThatIsCutOff(t *testing.T) {
	body := []byte(bucketPage("<IsTruncated>true</IsTruncated>", testName))
	if _, next, err := parseIndex(body, mustURL(t, "https://h/?list-type=2"), testNow); !isA[*LayoutError](err) || !strings.Contains(err.Error(), "how to go on") {
		t.Errorf("version 2: %+v, %v", next, err)
	}
	if _, next, err := parseIndex(body, mustURL(t, "https://h/"), testNow); err != nil || next == nil || next.marker != testName {
		t.Errorf("version 1: %+v, %v", next, err)
	}
}

// TestBucketPaging: what the pages say together counts, so that a first page
// of other keys hides nothing.
func TestBucketPaging(t *testing.T) {
	for name, c := range map[string]struct {
		first, query, second string
	}{
		"version 2":                    {`<IsTruncated>true</IsTruncated><NextContinuationToken>a+b/=</NextContinuationToken>`, "?list-type=2", "continuation-token=a%2Bb%2F%3D&list-type=2"},
		"version 2 that was not asked": {`<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>`, "", "continuation-token=t&list-type=2"},
		"version 1":                    {`<IsTruncated>true</IsTruncated>`, "?prefix=x", "marker=index+1.html&prefix=x"},
		"version 1, with a delimiter":  {`<IsTruncated>true</IsTruncated><NextMarker>m</NextMarker>`, "?delimiter=/", "delimiter=%2F&marker=m"},
		"version 1, escaped":           {`<IsTruncated>true</IsTruncated><EncodingType>url</EncodingType><NextMarker>m%2Bn+o</NextMarker>`, "", "marker=m%2Bn+o"},
	} {
		t.Run(name, func(t *testing.T) {
			var queries []string
			index := indexServer(t, func(w http.ResponseWriter, r *http.Request) {
				queries = append(queries, r.URL.RawQuery)
				switch len(queries) {
				case 1:
					fmt.Fprint(w, bucketPage(c.first, "index 1.html"))
				case 2: // a page may fail once
					w.WriteHeader(http.StatusServiceUnavailable)
				default:
					fmt.Fprint(w, bucketPage("", testName))
				}
			})
			l, err := nightClient(t).List(t.Context(), "nightly", Sources(index+c.query))
			if err != nil || len(l.Releases) != 1 || l.Releases[0].URL != index+testName || len(l.Unparsed) != 1 {
				t.Fatalf("%+v, %v", l, err)
			}
			if len(queries) != 3 || queries[1] != c.second || queries[2] != c.second {
				t.Errorf("queries %q, want %q", queries, c.second)
			}
		})
	}
}

func TestBucketWithoutEnd(t *testing.T) {
	for name, c := range map[string]struct {
		token func(n int64) string
		says  string
		most  int64
	}{
		"new pages for ever": {func(n int64) string { return fmt.Sprint(n) }, "more than 100 pages", maxPages},
		"the same page":      {func(int64) string { return "same" }, "followed by itself", 2},
	} {
		t.Run(name, func(t *testing.T) {
			var n atomic.Int64
			index := indexServer(t, func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(w, bucketPage(`<IsTruncated>true</IsTruncated><NextContinuationToken>`+c.token(n.Add(1))+`</NextContinuationToken>`, testName))
			})
			_, err := nightClient(t).List(t.Context(), "nightly", Sources(index))
			if !isA[*LayoutError](err) || !strings.Contains(err.Error(), c.says) || n.Load() != c.most {
				t.Errorf("%d pages, error %v", n.Load(), err)
			}
		})
	}
}

// TestBucketPageThatFails: half a listing is none.
func TestBucketPageThatFails(t *testing.T) {
	index := indexServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("continuation-token") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		fmt.Fprint(w, bucketPage(`<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>`, testName))
	})
	if _, err := nightClient(t).List(t.Context(), "nightly", Sources(index)); !isA[*StatusError](err) {
		t.Errorf("%v", err)
	}
}

// TestBucketIsNotRememberedInPart: the first page may stay as it is while a
// later one grows.
func TestBucketIsNotRememberedInPart(t *testing.T) {
	asked := false
	index := indexServer(t, func(w http.ResponseWriter, r *http.Request) {
		asked = asked || r.Header.Get("If-None-Match") != "" && !r.URL.Query().Has("continuation-token")
		w.Header().Set("ETag", `"1"`)
		if r.URL.Query().Has("continuation-token") {
			fmt.Fprint(w, bucketPage("", nameMultiarch))
			return
		}
		fmt.Fprint(w, bucketPage(`<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>`, testName))
	})
	client := nightClient(t)
	for range 2 {
		if l, err := client.List(t.Context(), "nightly", Sources(index)); err != nil || len(l.Releases) != 2 || asked {
			t.Errorf("%+v, %v, asked %t", l, err, asked)
		}
	}
}
