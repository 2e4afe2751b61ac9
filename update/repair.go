package update

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/repack"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// Repaired says what was done to one damaged generation. What is damaged still,
// its Verification lists.
type Repaired struct {
	Slot       string             `json:"slot"`
	Generation string             `json:"generation"`
	Mended     int                `json:"mended"`         // entries that were put right
	From       []store.MendedFrom `json:"from,omitempty"` // where content came from, in the order in which it was asked for
	Notes      []string           `json:"notes,omitempty"`
}

// Repair verifies generations, mends what is damaged, and verifies that again. What
// it returns of each is what is so afterwards. Content comes from other generations
// of the store, from the kept tarball or a whole download, or from the index, if it
// still lists the release and its bytes are those of the manifest, in this order.
// It holds run.lock, and waits for nobody who does; rollback and use need not wait
// for it. What could not be mended is no error.
func Repair(ctx context.Context, o Options, gens []store.Generation, vo store.VerifyOptions) ([]*store.Verification, []*Repaired, error) {
	o = o.withDefaults()
	lock, err := o.Store.LockRun(ctx, "verify --repair")
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err := lock.Release(); err != nil {
			o.Log.Warn("the run lock could not be released", "error", err)
		}
	}()
	all, err := o.Store.Verify(ctx, gens, vo)
	if err != nil {
		return all, nil, err
	}
	r := newRun(o)
	defer r.dropSpools()
	r.rebuildTarballs(ctx)
	var repairs []*Repaired
	for i, v := range all {
		if v.Gone || v.OK() {
			continue
		}
		p := &repair{r: r, v: v, res: &Repaired{Slot: v.Slot, Generation: v.Generation}}
		repairs = append(repairs, p.res)
		err := p.run(ctx)
		all[i] = p.v
		if ctx.Err() != nil {
			return all, repairs, fmt.Errorf("repair %s: %w", v.Generation, ctx.Err())
		}
		if err != nil {
			p.note("%v", err)
		}
	}
	return all, repairs, nil
}

// repair is that of one generation.
type repair struct {
	r     *run
	v     *store.Verification
	res   *Repaired
	tried bool // the tarball gave what it has

	keptHere *store.Tarball // what kept has opened
}

func (p *repair) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(p.res.Notes, text) {
		p.res.Notes = append(p.res.Notes, text)
	}
}

// rounds is how often a generation is mended: lists first, then directories, then
// what they hold.
const rounds = 3

// run mends, and looks again, until nothing more can be done.
func (p *repair) run(ctx context.Context) error {
	p.r.o.Event(Event{Install: p.v.Slot, Stage: "repair", Message: fmt.Sprintf("repairing %s/%s", p.v.Slot, p.v.Generation)})
	for range rounds {
		n, err := p.round(ctx)
		if n > 0 {
			v, verr := p.r.o.Store.VerifyAgain(ctx, p.v)
			if verr != nil {
				return errors.Join(err, verr)
			}
			p.v = v
		}
		if p.v.Gone {
			return nil // removed meanwhile
		}
		if n == 0 || err != nil || p.v.OK() {
			return err
		}
	}
	return nil
}

// round mends what can be mended by what is known now, and says how much that was.
func (p *repair) round(ctx context.Context) (n int, err error) {
	m, err := p.r.o.Store.Mend(ctx, p.v)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	if n, err = m.Directories(ctx); n > 0 || err != nil {
		p.res.Mended += n
		return n, err // what is in them can be looked at now
	}
	if err := m.FromStore(ctx); err != nil {
		return 0, err
	}
	if m.Wanted() > 0 && !p.tried {
		p.fromTarball(ctx, m)
		p.tried = !slices.ContainsFunc(p.v.Damage, func(d store.Damage) bool { return d.Path == manifest.FilesName })
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	done, err := m.Apply(ctx)
	p.res.Mended += done.Entries
	p.res.From = append(p.res.From, done.From...)
	for _, text := range done.Notes {
		p.note("%s", text)
	}
	return done.Entries, err
}

// fromTarball makes the prefix once more, out of sight, and takes from it what is
// wanted. Why that cannot be done is noted.
func (p *repair) fromTarball(ctx context.Context, m *store.Mending) {
	gen, about, err := p.about()
	if err != nil {
		p.note("its tarball cannot be told, so that %d files cannot be repaired: %v (install the night anew with: remove, then update --version)", m.Wanted(), err)
		return
	}
	for _, source := range p.sources(about) {
		err := p.take(ctx, m, gen, about, source)
		if ctx.Err() != nil || m.Wanted() == 0 {
			return
		}
		if err == nil {
			break // another copy of the tarball gives no other files
		}
		if !errors.Is(err, errNoTarball) {
			p.note("%s is of no use: %v", source.name, err)
		}
	}
	if missing := m.Missing(); len(missing) > 0 {
		p.unmended(about, missing)
	}
}

// unmended says what no source has, and what can be done about it.
func (p *repair) unmended(about *manifest.Manifest, missing []string) {
	why := "no good copy of it was found"
	if !repack.SameRules(about) {
		why = "its rules have changed since, and what they make of it is another file"
	}
	const few = 20
	for _, path := range missing[:min(few, len(missing))] {
		p.note("%s cannot be repaired: %s", path, why)
	}
	more := ""
	if n := len(missing) - few; n > 0 {
		more = fmt.Sprintf("%d more files cannot be repaired; ", n)
	}
	p.note("%sinstall the night anew with update, if AMD still has it", more)
}

// about finds the generation, and what it was made of.
func (p *repair) about() (*store.Generation, *manifest.Manifest, error) {
	sl, err := p.r.o.Store.FindSlot(p.v.Slot)
	if err != nil {
		return nil, nil, err
	}
	gen, err := sl.Generation(p.v.Generation)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range p.v.Damage {
		if d.Path == manifest.Name && !onlyMode(d) {
			return nil, nil, fmt.Errorf("%s is damaged itself", manifest.Name)
		}
	}
	m, err := gen.Manifest()
	return gen, m, err
}

func onlyMode(d store.Damage) bool {
	return !slices.ContainsFunc(d.What, func(what string) bool {
		return what != store.DamageMode && what != store.DamageOwner && what != store.DamageTime
	})
}

// take makes the prefix of one source and takes what is wanted from it.
func (p *repair) take(ctx context.Context, m *store.Mending, gen *store.Generation, about *manifest.Manifest, from tarballSource) (err error) {
	o, err := repack.Recorded(about)
	if err != nil {
		return err
	}
	slot, err := p.r.o.Store.FindSlot(p.v.Slot)
	if err != nil {
		return err
	}
	o.FinalPrefix = slot.CurrentPath()
	o.Event = func(e repack.Event) { p.r.o.Event(Event{Install: p.v.Slot, Stage: e.Stage, Done: e.Done}) }
	t := &task{r: p.r, in: Install{Target: slot.Target(), Channel: slot.Channel(), Repack: o}, out: &Outcome{}, slot: slot, rel: o.Release}
	src, err := from.open(ctx, t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	if err := t.room(ctx, "unpacking its tarball for the repair", func() *Room { e := t.estimate(about.Size); return t.judge(e.basis, place{slot.Dir(), e.need}) }); err != nil {
		return err
	}
	staging, err := slot.Stage(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, staging.Abort()) }()
	p.r.o.Event(Event{Install: p.v.Slot, Stage: "repair", Message: fmt.Sprintf("making %s once more of %s, to take %d files from it", gen.Name, from.name, m.Wanted())})
	_, err = repack.Into(ctx, src, staging.Dir(), o)
	if err == nil || errorsAs[*release.MismatchError](err) {
		delete(p.r.pending, p.r.o.Store.SpoolDir(about.Channel, about.Name)) // nothing to be resumed
	}
	if err != nil {
		err = t.onDisk(err)
		if from.check != nil && !errorsAs[*store.TarballError](err) {
			err = cmp.Or(from.check(ctx), err)
		}
		return err
	}
	return m.FromPrefix(ctx, staging.Dir(), from.name)
}

// tarballSource is a place that may have the tarball of a generation.
type tarballSource struct {
	name  string // for people
	open  func(context.Context, *task) (io.ReadCloser, error)
	check func(context.Context) error // says where what was opened is damaged, if it is; nil: nobody knows
}
