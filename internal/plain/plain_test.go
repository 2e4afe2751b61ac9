package plain

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"":                   "",
		"lib/libfoo.so.1":    "lib/libfoo.so.1",
		"größe 1 µs":         "größe 1 µs",
		"a\nb":               `a\nb`,
		"\x1b[2J":            `\x1b[2J`,
		"\xff\xfe":           `\xff\xfe`,
		"a\u202eb":           `a\u202eb`,
		"zero\u200bwidth":    `zero\u200bwidth`,
		"\ufffd is itself":   "\ufffd is itself",
		`back\slash`:         `back\slash`,
		"tab\tand\rreturn\b": `tab\tand\rreturn\b`,
	} {
		if got := Text(in); got != want {
			t.Errorf("Text(%q) = %q, want %q", in, got, want)
		}
		if Is(in) != (in == want) {
			t.Errorf("Is(%q) = %v", in, Is(in))
		}
	}
}

func TestNamesThatDifferStayDifferent(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"a\nb", `a\nb`, `a\\nb`, "a\x1bb", `a\x1bb`} {
		shown := Name(name)
		if other, taken := seen[shown]; taken {
			t.Errorf("%q and %q are both shown as %s", name, other, shown)
		}
		seen[shown] = name
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		in    string
		limit int
		want  string
	}{
		{"short", 5, "short"},
		{"longer", 5, "longe…"},
		{"ääää", 5, "ää…"},
		{"\x1b\x1b\x1b", 6, `\x1b\x…`},
		{strings.Repeat("x", 1<<20), 3, "xxx…"},
		{"", 0, ""},
	} {
		if got := Cut(c.in, c.limit); got != c.want {
			t.Errorf("Cut(%.20q, %d) = %q, want %q", c.in, c.limit, got, c.want)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("lib/\x1b]0;title\a\u2066x", 7)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		if out := Text(s); !Is(out) {
			t.Fatalf("Text(%q) = %q", s, out)
		}
		limit &= 0xffff
		out := Cut(s, limit)
		if !Is(out) || len(out) > limit+len("…") || !utf8.ValidString(out) {
			t.Fatalf("Cut(%q, %d) = %q", s, limit, out)
		}
	})
}
