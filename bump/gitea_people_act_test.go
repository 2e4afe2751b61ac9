package bump_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/bump"
	"github.com/rocm-nightly/rocm-nightly/internal/giteatest"
)

// change edits a request as somebody does on its page.
func (s *subject) change(t *testing.T, number int64, in map[string]any) {
	t.Helper()
	s.ann.Call(t, 201, "PATCH", fmt.Sprintf("%s/pulls/%d", s.repo.API(), number), in, nil)
}

// branch makes a branch of a person's from another, or deletes one where from
// is "".
func (s *subject) branch(t *testing.T, name, from string) {
	t.Helper()
	if from == "" {
		s.ann.Call(t, 204, "DELETE", s.repo.API()+"/branches/"+strings.ReplaceAll(name, "/", "%2F"), nil, nil)
		return
	}
	s.ann.Call(t, 201, "POST", s.repo.API()+"/branches", map[string]any{"new_branch_name": name, "old_branch_name": from}, nil)
}

func labelsOf(p giteatest.Pull) string {
	var names []string
	for _, l := range p.Labels {
		names = append(names, l.Name)
	}
	return strings.Join(names, " ")
}

// lifeEdited: a person's title, what they wrote around the body, and that they
// took a label off outlive the next night.
func lifeEdited(t *testing.T, l *lives) {
	s := l.begin(t, "edited", "gfx1151")
	s.bump.Labels = []string{"rocm", "packages"}
	s.must(t, 1, bump.ActionOpened)
	p := s.only(t)
	s.change(t, p.Number, map[string]any{"title": "The ROCm of tomorrow", "body": "Please wait for bob.\r\n\r\n" + strings.ReplaceAll(p.Body, "\n", "\r\n") + "\r\nSee also the wiki.\r\n"})
	for _, label := range p.Labels {
		if label.Name == "rocm" {
			s.ann.Call(t, 204, "DELETE", fmt.Sprintf("%s/issues/%d/labels/%d", s.repo.API(), p.Number, label.ID), nil, nil)
		}
	}
	// It is said in the body whose title it is, once.
	if r, err := s.run(t, 1); err != nil || r.Pushed {
		t.Fatalf("%+v, %v", r, err)
	}
	s.must(t, 1, bump.ActionNone)
	s.must(t, 2, bump.ActionUpdated)
	again := s.only(t)
	if again.Title != "The ROCm of tomorrow" || !strings.HasPrefix(again.Body, "Please wait for bob.") || !strings.Contains(again.Body, "See also the wiki.") ||
		!strings.Contains(again.Body, night(2, "gfx1151").Version) || strings.Count(again.Body, "rocm-nightly:body") != 1 {
		t.Errorf("%q\n%s", again.Title, again.Body)
	}
	if labelsOf(again) != "packages" {
		t.Errorf("a label that a person took off is back: %s", labelsOf(again))
	}
	s.must(t, 2, bump.ActionNone)
}

// lifeRetargeted: a request that a person has turned to another branch is
// theirs, whatever comes; turned back it is ours again.
func lifeRetargeted(t *testing.T, l *lives) {
	s := l.begin(t, "retargeted", "gfx1151")
	s.must(t, 1, bump.ActionOpened)
	p := s.only(t)
	s.branch(t, "stable", "main")
	s.change(t, p.Number, map[string]any{"base": "stable"})
	s.must(t, 2, bump.ActionIgnored)
	if again := s.only(t); again.Head.SHA != p.Head.SHA || again.Body != p.Body {
		t.Errorf("%+v", again)
	}
	s.change(t, p.Number, map[string]any{"base": "main"})
	s.must(t, 2, bump.ActionUpdated)
	s.holds(t, p.Head.Branch, "rocm.nix", 2, "gfx1151")
}

// lifeRebased: whoever rebases the branch, on the page or by hand, has made it
// theirs; it is said once, and nothing of it is lost.
func lifeRebased(t *testing.T, l *lives) {
	s := l.begin(t, "rebased", "gfx1151")
	s.must(t, 1, bump.ActionOpened)
	p := s.only(t)
	s.ann.Commit(t, s.repo, "main", "elsewhere", map[string]string{"README.md": "more\n"})
	s.ann.Call(t, 200, "POST", fmt.Sprintf("%s/pulls/%d/update?style=rebase", s.repo.API(), p.Number), nil, nil)
	theirs := s.ann.Tip(t, s.repo, p.Head.Branch)
	if theirs == p.Head.SHA {
		t.Fatal("it was not rebased")
	}
	for range 2 {
		s.must(t, 2, bump.ActionIgnored)
	}
	if tip := s.ann.Tip(t, s.repo, p.Head.Branch); tip != theirs || len(s.comments(t, p.Number)) != 1 {
		t.Errorf("%s took the place of %s; said %q", tip, theirs, s.comments(t, p.Number))
	}
	// The label does what that comment says, and goes.
	s.ann.Call(t, 201, "POST", s.repo.API()+"/labels", map[string]any{"name": "rocm-nightly:retry", "color": "#00aabb"}, nil)
	s.ann.Call(t, 200, "POST", fmt.Sprintf("%s/issues/%d/labels", s.repo.API(), p.Number), map[string]any{"labels": []string{"rocm-nightly:retry"}}, nil)
	s.must(t, 2, bump.ActionUpdated)
	if again := s.only(t); again.Number != p.Number || labelsOf(again) != "" {
		t.Errorf("%+v", again)
	}
	s.holds(t, p.Head.Branch, "rocm.nix", 2, "gfx1151")
	// Who deletes the branch closes the request with it, and has said no.
	s.branch(t, p.Head.Branch, "")
	s.must(t, 2, bump.ActionIgnored)
	s.must(t, 3, bump.ActionOpened)
}

// lifeMergedInOtherWays: squashed or rebased, it is merged all the same.
func lifeMergedInOtherWays(t *testing.T, l *lives) {
	s := l.begin(t, "ways", "gfx1151")
	for n, way := range []string{"squash", "rebase", "rebase-merge"} {
		s.must(t, n+1, bump.ActionOpened)
		p := s.only(t)
		s.ann.MergeAs(t, s.repo, p.Number, way)
		s.must(t, n+1, bump.ActionNone)
		if tip := s.ann.Tip(t, s.repo, p.Head.Branch); tip != "" || len(s.comments(t, p.Number)) != 0 {
			t.Errorf("%s: %s is still there, or spoken of: %q", way, p.Head.Branch, s.comments(t, p.Number))
		}
	}
}

// lifeReopened: what a person opens again goes on, also where a newer one was
// opened meanwhile: then there is one in the end.
func lifeReopened(t *testing.T, l *lives) {
	s := l.begin(t, "reopened", "gfx1151")
	s.must(t, 1, bump.ActionOpened)
	p := s.only(t)
	s.ann.SetPull(t, s.repo, p.Number, "closed")
	s.must(t, 1, bump.ActionIgnored)
	s.ann.SetPull(t, s.repo, p.Number, "open")
	s.must(t, 1, bump.ActionNone)
	s.must(t, 2, bump.ActionUpdated)
	if again := s.only(t); again.Number != p.Number {
		t.Errorf("%+v", again)
	}
	s.ann.SetPull(t, s.repo, p.Number, "closed")
	s.must(t, 3, bump.ActionOpened)
	if status, _ := s.ann.Try(t, "PATCH", fmt.Sprintf("%s/pulls/%d", s.repo.API(), p.Number), map[string]any{"state": "open"}, nil); status == 201 {
		if r, err := s.run(t, 3); err != nil {
			t.Errorf("%+v, %v", r, err)
		}
		s.only(t)
	}
	// A new title on a closed one asks for it again.
	for _, one := range s.ann.Pulls(t, s.repo, "open") {
		s.ann.SetPull(t, s.repo, one.Number, "closed")
		s.must(t, 3, bump.ActionIgnored)
		s.change(t, one.Number, map[string]any{"title": "again, please"})
	}
	s.must(t, 3, bump.ActionOpened)
}

// lifeForkGone: the fork that a request came from is deleted, and with it the
// request's branch. There is one request again, from the new fork.
func lifeForkGone(t *testing.T, l *lives) {
	s := l.begin(t, "forkgone", "gfx1151")
	s.as = l.bob
	s.must(t, 1, bump.ActionOpened)
	p := s.only(t)
	s.bob.Call(t, 204, "DELETE", "/repos/bob/forkgone", nil, nil)
	r, err := s.run(t, 2)
	if err != nil {
		t.Fatal(err)
	}
	again := s.only(t)
	if again.Head.Repo.FullName != "bob/forkgone" || r.Number != again.Number || again.Number == p.Number {
		t.Errorf("%+v\n%+v", r, again)
	}
	s.must(t, 2, bump.ActionNone)
}

// lifeAtOnce: two runs at the same time are as good as one.
func lifeAtOnce(t *testing.T, l *lives) {
	s := l.begin(t, "atonce", "gfx1151")
	s.bump.Labels, s.bump.Dashboard = []string{"rocm"}, "ROCm nightlies"
	for n := range 2 {
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if r, err := s.run(t, n+1); err != nil {
					t.Errorf("night %d: %+v, %v", n+1, r, err)
				}
			})
		}
		both.Wait()
		s.holds(t, s.only(t).Head.Branch, "rocm.nix", n+1, "gfx1151")
		s.must(t, n+1, bump.ActionNone)
	}
	if all := s.ann.Pulls(t, s.repo, "all"); len(all) != 1 || labelsOf(all[0]) != "rocm" {
		t.Errorf("%+v", all)
	}
	var boards []struct{ Number int64 }
	s.ann.Call(t, 200, "GET", s.repo.API()+"/issues?type=issues&state=open", nil, &boards)
	if len(boards) != 1 {
		t.Errorf("%d dashboards", len(boards))
	}
}

// lifeLate: lockstep waits for max_wait and no longer, and what is half
// withdrawn is withdrawn.
func lifeLate(t *testing.T, l *lives) {
	s := l.begin(t, "late", "gfx1103", "gfx1151")
	s.bump.MaxWait = 48 * time.Hour
	at := func(day, hour int) func(*bump.Repo, *bump.Options) {
		return func(_ *bump.Repo, o *bump.Options) {
			o.Now = func() time.Time { return time.Date(2026, 10, day, hour, 0, 0, 0, time.UTC) }
		}
	}
	s.must(t, 1, bump.ActionOpened, at(1, 6))
	p := s.only(t)
	split := map[string]bump.Pin{"gfx1151": night(2, "gfx1151"), "gfx1103": night(1, "gfx1103")}
	r, err := s.runPins(t, split, at(3, 23))
	if err != nil || r.Action != bump.ActionWaits || s.only(t).Head.SHA != p.Head.SHA {
		t.Errorf("%+v, %v", r, err)
	}
	// One half of what is open is gone from the index, while the new one waits.
	gone := func(_ *bump.Repo, o *bump.Options) {
		o.Published = func(name string) bool { return name != night(1, "gfx1151").Name }
	}
	r, err = s.runPins(t, split, at(3, 23), gone)
	if err != nil || len(s.ann.Pulls(t, s.repo, "open")) != 0 {
		t.Errorf("half of it is withdrawn, and it is open: %+v, %v", r, err)
	}
	r, err = s.runPins(t, split, at(4, 0))
	if err != nil || r.Action != bump.ActionOpened || fmt.Sprint(r.Skipped) != "[gfx1103]" {
		t.Fatalf("%+v, %v", r, err)
	}
	s.must(t, 2, bump.ActionUpdated, at(4, 6))
	s.holds(t, s.only(t).Head.Branch, "rocm.nix", 2, "gfx1103", "gfx1151")
}

// lifeBounds: windows, ages and limits hold back what is new, and a dry run
// changes nothing.
func lifeBounds(t *testing.T, l *lives) {
	s := l.begin(t, "bounds", "gfx1103", "gfx1151")
	s.bump.Group, s.bump.OpenLimit, s.bump.Dashboard = "independent", 1, "ROCm"
	s.bump.Files = nil
	for _, target := range []string{"gfx1103", "gfx1151"} {
		s.ann.Commit(t, s.repo, "main", target, map[string]string{target + ".nix": pinned(target)})
		s.bump.Files = append(s.bump.Files, pins(target+".nix", target)...)
	}
	young := func(r *bump.Repo, _ *bump.Options) { r.MinAge = 100 * 365 * 24 * time.Hour }
	s.must(t, 1, bump.ActionWaits, young)
	shut := func(r *bump.Repo, o *bump.Options) {
		r.Windows = []bump.Window{{Cron: "0 6 * * 1", Length: time.Hour}}
		o.Now = func() time.Time { return time.Date(2026, 10, 6, 6, 0, 0, 0, time.UTC) }
	}
	s.must(t, 1, bump.ActionWaits, shut)
	dry := func(_ *bump.Repo, o *bump.Options) { o.DryRun = true }
	s.must(t, 1, bump.ActionOpened, dry)
	if all := s.ann.Pulls(t, s.repo, "all"); len(all) != 0 || s.ann.Tip(t, s.repo, branchOf+"bounds-gfx1103") != "" {
		t.Fatalf("%+v", all)
	}
	r := s.must(t, 1, bump.ActionOpened)
	if len(r.Others) != 1 || r.Others[0].Action != bump.ActionWaits || s.ann.Tip(t, s.repo, branchOf+"bounds-gfx1151") != "" {
		t.Fatalf("two are open where one may be: %+v", r)
	}
	s.only(t)
	// The one that is open goes on; a person has the other one opened as well.
	var board []struct {
		Number int64
		Body   string
	}
	s.ann.Call(t, 200, "GET", s.repo.API()+"/issues?type=issues&state=open", nil, &board)
	s.ann.Call(t, 201, "PATCH", fmt.Sprintf("%s/issues/%d", s.repo.API(), board[0].Number), map[string]any{"body": tick(t, board[0].Body, "approve")}, nil)
	r = s.must(t, 2, bump.ActionUpdated)
	if len(r.Others) != 1 || r.Others[0].Action != bump.ActionOpened || len(s.ann.Pulls(t, s.repo, "open")) != 2 {
		t.Errorf("%+v", r)
	}
}

// lifeMergesItself: with a time to wait, we merge, and not before the checks
// have passed; the branch's rules are explained where they forbid the push.
func lifeMergesItself(t *testing.T, l *lives) {
	s := l.begin(t, "merges", "gfx1151")
	s.bump.AutoMerge, s.bump.MergeMethod = "24h", "squash"
	s.ann.Call(t, 201, "POST", s.repo.API()+"/branch_protections", map[string]any{
		"rule_name": "main", "enable_status_check": true, "status_check_contexts": []string{"ci"}, "enable_push": true,
	}, nil)
	s.must(t, 1, bump.ActionOpened)
	p := s.only(t)
	late := func(_ *bump.Repo, o *bump.Options) {
		o.Now = func() time.Time { return time.Now().Add(25 * time.Hour) }
	}
	s.must(t, 1, bump.ActionNone, late)
	s.ann.Call(t, 201, "POST", s.repo.API()+"/statuses/"+p.Head.SHA, map[string]any{"context": "ci", "state": "success"}, nil)
	s.must(t, 1, bump.ActionNone)
	s.only(t)
	s.must(t, 1, bump.ActionMerged, late)
	if tip := s.ann.Tip(t, s.repo, p.Head.Branch); tip != "" || !strings.Contains(s.ann.File(t, s.repo, "main", "rocm.nix"), night(1, "gfx1151").Version) {
		t.Errorf("merged, and the branch is at %q", tip)
	}

	s.ann.Call(t, 201, "POST", s.repo.API()+"/branch_protections", map[string]any{
		"rule_name": branchOf + "*", "enable_push": true, "enable_push_whitelist": true, "push_whitelist_usernames": []string{"ann"},
	}, nil)
	if r, err := s.run(t, 2); err == nil || !strings.Contains(err.Error(), "rules refuse this push") {
		t.Errorf("%+v, %v", r, err)
	}
	s.branch(t, "gone", "main")
	s.bump.Base = "gone"
	s.branch(t, "gone", "")
	if r, err := s.run(t, 2); err == nil || !strings.Contains(err.Error(), "there is no branch gone") {
		t.Errorf("%+v, %v", r, err)
	}
}
