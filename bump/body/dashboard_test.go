package body

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
)

func board() []Entry {
	return []Entry{
		{Group: "my-flake", State: "open", Version: "10.2.0a20261001", Request: "https://forge.example/o/r/pulls/12", Why: "gfx1151, gfx1103", Boxes: []string{BoxRetry, BoxIgnore}},
		{Group: "aur/gfx1151", State: "pending", Version: "10.2.0a20261002", Why: "two hours old, and min_age is 24 h", Boxes: []string{"approve"}},
		{Group: "bazel", State: "limited", Why: "3 requests are open"},
		{Group: "nixpkgs", State: "failed", Why: "flake.nix: the key srcHash names two values (12:5, 40:5)", Boxes: []string{BoxRetry}},
		{Group: "spack", State: "ignored", Version: "10.2.0a20260930", Boxes: []string{"retry"}},
		{Group: "docker", State: "current", Version: "10.2.0a20261001"},
	}
}

func TestDashboard(t *testing.T) {
	text := Dashboard(Gitea, board(), "2026-10-01 06:45 UTC", 0)
	mustBeInert(t, text, 5)
	if Fingerprint(text) == "" || Fingerprint(text) != Fingerprint(Dashboard(Gitea, board(), "a day later", 0)) {
		t.Error("the time counts for the fingerprint")
	}
	all := strings.ReplaceAll(text, "[ ]", "[x]")
	want := []string{"retry:nixpkgs", "retry:my-flake", "ignore:my-flake", "approve:aur/gfx1151", "retry:spack"}
	if got := Ticked(all); !slices.Equal(got, want) {
		t.Errorf("ticked %q", got)
	}
	if Fingerprint(all) != Fingerprint(text) {
		t.Error("a tick is taken for an edit")
	}
	doc := rendered(t, text)
	if got := doc.Find("h2").Map(func(_ int, s *goquery.Selection) string { return s.Text() }); !slices.Equal(got, []string{"Failed", "Open", "Pending", "Limited", "Ignored", "Current"}) {
		t.Errorf("headings %q", got)
	}
}

func TestDashboardIsBounded(t *testing.T) {
	t.Parallel()
	var many []Entry
	for i := range 3000 {
		e := board()[i%6]
		e.Group = fmt.Sprintf("%s-%d", e.Group, i)
		many = append(many, e)
	}
	for _, limit := range []int{0, 700, 2000, 20_000} {
		text := Dashboard(GitHub, many, hostile, limit)
		if most := max(limit, 700); limit > 0 && len(text) > most || len(text) > limitGitHub {
			t.Errorf("limit %d: %d bytes", limit, len(text))
		}
		if !strings.Contains(text, "more, which did not fit") || Fingerprint(text) == "" {
			t.Errorf("limit %d: %s", limit, text)
		}
	}
	if text := Dashboard(GitHub, many, "", 10); text != "" {
		t.Error("a limit of ten bytes")
	}
	hostiles := []Entry{{Group: hostile, State: hostile, Version: hostile, Request: hostile, Why: hostile, Boxes: []string{hostile, "retry"}},
		{Group: "a", State: "open", Request: "https://u:p@forge.example/o"}, {Group: "b", State: "open", Request: "javascript:alert(1)"}}
	mustBeInert(t, Dashboard(GitHub, hostiles, hostile, 0), 0)
	if text := Dashboard(GitHub, nil, "", 0); !strings.Contains(text, "No bump") {
		t.Error(text)
	}
}
