package bump_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/bump"
	"github.com/rocm-nightly/rocm-nightly/bump/body"
	"github.com/rocm-nightly/rocm-nightly/internal/giteatest"
)

// lifePeople: labels, reviewers, assignees and a draft, none taken off again.
func lifePeople(t *testing.T, l *lives) {
	s := l.begin(t, "people", "gfx1151")
	s.bump.Labels, s.bump.Reviewers, s.bump.Assignees, s.bump.Draft = []string{"rocm", "{{.New}}"}, []string{"ann"}, []string{"ann"}, true
	s.must(t, 1, bump.ActionOpened)
	p := s.only(t)
	var labels []string
	for _, one := range p.Labels {
		labels = append(labels, one.Name)
	}
	slices.Sort(labels)
	if fmt.Sprint(labels) != "[10.2.0a20261001 rocm]" || len(p.Reviewers) != 1 || p.Reviewers[0].Login != "ann" || len(p.Assignees) != 1 || !p.Draft {
		t.Errorf("%q %+v", labels, p)
	}
	// A person finishes the draft: it stays so.
	s.ann.Call(t, 201, "PATCH", fmt.Sprintf("%s/pulls/%d", s.repo.API(), p.Number), map[string]any{"title": strings.TrimPrefix(p.Title, "WIP: ")}, nil)
	s.must(t, 2, bump.ActionUpdated)
	if again := s.only(t); again.Draft || strings.Contains(again.Title, "WIP") {
		t.Errorf("%+v", again)
	}
}

// lifeTheirs: a person's own request for the same pin is left to them.
func lifeTheirs(t *testing.T, l *lives) {
	s := l.begin(t, "theirs", "gfx1151")
	p := night(1, "gfx1151")
	text := strings.NewReplacer("10.1.0a20260901", p.Version, "https://nightly.example.org/old-gfx1151.tar.gz", p.URL,
		"sha256-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", p.SRI).Replace(pinned("gfx1151"))
	s.ann.Commit(t, s.repo, "my-bump", "rocm "+p.Version, map[string]string{"rocm.nix": text})
	var theirs giteatest.Pull
	s.ann.Call(t, 201, "POST", s.repo.API()+"/pulls", map[string]any{"title": "rocm: " + p.Version, "head": "my-bump", "base": "main"}, &theirs)
	s.must(t, 1, bump.ActionIgnored)
	if one := s.only(t); one.Number != theirs.Number || len(s.comments(t, theirs.Number)) != 0 {
		t.Errorf("%+v", one)
	}
	s.must(t, 2, bump.ActionOpened)
}

// lifeDashboard: one issue lists what there is, and its boxes work.
func lifeDashboard(t *testing.T, l *lives) {
	s := l.begin(t, "dashboard", "gfx1151")
	s.bump.Dashboard = "ROCm nightlies"
	s.must(t, 1, bump.ActionOpened)
	s.must(t, 1, bump.ActionNone)
	type issue struct {
		Number int64  `json:"number"`
		Title  string `json:"title"`
		Body   string `json:"body"`
	}
	var list []issue
	s.ann.Call(t, 200, "GET", s.repo.API()+"/issues?type=issues&state=open", nil, &list)
	if len(list) != 1 || list[0].Title != "ROCm nightlies" || !strings.Contains(list[0].Body, "10.2.0a20261001") {
		t.Fatalf("%+v", list)
	}
	s.ann.Call(t, 201, "PATCH", fmt.Sprintf("%s/issues/%d", s.repo.API(), list[0].Number), map[string]any{"body": tick(t, list[0].Body, body.BoxIgnore)}, nil)
	if r, err := s.run(t, 1); err != nil || len(s.ann.Pulls(t, s.repo, "open")) != 0 {
		t.Errorf("ignored, and still open: %+v, %v", r, err)
	}
	s.must(t, 1, bump.ActionIgnored)
	s.must(t, 2, bump.ActionOpened)
}

// lifeAutoMerge: Gitea merges when the required check has passed.
func lifeAutoMerge(t *testing.T, l *lives) {
	s := l.begin(t, "auto", "gfx1151")
	s.bump.AutoMerge = "platform"
	s.ann.Call(t, 201, "POST", s.repo.API()+"/branch_protections", map[string]any{
		"rule_name": "main", "enable_status_check": true, "status_check_contexts": []string{"ci"}, "enable_push": true,
	}, nil)
	s.must(t, 1, bump.ActionOpened)
	p := s.only(t)
	s.must(t, 1, bump.ActionNone)
	s.ann.Call(t, 201, "POST", s.repo.API()+"/statuses/"+p.Head.SHA, map[string]any{"context": "ci", "state": "success"}, nil)
	for try := 0; len(s.ann.Pulls(t, s.repo, "open")) > 0; try++ {
		if try == 200 {
			t.Fatal("it does not merge itself")
		}
	}
	if !strings.Contains(s.ann.File(t, s.repo, "main", "rocm.nix"), "10.2.0a20261001") {
		t.Error("it was closed, not merged")
	}
}
