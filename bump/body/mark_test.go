package body

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestFingerprint(t *testing.T) {
	text := Render(told())
	want := Fingerprint(text)
	if len(want) != 64 {
		t.Fatalf("fingerprint %q", want)
	}
	tick := strings.Replace(text, "- [ ] <!--", "- [x] <!--", 1)
	for name, same := range map[string]string{
		"CRLF":             strings.ReplaceAll(text, "\n", "\r\n"),
		"spaces":           strings.ReplaceAll(text, "\n", "  \n"),
		"ticked":           tick,
		"trimmed":          strings.TrimSpace(text),
		"text behind":      text + "\nanother bot wrote this\n",
		"text before":      "A word first.\n\n" + text,
		"ticked with CRLF": strings.ReplaceAll(tick, "\n", "\r\n"),
	} {
		if got := Fingerprint(same); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	for name, other := range map[string]string{
		"empty":        "",
		"edited":       strings.Replace(text, "for", "not for", 1),
		"added":        strings.Replace(text, markEnd, "more\n"+markEnd, 1),
		"no end":       text[:strings.Index(text, markEnd)],
		"no beginning": strings.TrimPrefix(text, markBody),
		"twice":        text + text,
		"other sum":    strings.Replace(text, want, strings.Repeat("0", 64), 1),
		"no box":       strings.Replace(text, "- [ ] <!-- rocm-nightly:box retry -->", "- <!-- rocm-nightly:box retry -->", 1),
		"too long":     text + strings.Repeat(" ", maxRead),
	} {
		if got := Fingerprint(other); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	again := told()
	again.Proofs[0].Ran = again.Proofs[0].Ran.AddDate(0, 0, 1)
	again.Checks[0].Seconds = 99
	if Fingerprint(Render(again)) != want {
		t.Error("another run that found the same has another fingerprint")
	}
	in := told()
	in.Notes = append(in.Notes, "more")
	if Fingerprint(Render(in)) == want {
		t.Error("another body has the same fingerprint")
	}
}

func TestVersions(t *testing.T) {
	want := map[string]string{"gfx1151": "10.2.0a20261001", "gfx1103": "10.2.0a20261001"}
	text := Render(told())
	for _, s := range []string{text, strings.ReplaceAll(text, "\n", "\r\n")} {
		if got := Versions(s); !maps.Equal(got, want) {
			t.Errorf("%v", got)
		}
	}
	for _, s := range []string{
		"", "gfx1151 10.2", markVersions + "{" + markClose, markVersions + `{"a":1}` + markClose, markVersions + `["a"]` + markClose,
		markVersions + `{"a":"b\u001b"}` + markClose, markVersions + `{"":"b"}` + markClose, markVersions + "{}" + markClose,
		"```\n" + markVersions + `{"a":"b"}` + markClose + "\n```", markVersions + `{"a":"` + strings.Repeat("b", maxVersions) + `"}` + markClose,
	} {
		if got := Versions(s); got != nil {
			t.Errorf("%.80q: %v", s, got)
		}
	}
}

func TestTicked(t *testing.T) {
	text := Render(told())
	retry, ignore := markBox+BoxRetry+markClose, markBox+BoxIgnore+markClose
	ticked := func(s, mark string) string { return strings.Replace(s, "[ ] "+mark, "[x] "+mark, 1) }
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"none", text, nil},
		{"one", ticked(text, retry), []string{BoxRetry}},
		{"both, CRLF", strings.ReplaceAll(ticked(ticked(text, ignore), retry), "\n", "\r\n"), []string{BoxRetry, BoxIgnore}},
		{"capital, star", "* [X] " + retry + "again", []string{BoxRetry}},
		{"twice", "- [x] " + retry + "\n- [x] " + retry, []string{BoxRetry}},
		{"of a group", "  - [x] " + markBox + "approve my%20flake/gfx1151" + markClose + "now", []string{"approve:my flake/gfx1151"}},
		{"somebody's own", "- [x] retry\n- [x] <!-- rebase-check -->", nil},
		{"in a block", "```\n- [x] " + retry + "\n```\n", nil},
		{"in a longer block", "````md\n```\n- [x] " + retry + "\n````\n- [x] " + ignore, []string{BoxIgnore}},
		{"in tildes", "~~~\n```\n- [x] " + retry + "\n~~~", nil},
		{"in an unclosed block", "```\n- [x] " + retry, nil},
		{"in code", "`- [x] " + retry + "`", nil},
		{"indented", "    - [x] " + retry, nil},
		{"in a comment", "<!--\n- [x] " + retry + "\n", nil},
		{"bad group", "- [x] " + markBox + "retry %zz" + markClose, nil},
		{"bad name", "- [x] " + markBox + "Retry;rm" + markClose, nil},
	} {
		if got := Ticked(c.text); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestComment(t *testing.T) {
	text := Comment("human-commits", "Somebody else has pushed to this branch, so it is left to them.\n\nTo have it made anew:\n- tick the box, or\n- run `rocm-nightly bump --force`.\n\n"+hostile)
	if got := Marked(strings.ReplaceAll(text, "\n", "\r\n")); got != "human-commits" {
		t.Errorf("kind %q", got)
	}
	mustBeInert(t, text, 0)
	for _, want := range []string{"Somebody else has pushed to this branch, so it is left to them.\n", "\n- tick the box, or\n", "- run `rocm-nightly bump --force`.\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, s := range []string{"", "text", "text\n" + text, "<!-- other -->"} {
		if got := Marked(s); got != "" {
			t.Errorf("%.40q is marked %q", s, got)
		}
	}
	if n := len(Comment("x", strings.Repeat("word\n", 1<<20))); n > maxComment+100 {
		t.Errorf("%d bytes", n)
	}
}

func TestKeepWhatOthersWrote(t *testing.T) {
	in := told()
	old := Render(in)
	in.Notes = []string{"another night"}
	text := Render(in)
	for _, c := range []struct{ name, old, want string }{
		{"nothing", old, text},
		{"CRLF", strings.ReplaceAll(old, "\n", "\r\n"), text},
		{"below", old + "\r\nA bot's summary\r\n\r\nof two lines", text + "\nA bot's summary\n\nof two lines\n"},
		{"above", "A word first.\n" + old, "A word first.\n\n" + text},
		{"not ours", "Somebody's own words", text},
		{"no end", old[:strings.Index(old, markEnd)], text},
		{"too long", old + strings.Repeat("x", 200_000), text},
	} {
		got := Keep(c.old, text, 120_000)
		if got != c.want {
			t.Errorf("%s: %s", c.name, got)
		}
		if Fingerprint(got) != Fingerprint(text) || Keep(got, text, 120_000) != got {
			t.Errorf("%s: it is not kept a second time", c.name)
		}
	}
	a, b := Dashboard(GitHub, board(), "today", 0), Dashboard(GitHub, board(), "tomorrow", 0)
	if Keep(a, b, 0) != b {
		t.Error("a dashboard keeps when it was updated before")
	}
}

// What bytes are commonly checked against reads as words.
func TestWordsReadWell(t *testing.T) {
	for _, s := range []string{"S3 ETag (MD5 of 4 parts of 128 MiB)", "nothing is kept here of the new tree", "the size that the index states"} {
		if got := words(s); got != s {
			t.Errorf("%q is written as %q", s, got)
		}
	}
	for _, s := range []string{"GH-1", "AB12", "GH1x", "#1"} {
		if got := words(s); got != "`"+s+"`" {
			t.Errorf("%q is written as %q", s, got)
		}
	}
}
