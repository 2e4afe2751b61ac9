package snapshot

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/serve/state"
	"github.com/rocm-nightly/rocm-nightly/store"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// maxHistory is how many switches of a slot are shown.
const maxHistory = 30

// slot says what there is of one.
func (v *view) slot(sl *store.Slot) state.Slot {
	s := state.Slot{
		Slot: sl.Name(), Channel: sl.Channel(), Target: sl.Target(),
		Generations: []state.Generation{}, Runs: []state.Run{}, History: []state.Activation{},
	}
	in := v.install(s.Slot)
	s.Configured = in != nil
	recs, rerr := v.t.records(v.o.Store, sl)
	err := errors.Join(v.lerr, v.generations(sl, &s, recs), v.past(sl, &s), rerr)
	werr := v.waits(sl, &s)
	at := v.newest(sl, &s)
	s.Runs = runsOf(recs)
	for _, r := range s.Runs {
		if r.Exit == update.ExitOK && r.Error == "" && r.Finished.After(s.LastSuccess) {
			s.LastSuccess = r.Finished
		}
	}
	if at != nil && s.Waits == "" && s.Newest != nil && s.Newest.State == at.State && s.Newest.State != update.StateInstalled && s.Newest.State != update.StateNewer {
		s.Waits = at.Message
		if at.State == update.StateRefused && at.Error != "" {
			s.Waits = at.Error
		}
	}
	if in != nil && s.Active != nil {
		s.Expires = v.expires(*in, sl, *s.Active)
	}
	failed := v.failed(sl, s.Runs, at)
	if failed != nil {
		s.Failed = state.Failure{Exit: at.Exit, At: at.At, Error: failed.Error()}
	}
	if err = errors.Join(err, werr, failed); err != nil {
		s.Error = err.Error()
	}
	return s
}

// failed is why nothing could be found out about a slot, if neither an index nor a
// run record says it.
func (v *view) failed(sl *store.Slot, runs []state.Run, at *update.LookedAt) error {
	if at == nil || at.Error == "" || at.Exit == update.ExitOK || at.Exit == update.ExitStale || at.State == update.StateRefused {
		return nil
	}
	for _, r := range runs {
		if r.Exit != update.ExitOK && r.Error == cut(at.Error) {
			return nil
		}
	}
	_, err := os.Stat(sl.Dir())
	for _, ix := range v.looked.Indexes {
		if err == nil && ix.Channel == sl.Channel() && ix.Error != "" {
			return nil
		}
	}
	return errors.New(at.Error)
}

// generations are what is installed, the newest first.
func (v *view) generations(sl *store.Slot, s *state.Slot, recs []record) error {
	gens, err := sl.Generations()
	if err != nil {
		return err
	}
	for _, g := range slices.Backward(gens) {
		out := state.Generation{Name: g.Name, Version: g.Version, Active: g.Active, Installed: g.Installed, Disk: -1, Alone: -1}
		m, merr := v.t.manifest(v.o.Store, g)
		if merr != nil {
			err = errors.Join(err, merr)
		}
		out.Published, out.Digest, out.Bytes = m.published, m.digest, m.bytes
		if v.used != nil {
			if u, ok := v.used.Generations[g.Dir]; ok {
				out.Disk, out.Alone = u.Disk, u.Own
			}
		}
		for _, r := range recs {
			if r.run.Generation == g.Name && r.run.Audit != nil {
				audit := *r.run.Audit
				out.Audit = &audit
			}
		}
		s.Generations = append(s.Generations, out)
		if g.Active {
			active := out
			s.Active, s.Prefix = &active, sl.CurrentPath()
		}
	}
	back, berr := sl.Before()
	if berr != nil && !errors.Is(berr, store.ErrNoOther) {
		err = errors.Join(err, berr)
	}
	s.Back = back
	if _, cerr := sl.Current(); cerr != nil {
		err = errors.Join(err, cerr)
	}
	return err
}

// past is the switches of a slot, the newest first, and its hold.
func (v *view) past(sl *store.Slot, s *state.Slot) error {
	st, err := sl.State()
	if err != nil {
		return err
	}
	for _, a := range slices.Backward(st.History[max(0, len(st.History)-maxHistory):]) {
		s.History = append(s.History, state.Activation{At: a.At, Generation: a.Generation, Why: a.Why})
	}
	if n := len(st.Left); n > 0 {
		s.Left = st.Left[n-1]
	}
	hold, err := sl.Held()
	if hold != nil {
		s.Hold = &state.Hold{Since: hold.Since, Until: hold.Until, Reason: hold.Reason}
	}
	return err
}

// waits says why something that is staged is not active.
func (v *view) waits(sl *store.Slot, s *state.Slot) error {
	g, err := sl.Pending()
	if err != nil || g == nil {
		return err
	}
	s.Waits = g.Name + " is here and not active"
	hold, err := sl.Held()
	if hold != nil {
		s.Waits += ": " + update.HoldText(hold, v.now)
	}
	return err
}

// expires is the day (UTC) on which AMD deletes what is active, "" if it does not or
// the day is not known.
func (v *view) expires(in Install, sl *store.Slot, g state.Generation) string {
	ver, err := release.ParseVersion(g.Version)
	if err != nil {
		return ""
	}
	var at time.Time
	if gen, err := sl.Current(); err == nil && gen != nil {
		if m, err := v.t.manifest(v.o.Store, *gen); err == nil { // else it was told
			at = uploaded(v.o.Store, m)
		}
	}
	day, ok := update.Expiry(ver, at, in.Retention)
	if !ok {
		return ""
	}
	return day.Format(time.DateOnly)
}

// older reports whether a version is before another one; what has no order is not.
func older(a, b string) bool {
	va, erra := release.ParseVersion(a)
	vb, errb := release.ParseVersion(b)
	return erra == nil && errb == nil && va.Compare(vb) < 0
}

// told is an error about a record, for people.
func told(name string, err error) string {
	return fmt.Sprintf("the record of %s cannot be read: %v", name, err)
}
