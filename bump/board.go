package bump

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rocm-nightly/rocm-nightly/bump/body"
	"github.com/rocm-nightly/rocm-nightly/bump/forge"
	"github.com/rocm-nightly/rocm-nightly/internal/fault"
)

// boxApprove on a dashboard has a request opened in spite of windows and
// limits.
const boxApprove = "approve"

// States of a dashboard's entries.
const (
	stateOpen    = "open"
	statePending = "pending"
	stateLimited = "limited"
	stateFailed  = "failed"
	stateIgnored = "ignored"
	stateCurrent = "current"
)

// board is the dashboard, as it was found and as it shall be.
type board struct {
	issue   *forge.Issue
	spare   []forge.Issue // further ones, of runs that went on at the same time
	boxes   []string      // BOX:GROUP
	entries []body.Entry
}

// ticked reports whether a person has ticked box of group.
func (b *board) ticked(box, group string) bool {
	return slices.Contains(b.boxes, box+":"+group)
}

func groupName(name, key string) string {
	if key == "" {
		return name
	}
	return name + "-" + key
}

// readBoard finds the dashboard and the boxes that are ticked in it.
func (s *session) readBoard(ctx context.Context) error {
	if s.repo.Dashboard == "" || s.forge == nil || !s.info.Issues || s.board.issue != nil {
		return nil
	}
	all, err := s.forge.Issues(ctx, s.repo.Dashboard)
	if err != nil {
		return err
	}
	s.board.take(all)
	if s.board.issue != nil {
		s.board.boxes = body.Ticked(s.board.issue.Body)
	}
	return nil
}

// take makes the oldest of the issues the dashboard.
func (b *board) take(all []forge.Issue) {
	slices.SortFunc(all, func(a, b forge.Issue) int { return cmp.Compare(a.Number, b.Number) })
	if len(all) > 0 {
		b.issue, b.spare = &all[0], all[1:]
	}
}

// note adds what became of u.
func (b *board) note(u *unit, res *Result, err error) {
	e := body.Entry{Version: u.version()}
	if err != nil {
		e.State, e.Why, e.Boxes = stateFailed, oneLine(err.Error()), []string{body.BoxRetry}
	} else {
		e.Request, e.Why = res.URL, res.Message
		e.State, e.Boxes = stateOf(u, res)
	}
	e.Group = u.key
	b.entries = append(b.entries, e)
}

func stateOf(u *unit, res *Result) (string, []string) {
	switch {
	case res.Action == ActionWaits && u.waits != "":
		return statePending, nil
	case res.Action == ActionWaits:
		return stateLimited, []string{boxApprove}
	case res.Action == ActionIgnored:
		return stateIgnored, []string{body.BoxRetry}
	case res.Number > 0 && (res.Action == ActionNone || res.Action == ActionOpened || res.Action == ActionUpdated):
		return stateOpen, []string{body.BoxRetry, body.BoxIgnore}
	}
	return stateCurrent, nil
}

// version is the unit's, where it has one alone.
func (u *unit) version() string {
	version := ""
	for _, pin := range u.pins {
		if version != "" && pin.Version != version {
			return ""
		}
		version = pin.Version
	}
	return version
}

// syncBoard brings the dashboard up to date. It is not touched where it says
// the same already.
func (s *session) syncBoard(ctx context.Context) error {
	if s.repo.Dashboard == "" || s.forge == nil || !s.info.Issues || s.o.DryRun {
		return nil
	}
	for i := range s.board.entries {
		e := &s.board.entries[i]
		e.Group = groupName(s.repo.Name, e.Group)
	}
	text := body.Dashboard(body.Flavor(s.repo.Forge), s.board.entries, s.now.UTC().Format(time.DateOnly), 0)
	old := s.board.issue
	if old == nil {
		if _, err := s.forge.OpenIssue(ctx, s.repo.Dashboard, text, nil); err != nil {
			return fmt.Errorf("open issue: %w", err)
		}
		if err := fault.Point("bump.dashboard.opened"); err != nil {
			return err
		}
		// Another run may have opened one as well since it was looked for.
		all, err := s.forge.Issues(ctx, s.repo.Dashboard)
		if err != nil {
			return fmt.Errorf("look for another: %w", err)
		}
		s.board.take(all)
		return s.closeSpare(ctx)
	}
	if err := s.closeSpare(ctx); err != nil {
		return err
	}
	f := body.Fingerprint(text)
	if old.Body == text || f != "" && f == body.Fingerprint(old.Body) && len(s.board.boxes) == 0 {
		return nil
	}
	if err := s.forge.EditIssue(ctx, old.Number, nil, &text, nil); err != nil {
		return fmt.Errorf("edit issue %d: %w", old.Number, err)
	}
	return fault.Point("bump.dashboard.edited")
}

// closeSpare leaves one dashboard, the oldest.
func (s *session) closeSpare(ctx context.Context) error {
	open := false
	for _, i := range s.board.spare {
		if err := s.forge.EditIssue(ctx, i.Number, nil, nil, &open); err != nil {
			return fmt.Errorf("close issue %d, for %d is the dashboard: %w", i.Number, s.board.issue.Number, err)
		}
	}
	return nil
}
