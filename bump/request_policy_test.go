package bump

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/bump/forge"
)

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

// A title may be made of what only a run knows.
func TestCheckRepoTriesTemplatesOnSomething(t *testing.T) {
	for title, ok := range map[string]bool{"": true, "{{.New}}": true, "{{.Old}}{{.Date}}": true, "{{range .Pins}}{{.Family}}{{end}}": true, "{{.Body}}": true, " ": false, "{{.None}}": false, "a\nb": false} {
		repo := Repo{Name: "a", URL: "/srv/r.git", Title: title, Files: []File{{Path: "f.nix", Set: map[string]string{"v": "{{.Version}}"}}}}
		if err := CheckRepo(repo); (err == nil) != ok {
			t.Errorf("%q: %v", title, err)
		}
	}
}
