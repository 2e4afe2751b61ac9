package bump

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/audit/diff"
	"github.com/rocm-nightly/rocm-nightly/bump/body"
	"github.com/rocm-nightly/rocm-nightly/bump/forge"
)

const nixPin = "{\n  version = \"10.2.0a20260928\";\n}\n"

// stand is a forge in memory with a repository to bump.
type stand struct {
	t    *testing.T
	f    *memForge
	now  time.Time
	repo Repo
}

func newStand(t *testing.T) *stand {
	s := &stand{t: t, now: time.Date(2026, 10, 1, 6, 0, 0, 0, time.UTC)}
	s.f = newMemForge(&s.now, map[string]string{"pin.nix": nixPin, "README": "one\n"})
	s.repo = Repo{Name: "flake", Forge: "github", URL: "https://forge.example/me/flake", Files: []File{{
		Path: "pin.nix", Target: "gfx1151", Set: map[string]string{"version": "{{.Version}}"}, Fetches: fetches,
	}}}
	return s
}

func (s *stand) try(version string, edit ...func(*Repo, *Options)) (*Result, error) {
	repo := s.repo
	o := Options{
		WorkDir: s.t.TempDir(), Env: os.Getenv, Now: func() time.Time { return s.now },
		Open: func(context.Context, forge.Config) (forge.Forge, error) { return s.f, nil },
	}
	for _, e := range edit {
		e(&repo, &o)
	}
	res, err := Run(context.Background(), repo, night(version), o)
	s.now = s.now.Add(3 * time.Hour)
	return res, err
}

func (s *stand) run(version string, edit ...func(*Repo, *Options)) *Result {
	s.t.Helper()
	res, err := s.try(version, edit...)
	if err != nil {
		s.t.Fatal(err)
	}
	return res
}

// want holds what a run came to against what it should have done, and returns
// the changes that it made.
func (s *stand) want(res *Result, action string, changes ...string) {
	s.t.Helper()
	if res.Action != action || !slices.Equal(s.f.changes, changes) {
		s.t.Errorf("%s (%s), changes %v; want %s, %v", res.Action, res.Message, s.f.changes, action, changes)
	}
	s.f.changes = nil
}

func (s *stand) tick(number int64, box string) {
	p, err := s.f.find(number)
	if err != nil {
		s.t.Fatal(err)
	}
	p.Body = tickBox(s.t, p.Body, box)
}

// tickBox ticks a box as a person does: by its line.
func tickBox(t *testing.T, text, box string) string {
	re := regexp.MustCompile(`(?m)^ *- \[ \] (.*` + box + `.*)$`)
	if !re.MatchString(text) {
		t.Fatalf("there is no box %s in:\n%s", box, text)
	}
	at := re.FindStringIndex(text)
	return text[:at[0]] + strings.Replace(text[at[0]:at[1]], "[ ]", "[x]", 1) + text[at[1]:]
}

const (
	n29, n30, n31 = "10.2.0a20260929", "10.2.0a20260930", "10.2.0a20261001"
)

// TestRequestIsEditedInPlace: one branch, one request, one commit.
func TestRequestIsEditedInPlace(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	first := s.run(n29)
	s.want(first, ActionOpened, "commit", "move", "open")
	if first.Number != 1 || first.URL == "" || first.Branch != branch || !first.Pushed || !strings.Contains(s.f.text(branch, "pin.nix"), n29) {
		t.Errorf("%+v", first)
	}
	again := s.run(n29)
	s.want(again, ActionNone)
	if again.Commit != first.Commit || again.Number != 1 || again.Pushed {
		t.Errorf("%+v", again)
	}
	second := s.run(n30)
	s.want(second, ActionUpdated, "commit", "move", "edit")
	p := s.f.pulls[0]
	if second.Number != 1 || p.Title != "rocm: 10.2.0a20260928 -> "+n30+" (gfx1151)" || body.Versions(p.Body)["gfx1151"] != n30 {
		t.Errorf("%+v\n%+v", second, p)
	}
	if tip := s.f.world.commits[s.f.branches[branch]]; tip.Parents[0] != s.f.branches["main"] || !strings.Contains(tip.Message, trailer) {
		t.Errorf("%+v", tip)
	}
	s.want(s.run(n30), ActionNone)
}

// A person who ticks a box sends the body back with two bytes for each end of a
// line: GitHub takes it only where that fits too.
func TestLongBodyCanBeTicked(t *testing.T) {
	s := newStand(t)
	d := &diff.Report{}
	for i := range 1500 {
		d.Config = append(d.Config, diff.TextChange{Path: fmt.Sprintf("etc/%d.cfg", i), Diff: []string{"@@ -1 +1 @@", "-a", "+b"}})
	}
	res := s.run("10.2.0a20260930", func(_ *Repo, o *Options) {
		o.Proofs = map[string]body.Proof{"gfx1151": {Target: "gfx1151", Diff: d}}
	})
	p, err := s.f.find(res.Number)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(strings.ReplaceAll(p.Body, "\n", "\r\n")); n > 65536 || n < 50_000 {
		t.Errorf("%d bytes when a person has ticked a box, and GitHub takes 65536", n)
	}
}

func TestMovedBaseAloneRebuildsNothing(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.run(n29)
	s.f.changes = nil
	s.f.commitAs("main", "Ada <ada@example.org>", "elsewhere", map[string]string{"README": "two\n"})
	s.want(s.run(n29), ActionNone)
	s.f.conflicts[1] = true
	s.want(s.run(n29), ActionUpdated, "commit", "move")
	s.f.commitAs("main", "Ada <ada@example.org>", "here", map[string]string{"pin.nix": nixPin + "# new\n"})
	s.want(s.run(n29), ActionUpdated, "commit", "move")
	if got := s.f.text(branch, "pin.nix"); !strings.HasSuffix(got, "# new\n") {
		t.Errorf("got %q", got)
	}
	s.f.commitAs("main", "Ada <ada@example.org>", "elsewhere", map[string]string{"README": "three\n"})
	s.tick(1, body.BoxRetry)
	s.want(s.run(n29), ActionUpdated, "commit", "move", "edit")
	if len(body.Ticked(s.f.pulls[0].Body)) != 0 {
		t.Error("the box is still ticked")
	}
}

func TestHumanCommitsStopTheRequest(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.run(n29)
	theirs := s.f.commitAs(branch, "Eve <eve@example.org>", "fix", map[string]string{"fix": "x"})
	s.f.changes = nil
	s.want(s.run(n30), ActionIgnored, "comment")
	s.want(s.run(n31), ActionIgnored)
	if s.f.branches[branch] != theirs || s.f.marked(1, kindHuman) != 1 {
		t.Error("the person's commit is gone, or the comment is not there once")
	}
	s.tick(1, body.BoxRetry)
	s.want(s.run(n31), ActionUpdated, "commit", "move", "edit")
	s.f.commitAs(branch, "Eve <eve@example.org>", "fix", map[string]string{"fix": "x"})
	s.want(s.run(n31, func(_ *Repo, o *Options) { o.Force = true }), ActionUpdated, "commit", "move")
}

func TestHumanBranchWithoutRequestIsAnError(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.f.branches[branch] = s.f.branches["main"]
	s.f.commitAs(branch, "Eve <eve@example.org>", "mine", nil)
	_, err := s.try(n29)
	var human *HumanCommitsError
	if !errors.As(err, &human) || len(s.f.changes) != 0 {
		t.Errorf("got %v, %v", err, s.f.changes)
	}
}

func TestClosedMeansNotAgain(t *testing.T) {
	t.Parallel()
	shut := func(s *stand) {
		s.f.pulls[0].State, s.f.pulls[0].Ended = forge.Closed, s.now
		s.f.changes = nil
	}
	for _, tt := range []struct {
		name    string
		person  func(s *stand)
		version string
		edit    func(*Repo, *Options)
		again   bool
	}{
		{"same version", func(*stand) {}, n30, nil, false},
		{"older version", func(*stand) {}, n29, nil, false},
		{"newer version", func(*stand) {}, n31, nil, true},
		{"reopen always", func(*stand) {}, n30, func(r *Repo, _ *Options) { r.Reopen = "always" }, true},
		{"forced", func(*stand) {}, n30, func(_ *Repo, o *Options) { o.Force = true }, true},
		{"box", func(s *stand) { s.tick(1, body.BoxRetry) }, n30, nil, true},
		{"label", func(s *stand) { s.f.pulls[0].Labels = []string{labelRetry} }, n30, nil, true},
		{"renamed", func(s *stand) { s.f.pulls[0].Title = "rebase! " + s.f.pulls[0].Title }, n30, nil, true},
		{"branch deleted", func(s *stand) { delete(s.f.branches, branch) }, n30, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStand(t)
			s.run(n30)
			shut(s)
			tt.person(s)
			edit := tt.edit
			if edit == nil {
				edit = func(*Repo, *Options) {}
			}
			res := s.run(tt.version, edit)
			if open := len(s.f.openOnes(branch)); (open == 1) != tt.again || !tt.again && (res.Action != ActionIgnored || len(s.f.changes) != 0) {
				t.Errorf("%d open; %+v", open, res)
			}
		})
	}
}

func TestIgnoreBoxClosesForThisVersion(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.run(n30)
	s.f.changes = nil
	s.tick(1, body.BoxIgnore)
	s.want(s.run(n30), ActionIgnored, "comment", "edit", "remove")
	s.want(s.run(n30), ActionIgnored)
	s.want(s.run(n31), ActionOpened, "commit", "move", "open")
}

func TestObsoleteRequestIsClosed(t *testing.T) {
	t.Parallel()
	withdrawn := func(_ *Repo, o *Options) { o.Published = func(string) bool { return false } }
	byHand := func(s *stand) {
		s.f.commitAs("main", "Ada <ada@example.org>", "by hand", map[string]string{"pin.nix": strings.Replace(nixPin, "10.2.0a20260928", n30, 1)})
	}
	t.Run("by hand", func(t *testing.T) {
		s := newStand(t)
		s.run(n30)
		s.f.changes = nil
		byHand(s)
		s.want(s.run(n30), ActionClosed, "comment", "edit", "remove")
		s.want(s.run(n30), ActionNone)
		// It is taken back: our own closing is nobody's no.
		s.f.commitAs("main", "Ada <ada@example.org>", "revert", map[string]string{"pin.nix": nixPin})
		s.want(s.run(n30), ActionOpened, "commit", "move", "open")
	})
	t.Run("by hand, with a person's commit on the branch", func(t *testing.T) {
		s := newStand(t)
		s.run(n30)
		s.f.commitAs(branch, "Eve <eve@example.org>", "fix", map[string]string{"fix": "x"})
		s.f.changes = nil
		byHand(s)
		s.want(s.run(n30), ActionClosed, "comment", "edit")
	})
	t.Run("withdrawn", func(t *testing.T) {
		s := newStand(t)
		s.run(n30)
		s.f.changes = nil
		s.want(s.run(n30, withdrawn), ActionClosed, "comment", "edit", "remove")
		s.want(s.run(n30, withdrawn), ActionIgnored)
		s.want(s.run(n30), ActionOpened, "commit", "move", "open")
	})
	t.Run("merged", func(t *testing.T) {
		s := newStand(t)
		s.run(n30)
		s.f.merge(s.f.pulls[0])
		s.f.changes = nil
		s.want(s.run(n30), ActionNone, "remove")
		s.want(s.run(n31), ActionOpened, "commit", "move", "open")
	})
}

func TestSomebodyElsesRequestIsLeftToThem(t *testing.T) {
	t.Parallel()
	theirs := func(s *stand, version string) {
		s.f.branches["eve"] = s.f.branches["main"]
		s.f.commitAs("eve", "Eve <eve@example.org>", "bump", map[string]string{"pin.nix": strings.Replace(nixPin, "10.2.0a20260928", version, 1)})
		s.f.addPull("eve", "rocm "+version, "", "main", "eve", "me/flake")
	}
	s := newStand(t)
	theirs(s, n30)
	s.want(s.run(n29), ActionOpened, "commit", "move", "open")
	res := s.run(n30)
	s.want(res, ActionClosed, "comment", "edit", "remove")
	if res = s.run(n30); res.Action != ActionIgnored || !strings.Contains(res.Message, s.f.pulls[0].Page) || len(s.f.comments[1]) != 0 {
		t.Errorf("%+v", res)
	}
	// Words alone are no pin.
	s = newStand(t)
	s.f.branches["eve"] = s.f.branches["main"]
	s.f.commitAs("eve", "Eve <eve@example.org>", "words", map[string]string{"README": n30})
	s.f.addPull("eve", "about "+n30, "", "main", "eve", "me/flake")
	s.want(s.run(n30), ActionOpened, "commit", "move", "open")
}

func TestPersonsTitleIsKept(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.run(n29)
	s.f.pulls[0].Title = "pkgs: rocm, please"
	s.run(n30)
	s.run(n31)
	if got := s.f.pulls[0].Title; got != "pkgs: rocm, please" {
		t.Errorf("title %q", got)
	}
	s.f.changes = nil
	s.want(s.run(n31), ActionNone)
	// Renamed while it was open, then closed: that is a no.
	s.f.pulls[0].State, s.f.pulls[0].Ended = forge.Closed, s.now
	s.want(s.run(n31), ActionIgnored)
}

func TestRetargetedRequestIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.run(n29)
	s.f.pulls[0].Base, s.f.changes = "stable", nil
	res := s.run(n30)
	s.want(res, ActionIgnored)
	if !strings.Contains(res.Message, "stable") {
		t.Errorf("%q", res.Message)
	}
}

func TestDeletedBranchIsRebuilt(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.run(n29)
	delete(s.f.branches, branch)
	s.f.changes = nil
	s.want(s.run(n29), ActionUpdated, "commit", "move")
}
