package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/rocm-nightly/rocm-nightly/serve/state"
	"github.com/rocm-nightly/rocm-nightly/store"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// Install is a configured one.
type Install struct {
	Channel, Target string
	StaleAfter      time.Duration // 0: never
	Retention       time.Duration // how long AMD keeps a release; 0: for ever
}

func (in Install) slot() string { return in.Channel + "-" + in.Target }

// Options says what is looked at. Store is needed.
type Options struct {
	Store    *store.Store
	Installs []Install // resolved: no auto
	Measure  bool      // walk the generations for what they share
	Program  state.Program
	Now      func() time.Time
}

// Take reads everything but Jobs and Running, which the daemon knows. What
// cannot be read is told in the slot's Error, and hides nothing else. An error
// means that the slots could not be listed, or that ctx has ended.
func Take(ctx context.Context, o Options) (*state.State, error) { return new(Taker).Take(ctx, o) }

// Take is the package's Take, and remembers what it has read.
func (t *Taker) Take(ctx context.Context, o Options) (*state.State, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o.Now == nil {
		o.Now = time.Now
	}
	defer t.forget()
	v := &view{t: t, o: o, now: o.Now().UTC()}
	s := &state.State{
		Schema: state.Schema, Time: v.now, Root: o.Store.Root(), Program: o.Program,
		Alarms: []state.Alarm{}, Jobs: []state.Job{}, Slots: []state.Slot{},
	}
	if host, err := os.Hostname(); err == nil {
		s.Host = host
	}
	slots, err := v.slots()
	if err != nil {
		return nil, fmt.Errorf("say what is in %s: %w", o.Store.Root(), err)
	}
	v.readLooks()
	if o.Measure {
		if v.used, err = o.Store.Usage(ctx); err != nil {
			v.used = nil // it is told as not measured
		}
	}
	s.Indexes = v.indexes()
	for _, sl := range slots {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		s.Slots = append(s.Slots, v.slot(sl))
	}
	s.Bumps = v.bumps()
	s.Disk = v.disk()
	return s, nil
}

// view is one Take.
type view struct {
	t      *Taker
	o      Options
	now    time.Time // UTC
	looked *update.Looked
	lerr   error        // why nothing is known of the indexes; nil also where nobody has looked
	used   *store.Usage // nil: not measured
}

// slots are the configured ones in their order, and then what else is there.
func (v *view) slots() ([]*store.Slot, error) {
	here, err := v.o.Store.Slots()
	if err != nil {
		return nil, err
	}
	var all []*store.Slot
	seen := map[string]bool{}
	for _, in := range v.o.Installs {
		if !seen[in.slot()] {
			seen[in.slot()] = true
			all = append(all, v.o.Store.Slot(in.Channel, in.Target))
		}
	}
	for _, sl := range here {
		if !seen[sl.Name()] {
			all = append(all, sl)
		}
	}
	return all, nil
}

// install is the configured one of a slot; nil if there is none.
func (v *view) install(slot string) *Install {
	if i := slices.IndexFunc(v.o.Installs, func(in Install) bool { return in.slot() == slot }); i >= 0 {
		return &v.o.Installs[i]
	}
	return nil
}

// readLooks reads what was found when the indexes were looked at.
func (v *view) readLooks() {
	l, err := update.ReadLooked(v.o.Store)
	if err != nil {
		l = &update.Looked{}
		if !errors.Is(err, fs.ErrNotExist) {
			v.lerr = fmt.Errorf("what is newest is not known: %w", err)
		}
	}
	v.looked = l
}

// bumps is what became of requests.
func (v *view) bumps() []state.Bump {
	out := []state.Bump{}
	kept, err := update.ReadBumps(v.o.Store)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return append(out, state.Bump{Name: store.BumpsFile, State: update.BumpFailed, Error: err.Error()})
	}
	for _, b := range kept {
		out = append(out, state.Bump{
			Name: b.Name, State: b.State, Version: b.Version, Number: b.Number, URL: b.URL, Title: b.Title, Message: b.Message, Error: b.Error, At: b.At,
		})
	}
	return out
}
