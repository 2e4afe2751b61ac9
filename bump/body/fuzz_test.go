package body

import (
	"strings"
	"testing"
)

// FuzzRead: a text that anybody may have written is read without harm, and what
// is read of it is bounded and printable.
func FuzzRead(f *testing.F) {
	f.Add(Render(told()))
	f.Add(Dashboard(GitLab, board(), "today", 0))
	f.Add(Comment("closed", "Superseded."))
	f.Add("~~~\n" + markBody + "\n<!--\n- [x] " + markBox + "retry a%zz -->")
	f.Add(markVersions + `{"a":"b"}` + markClose)
	f.Fuzz(func(t *testing.T, text string) {
		sum := Fingerprint(text)
		if sum != "" && (len(sum) != 64 || Fingerprint(strings.ReplaceAll(unixLines(text), "\n", "\r\n")) != sum) {
			t.Errorf("fingerprint %q", sum)
		}
		for target, version := range Versions(text) {
			if !fitToKeep(target) || !fitToKeep(version) {
				t.Errorf("version %q of %q", version, target)
			}
		}
		if got := Ticked(text); len(got) > maxTicked {
			t.Errorf("%d boxes", len(got))
		}
		if kind := Marked(text); kind != "" && Marked(Comment(kind, text)) != kind {
			t.Errorf("kind %q", kind)
		}
	})
}

// FuzzWords: however a line is quoted, it stays one line, closes every code span
// that it opens, and holds nothing outside of them that means something.
func FuzzWords(f *testing.F) {
	f.Add(hostile)
	f.Add("a `b` c")
	f.Add("fixes #1 | closes: https://evil.example")
	f.Fuzz(func(t *testing.T, s string) {
		for name, out := range map[string]string{"words": words(s), "prose": prose(s), "code": code(s), "cell": cell(s)} {
			rest, ok := outsideCode(out)
			if !ok || strings.ContainsAny(out, "\n\r\x1b") || obeyedRE.MatchString(rest) || strings.ContainsAny(rest, "<>|[]*_\\") {
				t.Errorf("%s of %q is %q", name, s, out)
			}
		}
		if q := "- " + quiet(s); sourceRE.MatchString(q) || strings.ContainsAny(q, "\n\r") {
			t.Errorf("quiet of %q is %q", s, q)
		}
	})
}

// outsideCode is a line without its code spans (CommonMark, 6.1), and whether
// all that begin also end.
func outsideCode(s string) (string, bool) {
	var out strings.Builder
	for {
		at := strings.IndexByte(s, '`')
		if at < 0 {
			out.WriteString(s)
			return out.String(), true
		}
		out.WriteString(s[:at])
		s = s[at:]
		n := len(s) - len(strings.TrimLeft(s, "`"))
		s = s[n:]
		end := 0
		for {
			next := strings.IndexByte(s[end:], '`')
			if next < 0 {
				return "", false
			}
			end += next
			run := len(s[end:]) - len(strings.TrimLeft(s[end:], "`"))
			end += run
			if run == n {
				break
			}
		}
		s = s[end:]
	}
}
