package bump_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/bump"
	"github.com/rocm-nightly/rocm-nightly/bump/body"
	"github.com/rocm-nightly/rocm-nightly/internal/giteatest"
)

// TestGitea: requests from their opening to their end, on one real Gitea. Each
// life has a repository of its own, so that they go on side by side.
func TestGitea(t *testing.T) {
	l := newLives(t)
	for _, part := range []struct {
		name string
		test func(*testing.T, *lives)
	}{
		{"Refresh", lifeRefresh}, {"Human", lifeHuman}, {"Close", lifeClose}, {"Merge", lifeMerge}, {"Obsolete", lifeObsolete}, {"Withdrawn", lifeWithdrawn},
		{"Conflict", lifeConflict}, {"Fork", lifeFork}, {"Lockstep", lifeLockstep}, {"Independent", lifeIndependent}, {"People", lifePeople},
		{"Theirs", lifeTheirs}, {"Dashboard", lifeDashboard}, {"AutoMerge", lifeAutoMerge}, {"Killed", lifeKilled},
		{"Edited", lifeEdited}, {"Retargeted", lifeRetargeted}, {"Rebased", lifeRebased}, {"MergedInOtherWays", lifeMergedInOtherWays}, {"Reopened", lifeReopened},
		{"ForkGone", lifeForkGone}, {"AtOnce", lifeAtOnce}, {"Late", lifeLate}, {"Bounds", lifeBounds}, {"MergesItself", lifeMergesItself},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			part.test(t, l)
		})
	}
}

// lifeRefresh: opened once, edited in place, and left alone when all is said.
func lifeRefresh(t *testing.T, l *lives) {
	s := l.begin(t, "refresh", "gfx1151")
	r := s.must(t, 1, bump.ActionOpened)
	p := s.only(t)
	if r.Number != p.Number || !r.Pushed || r.URL == "" || p.User.Login != "bot" || p.Head.Branch != branchOf+"refresh" || !strings.Contains(p.Title, "10.2.0a20261001") {
		t.Errorf("%+v\n%+v", r, p)
	}
	s.holds(t, p.Head.Branch, "rocm.nix", 1, "gfx1151")
	if body.Fingerprint(p.Body) == "" {
		t.Errorf("the body carries no fingerprint:\n%s", p.Body)
	}

	r = s.must(t, 1, bump.ActionNone)
	if again := s.only(t); r.Pushed || again.Head.SHA != p.Head.SHA || again.Body != p.Body || again.Title != p.Title {
		t.Errorf("nothing is new, yet: %+v\n%+v", r, again)
	}
	// The base goes on elsewhere: no reason to run anybody's checks again.
	s.ann.Commit(t, s.repo, "main", "elsewhere", map[string]string{"README.md": "more\n"})
	s.must(t, 1, bump.ActionNone)
	if tip := s.ann.Tip(t, s.repo, p.Head.Branch); tip != p.Head.SHA {
		t.Error("pushed again although only the base moved")
	}

	r = s.must(t, 2, bump.ActionUpdated)
	if next := s.only(t); next.Number != p.Number || r.Number != p.Number || !strings.Contains(next.Title, "10.2.0a20261002") || !strings.Contains(next.Body, "10.2.0a20261002") {
		t.Errorf("%+v\n%+v", r, next)
	}
	s.holds(t, p.Head.Branch, "rocm.nix", 2, "gfx1151")
}

// lifeHuman: a person's commit wins, until the box is ticked.
func lifeHuman(t *testing.T, l *lives) {
	s := l.begin(t, "human", "gfx1151")
	s.must(t, 1, bump.ActionOpened)
	p := s.only(t)
	theirs := s.ann.Commit(t, s.repo, p.Head.Branch, "fix the build", map[string]string{"fix.patch": "x\n"})
	for range 2 {
		r, err := s.run(t, 2)
		var human *bump.HumanCommitsError
		if err != nil && !errors.As(err, &human) || err == nil && r.Pushed {
			t.Errorf("a person's commit: %+v, %v", r, err)
		}
	}
	if tip := s.ann.Tip(t, s.repo, p.Head.Branch); tip != theirs {
		t.Errorf("%s took the place of their %s", tip, theirs)
	}
	if said := s.comments(t, p.Number); len(said) != 1 {
		t.Errorf("it should be said once: %q", said)
	}
	ticked := tick(t, s.only(t).Body, body.BoxRetry)
	s.ann.Call(t, 201, "PATCH", fmt.Sprintf("%s/pulls/%d", s.repo.API(), p.Number), map[string]any{"body": ticked}, nil)
	s.must(t, 2, bump.ActionUpdated)
	if again := s.only(t); again.Number != p.Number || slices.Contains(body.Ticked(again.Body), body.BoxRetry) {
		t.Errorf("the box is still ticked, or the request another: %+v", again)
	}
	s.holds(t, p.Head.Branch, "rocm.nix", 2, "gfx1151")
}

// lifeClose: what a person closed is not offered again, but the next one is.
func lifeClose(t *testing.T, l *lives) {
	s := l.begin(t, "close", "gfx1151")
	s.must(t, 1, bump.ActionOpened)
	first := s.only(t).Number
	s.ann.SetPull(t, s.repo, first, "closed")
	for range 2 {
		s.must(t, 1, bump.ActionIgnored)
	}
	if open := s.ann.Pulls(t, s.repo, "open"); len(open) != 0 {
		t.Errorf("%+v", open)
	}
	s.must(t, 2, bump.ActionOpened)
	s.holds(t, s.only(t).Head.Branch, "rocm.nix", 2, "gfx1151")

	s.ann.SetPull(t, s.repo, s.only(t).Number, "closed")
	always := func(r *bump.Repo, _ *bump.Options) { r.Reopen = "always" }
	if r, err := s.run(t, 2, always); err != nil || r.Number == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	s.holds(t, s.only(t).Head.Branch, "rocm.nix", 2, "gfx1151")
}

// lifeMerge: after a merge the branch goes, and the next night is a new request.
func lifeMerge(t *testing.T, l *lives) {
	s := l.begin(t, "merge", "gfx1151")
	s.must(t, 1, bump.ActionOpened)
	p := s.only(t)
	s.ann.Merge(t, s.repo, p.Number)
	if r, err := s.run(t, 1); err != nil || r.Changed || r.Pushed {
		t.Errorf("%+v, %v", r, err)
	}
	if tip := s.ann.Tip(t, s.repo, p.Head.Branch); tip != "" {
		t.Errorf("%s is still there", p.Head.Branch)
	}
	r := s.must(t, 2, bump.ActionOpened)
	if r.Number == p.Number || s.only(t).Number != r.Number {
		t.Errorf("%+v", r)
	}
}

// lifeObsolete: what the base has already needs no request.
func lifeObsolete(t *testing.T, l *lives) {
	s := l.begin(t, "obsolete", "gfx1151")
	s.must(t, 1, bump.ActionOpened)
	p := s.only(t)
	s.ann.Commit(t, s.repo, "main", "by hand", map[string]string{"rocm.nix": s.ann.File(t, s.repo, p.Head.Branch, "rocm.nix")})
	s.must(t, 1, bump.ActionClosed)
	s.ended(t, p)
}

// ended checks that a request was closed by us, with a reason, and its branch
// removed.
func (s *subject) ended(t *testing.T, p giteatest.Pull) {
	t.Helper()
	if open := s.ann.Pulls(t, s.repo, "open"); len(open) != 0 {
		t.Errorf("still open: %+v", open)
	}
	if said := s.comments(t, p.Number); len(said) != 1 {
		t.Errorf("it was closed without one reason: %q", said)
	}
	if tip := s.ann.Tip(t, s.repo, p.Head.Branch); tip != "" {
		t.Errorf("%s is still there", p.Head.Branch)
	}
}

// lifeWithdrawn: what AMD has taken back is not offered.
func lifeWithdrawn(t *testing.T, l *lives) {
	s := l.begin(t, "withdrawn", "gfx1151")
	s.must(t, 1, bump.ActionOpened)
	p := s.only(t)
	s.must(t, 1, bump.ActionClosed, func(_ *bump.Repo, o *bump.Options) { o.Published = func(string) bool { return false } })
	s.ended(t, p)
	// It was not a person who closed it.
	s.must(t, 1, bump.ActionOpened)
}

// lifeConflict: the branch is made anew on a base that contradicts it.
func lifeConflict(t *testing.T, l *lives) {
	s := l.begin(t, "conflict", "gfx1151")
	s.must(t, 1, bump.ActionOpened)
	p := s.only(t)
	older := strings.ReplaceAll(pinned("gfx1151"), "10.1.0a20260901", "10.1.0a20260915")
	s.ann.Commit(t, s.repo, "main", "an older one by hand", map[string]string{"rocm.nix": older})
	s.must(t, 1, bump.ActionUpdated)
	if again := s.only(t); again.Number != p.Number {
		t.Errorf("%+v", again)
	}
	s.holds(t, p.Head.Branch, "rocm.nix", 1, "gfx1151")
}

// lifeFork: without the right to push, the branch lives in a fork.
func lifeFork(t *testing.T, l *lives) {
	s := l.begin(t, "fork", "gfx1151")
	s.as = l.bob
	s.must(t, 1, bump.ActionOpened)
	p := s.only(t)
	if p.Head.Repo.FullName != "bob/fork" || p.User.Login != "bob" || p.Head.Branch != branchOf+"fork" {
		t.Errorf("%+v", p)
	}
	s.must(t, 1, bump.ActionNone)
	s.must(t, 2, bump.ActionUpdated)
	if again := s.only(t); again.Number != p.Number || again.Head.SHA == p.Head.SHA {
		t.Errorf("%+v", again)
	}
	if tip := s.ann.Tip(t, s.repo, p.Head.Branch); tip != "" {
		t.Error("the branch is in the repository itself")
	}
	if _, err := s.run(t, 3, func(r *bump.Repo, _ *bump.Options) { r.Fork = "never" }); err == nil {
		t.Error("pushed without the right to")
	}
}

// lifeLockstep: two targets of one version are one request.
func lifeLockstep(t *testing.T, l *lives) {
	s := l.begin(t, "lockstep", "gfx1103", "gfx1151")
	late := map[string]bump.Pin{"gfx1151": night(1, "gfx1151")}
	r, err := s.runPins(t, late)
	if err != nil || r.Action != bump.ActionWaits || fmt.Sprint(r.Waiting) != "[gfx1103]" || len(s.ann.Pulls(t, s.repo, "open")) != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	s.must(t, 1, bump.ActionOpened)
	s.holds(t, s.only(t).Head.Branch, "rocm.nix", 1, "gfx1103", "gfx1151")
	s.must(t, 2, bump.ActionUpdated)
	s.holds(t, s.only(t).Head.Branch, "rocm.nix", 2, "gfx1103", "gfx1151")
}

// lifeIndependent: each target has a request of its own.
func lifeIndependent(t *testing.T, l *lives) {
	s := l.begin(t, "independent", "gfx1103", "gfx1151")
	s.bump.Group = "independent"
	s.ann.Commit(t, s.repo, "main", "two files", map[string]string{"a.nix": pinned("gfx1103"), "b.nix": pinned("gfx1151")})
	s.bump.Files = append(pins("a.nix", "gfx1103"), pins("b.nix", "gfx1151")...)
	r := s.must(t, 1, bump.ActionOpened)
	if len(r.Others) != 1 || r.Others[0].Action != bump.ActionOpened {
		t.Fatalf("%+v", r)
	}
	s.holds(t, branchOf+"independent-gfx1103", "a.nix", 1, "gfx1103")
	s.holds(t, branchOf+"independent-gfx1151", "b.nix", 1, "gfx1151")
	if open := s.ann.Pulls(t, s.repo, "open"); len(open) != 2 {
		t.Errorf("%+v", open)
	}
	for _, p := range s.ann.Pulls(t, s.repo, "open") {
		if strings.HasSuffix(p.Head.Branch, "gfx1103") {
			s.ann.Merge(t, s.repo, p.Number)
		}
	}
	if r, err := s.run(t, 2); err != nil || len(r.Others) != 1 || len(s.ann.Pulls(t, s.repo, "open")) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}
