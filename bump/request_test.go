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

func TestWindowsAndLimitsHoldBack(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		edit func(*Repo, *Options)
		says string
	}{
		{"window", func(r *Repo, _ *Options) { r.Windows = []Window{{"0 20 * * *", time.Hour}} }, "opens at 2026-10-01T20:00:00Z"},
		{"open limit", func(r *Repo, _ *Options) { r.OpenLimit = 1 }, "1 requests are open"},
		{"pulls per hour", func(r *Repo, _ *Options) { r.PullsPerHour = 1 }, "opened within the hour"},
		{"commits per hour", func(r *Repo, _ *Options) { r.CommitsPerHour = 1 }, "changed within the hour"},
		{"too young", func(r *Repo, _ *Options) { r.MinAge = 72 * time.Hour }, "may be offered from 2026-10-03T00:00:00Z"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStand(t)
			s.f.addPull("bot", "another of ours", "", "main", "rocm-nightly/other", "me/flake")
			res := s.run(n30, tt.edit)
			s.want(res, ActionWaits)
			if !strings.Contains(res.Message, tt.says) {
				t.Errorf("%q, want %q in it", res.Message, tt.says)
			}
		})
	}
	s := newStand(t)
	s.want(s.run(n30, func(r *Repo, _ *Options) { r.Windows = []Window{{"CRON_TZ=Europe/Berlin 0 8 * * *", time.Hour}} }), ActionOpened, "commit", "move", "open")
	s.f.limit = &forge.LimitError{Doing: "move", Until: s.now.Add(time.Hour)}
	if res := s.run(n31); res.Action != ActionWaits || !strings.Contains(res.Message, "try again after") {
		t.Errorf("%+v", res)
	}
}

func TestWindowNeverPanics(t *testing.T) {
	for _, spec := range []string{"", "CRON_TZ=UTC", "TZ=", "CRON_TZ= 1", "@daily", "0 0 31 2 *", "* * * * * *", "CRON_TZ=No/Where 0 0 * * *"} {
		_, _, err := openAt([]Window{{spec, time.Hour}}, time.Now())
		if (err == nil) != (spec == "0 0 31 2 *") {
			t.Errorf("%q: %v", spec, err)
		}
	}
}

func TestNewRequestGetsItsPeople(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	people := func(r *Repo, _ *Options) {
		r.Labels, r.Reviewers, r.Teams, r.Assignees, r.Draft = []string{"rocm", "{{.New}}"}, []string{"ada"}, []string{"gpu"}, []string{"eve"}, true
		r.Title, r.Message, r.Signoff = "pkgs: {{.Old}} to {{.New}}", "For {{.Name}}.\n\n{{.Body}}", true
	}
	s.want(s.run(n30, people), ActionOpened, "commit", "move", "open", "label", "ask", "assign")
	p := s.f.pulls[0]
	if !slices.Equal(p.Labels, []string{"rocm", n30}) || !p.Draft || p.Title != "pkgs: 10.2.0a20260928 to "+n30 || !slices.Equal(s.f.asked[1], []string{"ada", "gpu"}) {
		t.Errorf("%+v", p)
	}
	message := s.f.world.commits[s.f.branches[branch]].Message
	if !strings.HasPrefix(message, p.Title+"\n\nFor flake.\n") || !strings.HasSuffix(message, "\n\nSigned-off-by: rocm-nightly <rocm-nightly@localhost>\n"+trailer+"\n") {
		t.Errorf("message:\n%s", message)
	}
	// What people added stays, and what they took away stays away.
	p.Labels, p.Reviewers = []string{"rocm", "kept"}, nil
	p.Updated = p.Updated.Add(untouched)
	s.want(s.run(n30, people), ActionNone)
	p.Labels = nil
	s.want(s.run(n30, people), ActionNone)
	// A label that names the version comes with the version.
	s.want(s.run(n31, people), ActionUpdated, "commit", "move", "edit", "label")
	if !slices.Equal(p.Labels, []string{n31}) {
		t.Errorf("%q", p.Labels)
	}
}

func TestForkWhereThereIsNoRightToPush(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.f.info.Push = false
	res := s.run(n30)
	s.want(res, ActionOpened, "commit", "move", "open")
	if p := s.f.pulls[0]; p.HeadRepo != "bot/flake" || s.f.branches[branch] != "" || s.f.forks["bot"].branches[branch] == "" {
		t.Errorf("%+v", p)
	}
	s.want(s.run(n30), ActionNone)
	s.want(s.run(n31), ActionUpdated, "commit", "move", "edit")
	_, err := s.try(n31, func(r *Repo, _ *Options) { r.Fork = "never" })
	var auth *forge.AuthError
	if !errors.As(err, &auth) {
		t.Errorf("got %v", err)
	}
}

func TestSigningForgeSigns(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.f.info.Signs, s.f.info.Email = true, "1+bot[bot]@users.noreply.github.com"
	if res := s.run(n30); !res.Verified {
		t.Errorf("%+v", res)
	}
	s.f.changes = nil
	if res := s.run(n30); !res.Verified {
		t.Errorf("%+v", res)
	}
	s.want(s.run(n31), ActionUpdated, "commit", "move", "edit")
	// A person's edit on the forge's pages is committed by the forge as well.
	c := s.f.world.commits[s.f.branches[branch]]
	c.AuthorEmail, c.Login, c.Parents = "eve@example.org", "eve", []string{c.ID}
	s.f.branches[branch] = s.f.world.commit(c)
	s.want(s.run(n31), ActionIgnored, "comment")
}

func TestAutoMergeNeedsRequiredChecks(t *testing.T) {
	t.Parallel()
	after := func(r *Repo, _ *Options) { r.AutoMerge = "24h" }
	platform := func(r *Repo, _ *Options) { r.AutoMerge, r.MergeMethod = "platform", "squash" }
	s := newStand(t)
	s.f.checkState = "success"
	s.run(n30, after)
	s.now = s.now.Add(48 * time.Hour)
	if res := s.run(n30, after); res.Action != ActionNone || !strings.Contains(s.f.pulls[0].Body, "no check is required on main") {
		t.Errorf("%+v\n%s", res, s.f.pulls[0].Body)
	}
	s.f.required, s.f.changes = true, nil
	s.want(s.run(n30, after), ActionMerged, "edit", "merge", "remove")

	s = newStand(t)
	s.f.required, s.f.info.AutoMerge = true, true
	s.want(s.run(n30, platform), ActionOpened, "commit", "move", "open", "automerge")
	if s.f.autoMerge[1] != "squash" {
		t.Error("method", s.f.autoMerge)
	}
	s = newStand(t)
	s.f.required = true
	if res := s.run(n30, platform); res.Action != ActionOpened || !strings.Contains(strings.Join(res.Actions, "\n"), "could not switch auto-merge on") {
		t.Errorf("%+v", res)
	}
}

func TestDashboardAndItsBoxes(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.repo.Dashboard, s.repo.Windows = "ROCm nightlies", []Window{{"0 20 * * *", time.Hour}}
	s.want(s.run(n30), ActionWaits, "issue")
	s.want(s.run(n30), ActionWaits)
	s.f.issues[0].Body = tickBox(t, s.f.issues[0].Body, "approve")
	s.want(s.run(n30), ActionOpened, "commit", "move", "open", "edit issue")
	s.f.issues[0].Body = tickBox(t, s.f.issues[0].Body, "ignore")
	s.want(s.run(n30), ActionIgnored, "comment", "edit", "remove", "edit issue")
	s.f.issues[0].Body = tickBox(t, s.f.issues[0].Body, "retry")
	s.want(s.run(n30), ActionOpened, "commit", "move", "open", "edit issue")
}

func TestDryRunDepths(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.f.info.Push = false
	for _, depth := range []string{DepthLookup, DepthDiff, DepthFull} {
		res := s.run(n30, func(_ *Repo, o *Options) { o.DryRun, o.Depth = true, depth })
		if len(s.f.changes) != 0 || len(s.f.forks) != 0 || !res.Changed || len(res.Edits) != 1 {
			t.Errorf("%s: %v %+v", depth, s.f.changes, res)
		}
		if (res.Diff == "") != (depth == DepthLookup) || (res.Body == "") != (depth == DepthLookup) || (len(res.Actions) == 0) != (depth != DepthFull) {
			t.Errorf("%s: %+v", depth, res)
		}
	}
}

func TestLoserOfARaceAgrees(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	once := false
	s.f.before = func(doing string) {
		if doing == "move" && !once {
			once = true
			s.run(n30)
		}
	}
	res := s.run(n30)
	if res.Action != ActionNone || len(s.f.pulls) != 1 || len(s.f.openOnes(branch)) != 1 {
		t.Errorf("%+v, %d requests", res, len(s.f.pulls))
	}
}
