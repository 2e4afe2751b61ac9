package update

import (
	"context"
	"fmt"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/store"
)

// planPrune names, after words, what would be removed once next, a generation that
// is there or comes, is active; or, if it waits, is there.
func (t *task) planPrune(ctx context.Context, next string, waits bool, words string) string {
	if next == "" || t.r.o.NoInstall {
		return ""
	}
	plan := t.slot.PlanPrune
	if waits {
		plan = t.slot.PlanPruneStaged
	}
	p, err := plan(ctx, t.in.keep(), next)
	if err != nil || len(p.Removed) == 0 {
		return ""
	}
	return words + strings.Join(p.Removed, ", ")
}

// planLink says what would become of the link.
func (t *task) planLink() string {
	if t.in.Link == "" {
		return ""
	}
	switch l, err := t.r.o.Store.LinkStatus(t.in.Link); {
	case err != nil:
		return fmt.Sprintf(", and fail to make the link %s (%v)", t.in.Link, err)
	case l.State == store.LinkForeign:
		instead := insteadOf(t.in.Link)
		if beside, err := t.r.o.Store.LinkStatus(instead); err == nil && beside.State == store.LinkAbsent && !t.r.asked(instead) {
			return fmt.Sprintf(", leave %s alone (%s) and make the link %s", t.in.Link, l.What, instead)
		}
		return fmt.Sprintf(", and leave %s alone (%s)", t.in.Link, l.What)
	case l.State == store.LinkAbsent:
		return ", and make the link " + t.in.Link
	}
	return ", and keep the link " + t.in.Link
}

// plan says what would be done.
func (t *task) plan(ctx context.Context, gen *store.Generation) error {
	t.out.Changed = !t.r.o.NoInstall
	t.out.planned = gen == nil
	if t.out.Changed {
		t.out.To = t.rel.Version.String()
	}
	over := ""
	if t.out.From != "" {
		over = " over " + t.out.From
	}
	next := t.slot.NextName(t.rel.Version.String())
	if gen != nil {
		next = gen.Name
	}
	w, err := t.planWaits(ctx, next)
	if err != nil {
		return err
	}
	switch {
	case gen != nil && w != nil:
		t.out.Message = fmt.Sprintf("%s is here but would not be activated%s: %s", gen.Name, t.planPrune(ctx, next, true, ", would remove "), w.Reason)
		return nil
	case gen != nil:
		if pin, err := t.r.pinOf(gen); err == nil {
			t.out.pin = pin
		}
		t.out.Message = fmt.Sprintf("would activate %s, which is here already%s", gen.Name, over)
	case t.r.o.NoInstall && t.kept() != nil:
		t.out.Message = fmt.Sprintf("would repack and audit the tarball that is kept in %s, and keep the record alone", t.kept().Dir)
	case t.r.o.NoInstall:
		t.out.Message = fmt.Sprintf("would download %s, repack and audit it, and keep the record alone", t.rel.URL)
	case w != nil:
		t.out.Message = fmt.Sprintf("%s, and not activate it%s: %s", t.planMake(), t.planPrune(ctx, next, true, ", and remove "), w.Reason)
	default:
		t.out.Message = t.planMake() + over
	}
	space := ""
	if gen == nil {
		space = t.planRoom(ctx)
	}
	if t.r.planned[t.rel.URL] == "" {
		t.r.planned[t.rel.URL] = t.out.Install
	}
	if t.out.Changed {
		t.out.Message += t.planPrune(ctx, next, false, ", and remove ") + t.planLink()
	}
	t.out.Message += space
	return nil
}

// planWaits says why a generation that is there, or comes, would not be activated.
func (t *task) planWaits(ctx context.Context, next string) (*Wait, error) {
	w, err := t.heldBack(ctx, next)
	if err != nil || w != nil {
		t.out.Changed, t.out.To, t.out.Waits = false, t.out.From, w
	}
	return w, err
}

// planMake says what the new generation would be made of.
func (t *task) planMake() string {
	if from, _ := t.twin(); from != nil {
		return fmt.Sprintf("would install %s of the files of %s, which came of the same tarball", t.rel.Version, from.Dir)
	}
	if kept := t.kept(); kept != nil {
		return fmt.Sprintf("would install %s of the tarball that is kept in %s", t.rel.Version, kept.Dir)
	}
	if first := t.r.planned[t.rel.URL]; first != "" {
		return fmt.Sprintf("would install %s of what %s has downloaded", t.rel.Version, first)
	}
	return fmt.Sprintf("would download %s and install it", t.rel.URL)
}
