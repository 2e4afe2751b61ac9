package bump

import (
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/bump/body"
	"github.com/rocm-nightly/rocm-nightly/bump/forge"
)

// TestOneRequestStaysOpen: a person closed one, the next night opened another,
// and then the person opens the first one again: both are from one branch.
func TestOneRequestStaysOpen(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.run(n29)
	s.f.pulls[0].State, s.f.pulls[0].Ended = forge.Closed, s.now
	s.run(n30)
	s.f.pulls[0].State, s.f.changes = forge.Opened, nil
	s.want(s.run(n30, func(_ *Repo, o *Options) { o.DryRun = true }), ActionUpdated)
	s.want(s.run(n30), ActionUpdated, "comment", "edit")
	if s.f.pulls[0].State != forge.Closed || s.f.pulls[1].State != forge.Opened {
		t.Errorf("%+v\n%+v", s.f.pulls[0], s.f.pulls[1])
	}
	s.want(s.run(n30), ActionNone)
	// Somebody's own from our branch is theirs.
	s.f.addPull("eve", "mine", "text", "main", branch, s.f.repo())
	s.want(s.run(n30), ActionNone)
	// Where there is no other it is taken up, and their words stay.
	s.f.pulls[1].State, s.f.pulls[1].Ended = forge.Merged, s.now
	s.run(n30)
	s.f.changes = nil
	s.want(s.run(n31), ActionUpdated, "commit", "move", "edit")
	if p := s.f.pulls[2]; p.Title != "mine" || !strings.HasPrefix(p.Body, "text\n\n") || body.Versions(p.Body)["gfx1151"] != n31 {
		t.Errorf("%+v", p)
	}
}

// TestIgnoreBoxDoesNotWait: the next night is too young to be offered, and a
// person wants to be rid of the open one now.
func TestIgnoreBoxDoesNotWait(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.run(n29)
	young := func(r *Repo, o *Options) {
		r.MinAge = 90 * 24 * time.Hour
		o.Published = func(string) bool { return true }
	}
	s.f.changes = nil
	s.want(s.run(n30, young), ActionWaits)
	s.tick(1, body.BoxIgnore)
	s.want(s.run(n30, young), ActionIgnored, "comment", "edit", "remove")
	s.want(s.run(n30, young), ActionWaits)
	s.want(s.run(n29), ActionIgnored)
	s.want(s.run(n30), ActionOpened, "commit", "move", "open")
}
