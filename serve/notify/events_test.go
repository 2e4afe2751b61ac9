package notify

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/update"
)

var at = time.Date(2026, 10, 1, 6, 30, 0, 0, time.UTC)

// brief is what matters of events: KIND KEY MARK.
func brief(all []Event) string {
	var s []string
	for _, e := range all {
		s = append(s, strings.TrimSpace(strings.Join([]string{e.Kind, e.Key, e.Mark}, " ")))
	}
	return strings.Join(s, "; ")
}

func TestEventsOfARun(t *testing.T) {
	const slot = "nightly-gfx1151"
	const run = "recovered run failed; "
	const fine, moves = "recovered nightly-gfx1151 failed", "; recovered index nightly stale; recovered nightly-gfx1151 stale"
	failed := errors.New("x")
	for _, c := range []struct {
		name  string
		out   update.Outcome
		early bool // not final
		want  string
	}{
		{name: "up to date", out: update.Outcome{From: "1", To: "1", Moves: true}, want: fine + moves},
		{name: "a version that was named: no index was asked", out: update.Outcome{From: "1", To: "1"}, want: fine},
		{name: "installed", out: update.Outcome{From: "1", To: "2", Changed: true, Moves: true}, want: "installed nightly-gfx1151 2; " + fine + moves},
		{name: "here and waits", out: update.Outcome{From: "1", To: "1", Waits: &update.Wait{Generation: "2", Reason: "held"}, Moves: true}, want: "new-night nightly-gfx1151 2; " + fine + moves},
		{name: "stale, and in order", out: update.Outcome{From: "1", To: "1", Exit: 3, Stale: &update.Stale{Age: "100h", Cause: "skipped"}}, want: fine + "; stale index nightly skipped"},
		{name: "only one target stands still", out: update.Outcome{From: "1", To: "1", Exit: 3, Stale: &update.Stale{Age: "100h", Cause: "family"}}, want: fine + "; recovered index nightly stale; stale nightly-gfx1151 family"},
		{name: "failed", out: update.Outcome{From: "1", Exit: 1, Err: failed, Error: "x", Release: "https://h/a-2.tar.gz"}, want: "failed nightly-gfx1151 a-2"},
		{name: "failed, of a night of AMD's", out: update.Outcome{From: "1", Exit: 1, Err: failed, Error: "x", Release: "https://h/therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz"}, want: "failed nightly-gfx1151 10.2.0a20260930"},
		{name: "failed, and is tried again", out: update.Outcome{From: "1", Exit: 1, Err: failed, Error: "x"}, early: true},
		{name: "failed, and stale", out: update.Outcome{From: "1", Exit: 1, Err: failed, Error: "x", Stale: &update.Stale{}}, want: "failed nightly-gfx1151; stale index nightly"},
		{name: "interrupted", out: update.Outcome{From: "1", Exit: 1, Err: fmt.Errorf("x: %w", context.Canceled), Error: "x"}},
		{name: "refused at once, not only in the end", out: update.Outcome{From: "1", To: "2", Exit: 4, Err: failed, Error: "x"}, early: true, want: "refused nightly-gfx1151 2"},
		{name: "new bytes", out: update.Outcome{From: "1", Exit: 5, Err: failed, Error: "x", PassedOver: []update.PassedOver{{Version: "2"}}}, early: true, want: "new-bytes nightly-gfx1151 2"},
		{name: "an older one, since the newest failed", out: update.Outcome{From: "1", To: "1", PassedOver: []update.PassedOver{{Version: "2"}}, Moves: true}, want: "recovered index nightly stale; recovered nightly-gfx1151 stale"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.out.Install = slot
			got := Events(&update.Report{Installs: []*update.Outcome{&c.out}}, "build1", at, !c.early)
			if want := strings.TrimSuffix(run+c.want, "; "); brief(got) != want {
				t.Errorf("%s\nwant %s", brief(got), want)
			}
			for _, e := range got {
				if !strings.HasSuffix(e.Title, "(build1)") || e.Host != "build1" || !e.Time.Equal(at) || strings.Contains(e.Title, "\n") {
					t.Errorf("%+v", e)
				}
			}
		})
	}
	if Events(nil, "h", at, true) != nil || Looked(nil, "h", at) != nil {
		t.Error("of nothing there is something to tell")
	}
}

func TestEventsOfALook(t *testing.T) {
	got := Looked(&update.Looked{Installs: []update.LookedAt{
		{Install: "dev-a", Active: "1", Newest: "2", Admits: true, Moves: true},
		{Install: "dev-b", Active: "1", Newest: "2", Moves: true}, // it settles
		{Install: "nightly-c", Active: "1", Newest: "1", Admits: true, Stale: &update.Stale{Cause: "skipped"}},
		{Install: "nightly-d", Error: "no answer", Stale: &update.Stale{}},
	}}, "h", at)
	if want := "new-night dev-a 2; recovered index dev stale; stale index nightly skipped; recovered dev-a stale; recovered dev-b stale"; brief(got) != want {
		t.Errorf("%s\nwant %s", brief(got), want)
	}
}

// However many slots a channel has, its index stands still once, and moves again once.
func TestAnIndexThatStandsStillIsToldOnce(t *testing.T) {
	look := func(stale *update.Stale) *update.Looked {
		var l update.Looked
		for i := range 6 {
			l.Installs = append(l.Installs, update.LookedAt{Install: fmt.Sprintf("nightly-gfx115%d", i), Active: "10.2", Stale: stale, Moves: stale == nil})
		}
		return &l
	}
	p := newPlace(t, Sink{Name: "a"})
	still := &update.Stale{Age: "100h", Cause: "skipped", Detail: "AMD skipped nights"}
	if err := p.tell(Looked(look(still), "h", at)...); err != nil {
		t.Fatal(err)
	}
	p.took("a stale index nightly skipped")
	for cause, want := range map[string][]string{"skipped": nil, "unread": {"a stale index nightly unread"}} {
		other := *still
		other.Cause = cause
		if err := p.tell(Looked(look(&other), "h", at)...); err != nil {
			t.Fatal(err)
		}
		p.took(want...)
	}
	// An index that does not move, and answers only now and then, is no news each hour.
	for _, cause := range []string{"skipped", "unread", "skipped"} {
		other := *still
		other.Cause = cause
		if err := p.tell(Looked(look(&other), "h", at)...); err != nil {
			t.Fatal(err)
		}
	}
	p.took()
	if err := p.tell(Looked(look(nil), "h", at)...); err != nil {
		t.Fatal(err)
	}
	p.took("a recovered index nightly stale")
	e := Looked(look(still), "h", at)[0]
	for _, want := range []string{"nightly-gfx1150 10.2, nightly-gfx1151 10.2", "and 2 more", "rocm-nightly list --channel nightly"} {
		if !strings.Contains(e.Text, want) {
			t.Errorf("%s\nwithout %q", e.Text, want)
		}
	}
	if e.Slot != "" || e.Exit != update.ExitStale {
		t.Errorf("%+v", e)
	}
}

func TestEventsOfBumps(t *testing.T) {
	failed := errors.New("no")
	bumps := []*update.Bumped{
		{Name: "opened", Action: "opened", Number: 7, URL: "https://f/7", Title: "rocm: 2", Edits: []update.Edited{{From: "1", To: "2"}}},
		{Name: "pushed", Action: "pushed", Branch: "rocm-nightly/x", Commit: "abc"},
		{Name: "same", Action: "none"},
		{Name: "half", Action: "opened", Number: 8},
		{Name: "half", Err: failed, Error: "no"},
		{Name: "stopped", Err: context.Canceled, Error: "stopped"},
		nil,
	}
	got := FromBump(bumps, "h", at, true)
	want := "opened bump opened #7; recovered bump opened failed; opened bump pushed abc; recovered bump pushed failed; recovered bump same failed; opened bump half #8; failed bump half"
	if brief(got) != want {
		t.Errorf("%s\nwant %s", brief(got), want)
	}
	if got[0].Version != "2" || got[0].From != "1" || got[0].URL != "https://f/7" || got[0].Slot != "" {
		t.Errorf("%+v", got[0])
	}
	if got := brief(FromBump(bumps[4:5], "h", at, false)); got != "" {
		t.Errorf("told before the end: %s", got)
	}
}

func TestEventsOfARunThatCouldNotBegin(t *testing.T) {
	if got := brief(FromError(errors.New("x"), "h", at, true)); got != "failed run" {
		t.Error(got)
	}
	for _, got := range [][]Event{FromError(nil, "h", at, true), FromError(errors.New("x"), "h", at, false), FromError(context.Canceled, "h", at, true)} {
		if got != nil {
			t.Error(got)
		}
	}
}

// What AMD's index, a forge or an error says is text of bounded length.
func TestHostileTexts(t *testing.T) {
	long := strings.Repeat("x\x1b]0;title\a\n\r", 10000) + "\xff"
	rep := &update.Report{
		Installs: []*update.Outcome{{Install: "nightly-" + long, From: long, To: long, Exit: 5, Error: long, Release: long}, {Install: "a", Changed: true, To: long, Message: long}},
		Bumps:    []*update.Bumped{{Name: "b", Error: long, URL: long}, {Name: "c", Action: "opened", Number: 1, Title: long, Edits: []update.Edited{{Path: long, Key: long, From: long, To: long}}}},
	}
	none, err := parseTexts("", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range Events(rep, "h", at, true) {
		e, err := none.apply(e)
		if err != nil || len(e.Title) > maxTitle+10 || len(e.Text) > maxText+400 || strings.ContainsAny(e.Title, "\x1b\a\r\n") || strings.ContainsAny(e.Text, "\x1b\a\r") {
			t.Errorf("%v: %d %d %.300q", err, len(e.Title), len(e.Text), e.Text)
		}
	}
}

func TestTemplates(t *testing.T) {
	for _, c := range []struct{ title, text, want string }{
		{title: "", text: ""},
		{title: "{{.Host}}: {{.Title}}", text: "{{.Text}} {{.Time.Format \"15:04\"}} {{if .URL}}{{.URL}}{{end}}"},
		{title: "{{.Titel}}", want: "can't evaluate field Titel"},
		{text: "{{.Text", want: "unclosed action"},
		{text: "{{exec .Text}}", want: "not defined"},
		{text: "{{if eq .Kind \"opened\"}}{{.Missing}}{{end}}", want: "Missing"}, // only of one kind
		{text: "{{define \"x\"}}{{.Text}}{{template \"x\" .}}{{end}}{{template \"x\" .}}", want: "too much"},
	} {
		err := CheckTemplates(c.title, c.text)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q %q: %v, want %q", c.title, c.text, err, c.want)
		}
	}
	n := newPlace(t, Sink{Name: "a", Title: "{{.Mark}}\nX: y", Template: "{{.Text}}"})
	if err := n.tell(ev(Installed, "s", "1")); err != nil {
		t.Error(err)
	}
}

// An example of each kind says that it is none.
func TestSamples(t *testing.T) {
	for _, kind := range Kinds() {
		e, ok := Sample(kind, "build1", at)
		if !ok || e.Kind != kind || e.Title == "" || kind != Test && !strings.Contains(e.Text, "This is an example") {
			t.Errorf("%s: %+v", kind, e)
		}
	}
	if _, ok := Sample("birthday", "", at); ok {
		t.Error("there is a birthday")
	}
}

// notify-test tells whoever it names, whatever they want, and nothing is remembered.
func TestTry(t *testing.T) {
	p := newPlace(t, Sink{Name: "a", Events: []string{Failed}}, Sink{Name: "b"})
	p.away["b"] = true
	n, err := New(Options{Sinks: p.sinks, Memory: p.memory, Transport: p})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Test(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	p.took("a test notify-test")
	results, err := n.Try(t.Context(), "", NewBytes, "h")
	if err != nil || len(results) != 2 || results[0].Err != nil || results[1].Err == nil || results[1].Sink != "b" {
		t.Errorf("%+v %v", results, err)
	}
	if err := n.Test(t.Context(), "nobody"); err == nil || !strings.Contains(err.Error(), "there is a, b") {
		t.Error(err)
	}
	p.got = nil
	p.away["b"] = false
	p.tell()
	p.took()
}

func TestSinksThatAreRefused(t *testing.T) {
	for want, s := range map[string]Sink{
		"no kind of event": {Kind: Webhook, URL: "https://h/", Events: []string{"birthdays"}},
		"only webhooks":    {Kind: Shoutrrr, URL: "ntfy://ntfy.sh/x", Secret: testKey},
		"whsec_":           {Kind: Webhook, URL: "https://h/", Secret: "hunter2hunter2"},
		"template":         {Kind: Webhook, URL: "https://h/", Title: "{{"},
	} {
		s.Name = "team"
		if _, err := New(Options{Sinks: []Sink{s}}); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "notify team: ") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
