package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// ErrActive is matched when a generation would be removed that must stay.
var ErrActive = errors.New("it is in use")

// Keep says which generations of a slot stay. One goes that is not among the
// last, or too old, or for which there is no room, whichever comes first; what
// Prune never removes counts among them, and stays.
type Keep struct {
	Last  int   // the newest so many; math.MaxInt: all
	Days  int   // those that were installed in the last so many days of 24 hours; 0: whatever their age
	Bytes int64 // as many as occupy no more of the disk together, what they share counted once, the oldest go; 0: whatever their size
}

// Pruned says what became of the generations.
type Pruned struct {
	Removed []string `json:"removed"` // names, oldest first
	Kept    []Kept   `json:"kept"`    // what was to go, and has to stay
	Freed   int64    `json:"freed"`   // bytes on the disk of what was removed, debris included, as far as nothing else has them
	Debris  int      `json:"debris"`  // trees that dead runs had left, and leases of dead processes
}

// Kept is a generation that stays although Keep would have it go.
type Kept struct {
	Generation string `json:"generation"`
	Why        string `json:"why"` // one of the Kept constants
	Uses       Uses   `json:"uses"`
}

// Why a generation stays.
const (
	KeptActive   = "active"
	KeptPrevious = "previous"   // the way back: the one that was active before
	KeptGood     = "known good" // what an automatic rollback goes to
	KeptHeld     = "held"
	KeptWaiting  = "waiting" // what is to be activated next (Pending)
	KeptInUse    = "in use"
	KeptUnseen   = "unseen" // perhaps in use: by processes that this user may not look into
)

// Prune removes the generations that are not to stay. The active one, the one
// that was active before it, the known good one, a held one, the one that waits
// to be activated (Pending) and those in use (InUse) stay in any case; so do those
// whose use cannot be seen, for a run that can see it. What dead runs and processes left is removed
// too. It waits for switch.lock alone; whoever calls it while a run is at work
// disturbs that.
func (sl *Slot) Prune(ctx context.Context, keep Keep) (Pruned, error) {
	p, err := sl.prune(ctx, keep)
	if err != nil {
		return p, fmt.Errorf("prune %s: %w", sl.Name(), err)
	}
	return p, nil
}

func (sl *Slot) prune(ctx context.Context, keep Keep) (Pruned, error) {
	if err := sl.heal(ctx); err != nil {
		return Pruned{}, err
	}
	plan, err := sl.plan(ctx, keep, nil)
	if err != nil {
		return Pruned{}, err
	}
	p, err := sl.remove(ctx, &removal{
		choose: func(v *view) ([]string, []Kept, error) {
			// What is active or held may be another since the plan was made.
			kept := plan.kept
			var names []string
			for _, name := range plan.names {
				if why := sl.must(v, name); why != "" {
					kept = append(kept, Kept{Generation: name, Why: why})
				} else if slices.Contains(v.installed(), name) {
					names = append(names, name)
				}
			}
			return names, kept, v.broken
		},
		names: plan.names,
	})
	return p, err
}

// PlanPrune says what Prune would do, and changes nothing: Freed and Debris are
// not told. With next, as if that were active: a generation's name, or the name
// of one that is not there yet.
func (sl *Slot) PlanPrune(ctx context.Context, keep Keep, next string) (Pruned, error) {
	return sl.planned(ctx, keep, func(v *view) {
		if next != "" {
			sl.pretend(v, next, true)
		}
	})
}

// PlanPruneStaged is PlanPrune as if next were there, and what is active still was.
func (sl *Slot) PlanPruneStaged(ctx context.Context, keep Keep, next string) (Pruned, error) {
	return sl.planned(ctx, keep, func(v *view) { sl.pretend(v, next, false) })
}

func (sl *Slot) planned(ctx context.Context, keep Keep, pretend func(*view)) (Pruned, error) {
	plan, err := sl.plan(ctx, keep, pretend)
	if err != nil {
		return Pruned{}, fmt.Errorf("plan to prune %s: %w", sl.Name(), err)
	}
	p := Pruned{Kept: plan.kept}
	l, err := sl.store.lookout(ctx, sl.named(plan.names))
	if err == nil {
		var uses map[string]Uses
		if uses, err = l.look(ctx); err == nil {
			p.Removed, p.Kept = sl.free(plan.names, p.Kept, uses)
		}
	}
	if err != nil {
		return p, fmt.Errorf("plan to prune %s: %w", sl.Name(), err)
	}
	return p, nil
}

// named describes generations by their names alone.
func (sl *Slot) named(names []string) []Generation {
	gens := make([]Generation, len(names))
	for i, name := range names {
		gens[i] = Generation{Name: name, Dir: sl.path(generationsName, name)}
	}
	return gens
}

// free divides names into those that nobody uses and those that stay.
func (sl *Slot) free(names []string, kept []Kept, uses map[string]Uses) ([]string, []Kept) {
	var free []string
	for _, name := range names {
		u := uses[sl.path(generationsName, name)]
		switch {
		case u.Free():
			free = append(free, name)
		case len(u.By) > 0:
			kept = append(kept, Kept{name, KeptInUse, u})
		default:
			kept = append(kept, Kept{name, KeptUnseen, u})
		}
	}
	return free, kept
}

// prunePlan is what a Keep asks for, before anybody has looked what is in use.
type prunePlan struct {
	names []string // those to remove, oldest first
	kept  []Kept
}

func (sl *Slot) plan(ctx context.Context, keep Keep, pretend func(*view)) (*prunePlan, error) {
	if keep.Last < 0 || keep.Days < 0 || keep.Bytes < 0 {
		return nil, fmt.Errorf("keep %d generations, %d days, %d bytes: none of it can be less than 0", keep.Last, keep.Days, keep.Bytes)
	}
	if ok, err := sl.exists(); err != nil || !ok {
		return &prunePlan{}, err
	}
	v, err := sl.look()
	if err != nil {
		return nil, err
	}
	if v.broken != nil {
		return nil, v.broken // what must stay is not known
	}
	if pretend != nil {
		pretend(v)
	}
	have := v.installed()
	goes := sl.beyond(v, keep)
	if keep.Bytes > 0 {
		if err := sl.overSize(ctx, v, keep.Bytes, goes); err != nil {
			return nil, err
		}
	}
	p := &prunePlan{}
	for _, name := range have {
		if !goes[name] {
			continue
		}
		if why := sl.must(v, name); why != "" {
			p.kept = append(p.kept, Kept{Generation: name, Why: why})
			continue
		}
		p.names = append(p.names, name)
	}
	return p, nil
}

// pretend makes v that of a slot in which next was installed, and perhaps
// activated.
func (sl *Slot) pretend(v *view, next string, active bool) {
	now := sl.store.now()
	if !slices.Contains(v.installed(), next) {
		v.state.Installed = append(v.state.Installed, Install{next, now})
	}
	if active && v.current != next {
		v.state.History = append(v.state.History, Activation{Generation: next, At: now})
		v.state.settle(next)
		v.current = next
	}
}

// beyond marks what is not among the last, or too old.
func (sl *Slot) beyond(v *view, keep Keep) map[string]bool {
	goes := map[string]bool{}
	have := v.state.Installed
	for i, in := range have {
		old := keep.Days > 0 && sl.store.now().Sub(in.At).Hours() > 24*float64(keep.Days)
		goes[in.Generation] = old || len(have)-i > keep.Last
	}
	return goes
}

// overSize marks the oldest of what would stay, until the rest occupies no more
// than so many bytes. What must stay is counted and passed over.
func (sl *Slot) overSize(ctx context.Context, v *view, bytes int64, goes map[string]bool) error {
	trees, err := sl.measure(ctx, v.installed())
	if errors.Is(err, errUnmeasured) && ctx.Err() == nil {
		sl.store.event(EventUnmeasured, sl.Name(), sl.path(generationsName), "nothing is removed for its size: %v", err)
		return nil // it would be too much
	}
	if err != nil {
		return fmt.Errorf("measure what is installed: %w", err)
	}
	stay := slices.DeleteFunc(v.installed(), func(name string) bool { return goes[name] && sl.must(v, name) == "" })
	for _, name := range slices.Clone(stay) {
		if occupied(trees, stay) <= bytes {
			return nil
		}
		goes[name] = true
		if sl.must(v, name) == "" {
			stay = slices.DeleteFunc(stay, func(n string) bool { return n == name })
		}
	}
	return nil
}

// must says why a generation stays whatever is asked for, "" if it may go.
func (sl *Slot) must(v *view, name string) string {
	have := v.installed()
	switch {
	case name == v.current:
		return KeptActive
	case sl.held(v, name):
		return KeptHeld
	case name == v.state.Previous(v.current):
		return KeptPrevious
	case name == v.state.KnownGood():
		return KeptGood
	}
	waits := sl.pending(v)
	if waits == "" && v.current == "" && len(have) > 0 {
		waits = have[len(have)-1]
	}
	if name == waits {
		return KeptWaiting
	}
	return ""
}

func (sl *Slot) held(v *view, name string) bool {
	h := v.state.Hold
	return h != nil && h.Generation == name && !h.over(sl.store.now())
}
