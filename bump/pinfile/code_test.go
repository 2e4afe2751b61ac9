package pinfile

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
)

func codeFixture(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "code", name))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func codeFormat(tb testing.TB, name string) format {
	tb.Helper()
	for _, f := range codeFormats() {
		if f.name == name {
			return f
		}
	}
	tb.Fatalf("no format %s", name)
	return format{}
}

// codeSpan is an edit that was made.
type codeSpan struct {
	start, end int
	text       []byte
}

// editCode edits src and tells which bytes it replaced. It reads every key
// back.
func editCode(f format, src []byte, set map[string]string) ([]byte, []codeSpan, error) {
	doc, err := f.parse(src, Options{})
	if err != nil {
		return nil, nil, err
	}
	if d, ok := doc.(rewriter); ok {
		out, err := d.rewrite(set)
		return out, nil, err
	}
	set = withImplied(doc, set)
	var spans []codeSpan
	for _, key := range slices.Sorted(maps.Keys(set)) {
		site, err := oneSite(doc, key)
		if err != nil {
			return nil, nil, err
		}
		if site.Start < 0 || site.End < site.Start || site.End > len(src) {
			return nil, nil, fmt.Errorf("%s: site %d-%d of %d", key, site.Start, site.End, len(src))
		}
		text := src[site.Start:site.End]
		if site.Value != set[key] {
			if text, err = site.Encode(set[key]); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", key, err)
			}
		}
		spans = append(spans, codeSpan{site.Start, site.End, text})
	}
	sort.Slice(spans, func(i, j int) bool { return spans[i].start < spans[j].start })
	var out bytes.Buffer
	pos := 0
	for _, s := range spans {
		if s.start < pos {
			return nil, nil, fmt.Errorf("values overlap at %d", s.start)
		}
		out.Write(src[pos:s.start])
		out.Write(s.text)
		pos = s.end
	}
	out.Write(src[pos:])
	again, err := f.parse(out.Bytes(), Options{})
	if err != nil {
		return nil, nil, fmt.Errorf("read back: %w", err)
	}
	for key, want := range set {
		site, err := oneSite(again, key)
		if err != nil || site.Value != want {
			return nil, nil, fmt.Errorf("read back %s: %q, want %q (%v)", key, site.Value, want, err)
		}
	}
	return out.Bytes(), spans, nil
}

func oneSite(doc document, key string) (Site, error) {
	sites, nears, err := doc.find(key)
	if err != nil {
		return Site{}, err
	}
	if len(sites) != 1 {
		notes := []string{}
		for _, s := range sites {
			notes = append(notes, s.Path)
		}
		for _, n := range nears {
			notes = append(notes, n.Note)
		}
		return Site{}, fmt.Errorf("%s: %d match: %s", key, len(sites), strings.Join(notes, "; "))
	}
	if sites[0].Problem != "" {
		return Site{}, fmt.Errorf("%s: %s", key, sites[0].Problem)
	}
	return sites[0], nil
}

const (
	codeOldHex = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	codeNewHex = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
)

// codeCase is an edit of a text: from is what it replaces to with.
type codeCase struct {
	name, format, src string
	set               map[string]string
	want              string // the whole result; or
	err               string // part of the error
}

func runCodeCases(t *testing.T, cases []codeCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			out, _, err := editCode(codeFormat(t, c.format), []byte(c.src), c.set)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("got %q, %v; want the error %q", out, err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if string(out) != c.want {
				t.Fatalf("got\n%s\nwant\n%s", out, c.want)
			}
		})
	}
}

// editFixture edits a file of testdata and returns the lines that differ.
func editFixture(t *testing.T, format, name string, set map[string]string) (old, changed []string) {
	t.Helper()
	src := codeFixture(t, name)
	out, _, err := editCode(codeFormat(t, format), src, set)
	if err != nil {
		t.Fatal(err)
	}
	a, b := strings.Split(string(src), "\n"), strings.Split(string(out), "\n")
	if len(a) != len(b) {
		t.Fatalf("%d lines became %d", len(a), len(b))
	}
	for i := range a {
		if a[i] != b[i] {
			old = append(old, strings.TrimSpace(a[i]))
			changed = append(changed, strings.TrimSpace(b[i]))
		}
	}
	return old, changed
}

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("changed lines\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// urlsOf lists the addresses of a text, and checks that pieces make the text
// and stand where they say.
func urlsOf(t *testing.T, format string, src []byte) []string {
	t.Helper()
	doc, err := codeFormat(t, format).parse(src, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, u := range doc.urls() {
		checkURL(t, src, u)
		s := u.Text
		if len(u.Unknown) > 0 {
			s += " unknown " + strings.Join(u.Unknown, ",")
		}
		out = append(out, s)
	}
	return out
}

func checkURL(t *testing.T, src []byte, u URL) {
	t.Helper()
	whole := ""
	for _, p := range u.Pieces {
		whole += p.Text
		if p.End > 0 && string(src[p.Start:p.End]) != p.Text {
			t.Fatalf("%s: piece %q at %d-%d is %q", u.Text, p.Text, p.Start, p.End, src[p.Start:p.End])
		}
	}
	if whole != u.Text {
		t.Fatalf("pieces make %q of %q", whole, u.Text)
	}
	for _, name := range u.Unknown {
		if !strings.Contains(u.Text, "${"+name+"}") {
			t.Fatalf("%s: unknown %s does not stand in it", u.Text, name)
		}
	}
}
