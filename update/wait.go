package update

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// The values of Install.Activate: when a staged generation becomes active.
const (
	ActivateAuto   = "auto"   // at once
	ActivateIdle   = "idle"   // when nobody uses the one that is active
	ActivateManual = "manual" // when somebody says so: Activate
)

// What a staged generation waits for, beside ActivateIdle and ActivateManual.
const (
	waitsHold  = "hold"
	waitsTrust = "trust" // others have not vouched for it yet
)

// Wait is why a generation that is staged is not active.
type Wait struct {
	Generation string `json:"generation"`
	For        string `json:"for"` // hold, idle, manual or trust
	Reason     string `json:"reason"`
}

// heldBack says why a generation is not to become active now, nil if nothing
// stands in its way.
func (t *task) heldBack(ctx context.Context, name string) (*Wait, error) {
	trust, err := t.waits(ctx, name)
	if err != nil {
		return nil, err
	}
	if trust != "" {
		return &Wait{name, waitsTrust, trust}, nil
	}
	hold, err := t.slot.Held()
	if err != nil {
		return nil, err
	}
	if hold != nil {
		return &Wait{name, waitsHold, HoldText(hold, t.r.o.Now()) + "; to end it: rocm-nightly unhold " + t.slot.Name()}, nil
	}
	how := "; to take it now: rocm-nightly activate " + t.slot.Name()
	switch t.in.Activate {
	case ActivateManual:
		return &Wait{name, ActivateManual, "activate is manual" + how}, nil
	case ActivateIdle:
		if by := t.inUse(ctx); by != "" {
			return &Wait{name, ActivateIdle, by + "; the next run tries again" + how}, nil
		}
	}
	return nil, nil
}

// inUse says who uses the active generation, "" if nobody does. Who cannot be
// seen counts.
func (t *task) inUse(ctx context.Context) string {
	if t.from == nil {
		return ""
	}
	look := t.r.o.InUse
	if look == nil {
		look = t.r.o.Store.InUse
	}
	uses, err := look(ctx, []store.Generation{*t.from})
	if err != nil {
		return fmt.Sprintf("whether %s is in use is not known (%v)", t.from.Name, err)
	}
	u := uses[t.from.Dir]
	switch {
	case len(u.By) > 0:
		return fmt.Sprintf("%s is in use by %s", t.from.Name, plain.Text(u.Text()))
	case u.Unseen > 0:
		return fmt.Sprintf("whether %s is in use cannot be seen by this user (%d processes or leases)", t.from.Name, u.Unseen)
	}
	return ""
}

// waitsFor says what becomes of a staged generation. Those before it that are not
// to stay go: or every night that waits would.
func (t *task) waitsFor(ctx context.Context, name string, w *Wait) {
	t.out.pin = nil // what is proposed to others, the record of the run says: see recorded
	t.out.Waits = w
	t.out.Message = name + " is here but not active"
	t.prune(ctx)
	t.out.Message += ": " + w.Reason
	if t.from != nil {
		t.out.Prefix = t.from.Dir
		t.expiring(t.from)
	}
	if w.For == waitsTrust { // nobody here has asked for that
		t.r.o.Log.Warn("not activated", "generation", name, "because", w.Reason)
	}
}

// noteHold has every run say that the slot is held, and for how long still.
func (t *task) noteHold() {
	if t.slot == nil {
		return
	}
	hold, err := t.slot.Held()
	if err != nil || hold == nil {
		return // who needs to know meets the error
	}
	t.out.Hold = hold
	if t.out.Waits == nil || t.out.Waits.For != waitsHold {
		t.out.Message += "; " + HoldText(hold, t.r.o.Now())
	}
}

// HoldText is a hold for people: since when, until when, why.
func HoldText(h *store.Hold, now time.Time) string {
	text := "held for " + Span(now.Sub(h.Since))
	if !h.Until.IsZero() {
		text += ", until " + h.Until.Local().Format("2006-01-02 15:04")
	}
	if h.Reason != "" {
		text += " (" + plain.Cut(h.Reason, 200) + ")"
	}
	return text
}

// Span is a time for people, in its largest unit.
func Span(d time.Duration) string {
	for _, unit := range []struct {
		name string
		is   time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}} {
		switch n := int(d / unit.is); {
		case n == 1:
			return "1 " + unit.name
		case n > 1:
			return fmt.Sprintf("%d %ss", n, unit.name)
		}
	}
	return "less than a minute"
}

// revisionRE ends the name of a second generation of one version.
var revisionRE = regexp.MustCompile(`-r[0-9]{1,9}$`)

// splitRevision splits a generation's name; revision is "" for the first of a version.
func splitRevision(name string) (version, revision string) {
	revision = revisionRE.FindString(name)
	return strings.TrimSuffix(name, revision), revision
}
