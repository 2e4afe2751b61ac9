package snapshot

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/rocm-nightly/rocm-nightly/serve/state"
	"github.com/rocm-nightly/rocm-nightly/store"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// indexes is each index of the channels that are installed from, judged by the
// clock of now: one that has not answered for a week is stale too.
func (v *view) indexes() []state.Index {
	out := []state.Index{}
	for _, ix := range v.looked.Indexes {
		patience, wanted := v.patience(ix.Channel)
		if !wanted {
			continue
		}
		s := state.Index{Channel: ix.Channel, URL: ix.URL, Checked: ix.At, Newest: ix.Newest, Error: ix.Error}
		switch age := v.now.Sub(ix.Newest); {
		case ix.At.IsZero():
		case ix.Newest.IsZero():
			s.Detail = "it lists nothing that says when it was published"
		case ix.Frozen:
			s.Detail = "it is known to publish no more"
		case patience > 0 && age > patience:
			s.Stale = true
			s.Detail = fmt.Sprintf("the newest that it lists is of %s ago, and more than %s is too long", update.Span(age), update.Span(patience))
		}
		out = append(out, s)
	}
	slices.SortStableFunc(out, func(a, b state.Index) int { return cmp.Compare(a.Channel, b.Channel) })
	return out
}

// patience is after how long a channel is stale, and whether it is wanted at all.
func (v *view) patience(channel string) (after time.Duration, wanted bool) {
	for _, in := range v.o.Installs {
		if in.Channel == channel {
			wanted = true
			if in.StaleAfter > 0 && (after == 0 || in.StaleAfter < after) {
				after = in.StaleAfter
			}
		}
	}
	return after, wanted
}

// newest is what the index has for a slot: as of the last look, but judged by what
// is active now.
func (v *view) newest(sl *store.Slot, s *state.Slot) *update.LookedAt {
	i := slices.IndexFunc(v.looked.Installs, func(l update.LookedAt) bool { return l.Install == s.Slot })
	if i < 0 {
		return nil
	}
	at := v.looked.Installs[i]
	s.LastSuccess = at.Success
	if at.Stale != nil && at.State != "" {
		s.Stale = at.Stale.Detail
	}
	if at.Newest != "" {
		s.Newest = &state.Newest{Version: at.Newest, Published: at.Published, Size: at.Size, State: v.stateNow(sl, s, at), Until: at.Until}
		if !v.early(s.Newest.State) {
			s.Newest.Until = time.Time{}
		}
	}
	return &at
}

// early reports whether a state is one that time ends.
func (v *view) early(state string) bool {
	return state == update.StateSettling || state == update.StateUploading || state == update.StateYoung
}

// stateNow is how what was newest stands to what is active now.
func (v *view) stateNow(sl *store.Slot, s *state.Slot, at update.LookedAt) string {
	active := ""
	if s.Active != nil {
		active = s.Active.Version
	}
	switch {
	case active == at.Newest:
		return update.StateInstalled
	case v.early(at.State) && (at.Until.IsZero() || v.now.Before(at.Until)):
		return at.State
	case at.State == update.StateRefused, at.State == update.StateOlder && s.Active != nil && s.Active.Name == at.Active:
		return at.State
	case sl.Skip(at.Newest), s.Hold != nil:
		return update.StateHeld
	case at.State == update.StateHeld && s.Waits != "":
		return at.State
	case older(at.Newest, active):
		return update.StateOlder
	}
	return update.StateNewer
}
