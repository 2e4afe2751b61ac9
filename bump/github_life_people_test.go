package bump_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/bump"
	"github.com/rocm-nightly/rocm-nightly/bump/body"
	"github.com/rocm-nightly/rocm-nightly/bump/forge"
	"github.com/rocm-nightly/rocm-nightly/internal/githubtest"
	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

// hubPeople: labels, reviewers, assignees and a draft, none taken off again.
func hubPeople(t *testing.T, l *hubLives) {
	s := l.begin(t, "people", "gfx1151")
	s.bump.Labels, s.bump.Reviewers, s.bump.Assignees, s.bump.Draft = []string{"rocm", "{{.New}}"}, []string{"ann"}, []string{"ann"}, true
	s.must(t, 1, bump.ActionOpened)
	p := s.only(t)
	if !slices.Equal(p.Labels, []string{"rocm", "10.2.0a20261001"}) || !slices.Equal(p.Reviewers, []string{"ann"}) || !slices.Equal(p.Assignees, []string{"ann"}) || !p.Draft {
		t.Errorf("%+v", p)
	}
	s.repo.Unlabel(p.Number, "rocm")
	s.must(t, 1, bump.ActionNone)
	if again := s.only(t); slices.Contains(again.Labels, "rocm") {
		t.Errorf("a label that a person took off is back: %+v", again)
	}
	// What the repository does not know is said, and keeps nothing back.
	s.bump.Reviewers = []string{"nobody"}
	s.repo.Push("main", "ann", "x", map[string]string{"other.nix": pinned("gfx1151")})
	s.bump.Name, s.bump.Files = "people-2", pins("other.nix", "gfx1151")
	if r := s.must(t, 1, bump.ActionOpened); !strings.Contains(strings.Join(r.Actions, "\n"), "could not ask for reviews") {
		t.Errorf("%q", r.Actions)
	}
}

// hubTheirs: a person's own request for the same pin is left to them.
func hubTheirs(t *testing.T, l *hubLives) {
	s := l.begin(t, "theirs", "gfx1151")
	p := night(1, "gfx1151")
	text := strings.NewReplacer("10.1.0a20260901", p.Version, "https://nightly.example.org/old-gfx1151.tar.gz", p.URL,
		"sha256-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", p.SRI).Replace(pinned("gfx1151"))
	s.repo.Push("my-bump", "ann", "rocm "+p.Version, map[string]string{"rocm.nix": text})
	theirs := s.repo.OpenPull("ann", "rocm: "+p.Version, "", "main", "my-bump")
	s.must(t, 1, bump.ActionIgnored)
	if one := s.only(t); one.Number != theirs || len(one.Comments) != 0 {
		t.Errorf("%+v", one)
	}
	s.must(t, 2, bump.ActionOpened)
}

// hubDashboard: one issue lists what there is, and its boxes work.
func hubDashboard(t *testing.T, l *hubLives) {
	s := l.begin(t, "dashboard", "gfx1151")
	s.bump.Dashboard = "ROCm nightlies"
	s.must(t, 1, bump.ActionOpened)
	s.must(t, 1, bump.ActionNone)
	var board []githubtest.Item
	for _, i := range s.repo.Items() {
		if !i.Pull {
			board = append(board, i)
		}
	}
	if len(board) != 1 || board[0].Title != "ROCm nightlies" || !strings.Contains(board[0].Body, "10.2.0a20261001") {
		t.Fatalf("%+v", board)
	}
	s.repo.Edit(board[0].Number, board[0].Title, tick(t, board[0].Body, body.BoxIgnore))
	if r, err := s.run(t, 1); err != nil || len(s.pulls("open")) != 0 {
		t.Errorf("ignored, and still open: %+v, %v", r, err)
	}
	s.must(t, 1, bump.ActionIgnored)
	s.must(t, 2, bump.ActionOpened)
	if now := s.item(board[0].Number); now.State != "open" || !strings.Contains(now.Body, "10.2.0a20261002") {
		t.Errorf("%+v", now)
	}
}

// hubAutoMerge: GitHub is told by GraphQL to merge, where checks are required.
func hubAutoMerge(t *testing.T, l *hubLives) {
	s := l.begin(t, "auto", "gfx1151")
	s.bump.AutoMerge = "platform"
	s.repo.Set(false, false, true)
	s.must(t, 1, bump.ActionOpened)
	if p := s.only(t); p.AutoMerge || !strings.Contains(p.Body, "merged by hand") {
		t.Errorf("no check is required: %+v", p)
	}
	s.repo.Require("main", nil, []string{"ci"})
	s.must(t, 2, bump.ActionUpdated)
	if p := s.only(t); !p.AutoMerge || strings.Contains(p.Body, "merged by hand") {
		t.Errorf("%+v", p)
	}
	s.must(t, 2, bump.ActionNone)

	// By ourselves, after a day, if the check has passed.
	s = l.begin(t, "later", "gfx1151")
	s.bump.AutoMerge, s.bump.MergeMethod = "24h", "squash"
	s.repo.Require("main", []string{"ci"}, nil)
	s.must(t, 1, bump.ActionOpened)
	p := s.only(t)
	s.clock.at = s.clock.at.Add(25 * time.Hour)
	s.must(t, 1, bump.ActionNone)
	s.repo.Check(p.Commit, "ci", "success")
	s.must(t, 1, bump.ActionMerged)
	if now := s.item(p.Number); now.State != "merged" || s.repo.Tip(p.Head) != "" || !strings.Contains(s.repo.Read("main", "rocm.nix"), "10.2.0a20261001") {
		t.Errorf("%+v", now)
	}
	s.must(t, 1, bump.ActionNone)
}

// hubApp: an App's commits are signed by GitHub and known again.
func hubApp(t *testing.T, l *hubLives) {
	s := l.begin(t, "app", "gfx1151")
	id, key := l.site.App("rocm-bumper", "ann", map[string]string{"contents": "write", "pull_requests": "write", "issues": "write"}, 0)
	file := t.TempDir() + "/key.pem"
	if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	s.bump.Token, s.bump.App = secret.Source{}, bump.App{ID: id, Key: secret.Source{File: file}}
	if r := s.must(t, 1, bump.ActionOpened); !r.Verified {
		t.Errorf("not verified: %+v", r)
	}
	if p := s.only(t); p.Author != "rocm-bumper[bot]" {
		t.Errorf("%+v", p)
	}
	s.must(t, 1, bump.ActionNone)
	s.must(t, 2, bump.ActionUpdated)
	s.holds(t, s.repo, s.only(t).Head, "rocm.nix", 2, "gfx1151")
	few, key := l.site.App("reader", "ann", map[string]string{"contents": "read", "pull_requests": "write"}, 0)
	if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	s.bump.App.ID = few
	var auth *forge.AuthError
	if _, err := s.run(t, 3); !errors.As(err, &auth) || fmt.Sprint(auth.Missing) != "[contents=write]" {
		t.Errorf("an App without rights: %v", err)
	}
}

// hubActions: so does the token of a workflow.
func hubActions(t *testing.T, l *hubLives) {
	s := l.begin(t, "actions", "gfx1151")
	s.token = l.site.ActionsToken()
	if r := s.must(t, 1, bump.ActionOpened); !r.Verified {
		t.Errorf("not verified: %+v", r)
	}
	s.must(t, 1, bump.ActionNone)
	s.must(t, 2, bump.ActionUpdated)
	s.holds(t, s.repo, s.only(t).Head, "rocm.nix", 2, "gfx1151")
}

// hubScopes: what a token lacks is named before anything is changed.
func hubScopes(t *testing.T, l *hubLives) {
	s := l.begin(t, "scopes", "gfx1151")
	for _, c := range []struct {
		private bool
		scopes  []string
		missing string
	}{
		{false, []string{"public_repo"}, ""}, {true, []string{"repo"}, ""}, {false, []string{"gist"}, "[public_repo]"}, {false, []string{}, "[public_repo]"},
	} {
		s.repo.Set(c.private, false, false)
		s.token = l.site.ClassicToken("bot", c.scopes...)
		_, err := s.run(t, 1)
		var auth *forge.AuthError
		if c.missing == "" && err != nil || c.missing != "" && (!errors.As(err, &auth) || fmt.Sprint(auth.Missing) != c.missing) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
