package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/internal/plain"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/store"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// policyStatus is what decides about the next activation of a slot.
type policyStatus struct {
	Activate string        `json:"activate"`          // auto, idle or manual
	Hold     *holdStatus   `json:"hold"`              // null: it is not held
	Staged   *stagedStatus `json:"staged"`            // null: nothing waits
	Left     []string      `json:"left,omitempty"`    // versions that the user has left: only something newer moves on
	Refused  []refusal     `json:"refused,omitempty"` // what failed and is not tried again, the newest first
	Known    string        `json:"known_good"`        // where a failed check would go back to; "" if that is not known
	Unproven string        `json:"unproven,omitempty"`
	slot     string
	now      time.Time
	hold     *store.Hold
}

// holdStatus is a hold.
type holdStatus struct {
	*store.Hold
	Age string `json:"age"` // for people
	End string `json:"end"` // the command that ends it
}

// stagedStatus is a generation that is here and waits.
type stagedStatus struct {
	Generation string `json:"generation"`
	For        string `json:"for"`      // hold, idle, manual, or run: the next one takes it
	Reason     string `json:"reason"`   // for people
	Activate   string `json:"activate"` // the command that does not wait
}

// refusal is a release, or a generation, that failed.
type refusal struct {
	Version    string    `json:"version"`
	Kind       string    `json:"kind"` // audit, omit, damage, smoke, health, or new bytes
	Since      time.Time `json:"since"`
	Generation string    `json:"generation,omitempty"`
	Reason     string    `json:"reason"`
}

// policyOf reads it.
func (a *app) policyOf(cfg *config.Config, sl *store.Slot) policyStatus {
	p := policyStatus{Activate: cfg.ActivateOf(installOf(cfg, sl)), slot: sl.Name(), now: time.Now()}
	st, err := sl.State()
	if err != nil {
		return p // the slot's own line says it
	}
	p.Left, p.Known = st.Left, st.KnownGood()
	if st.Unproven != nil {
		p.Unproven = st.Unproven.Generation
	}
	if p.hold, err = sl.Held(); err == nil && p.hold != nil {
		p.Hold = &holdStatus{p.hold, update.Span(p.now.Sub(p.hold.Since)), "rocm-nightly unhold " + sl.Name()}
	}
	cur, _ := sl.Current() // what is broken is said elsewhere
	p.refused(st, cur)
	p.staged(sl)
	return p
}

// refused lists what may still be in the way: nothing that is older than the
// active one.
func (p *policyStatus) refused(st *store.State, cur *store.Generation) {
	for key, r := range st.Refused {
		if r.Kind == update.KindOnce {
			continue
		}
		item := refusal{Version: r.Version, Kind: r.Kind, Since: r.At, Generation: r.Generation, Reason: r.Reason}
		if item.Kind == "" {
			// Verdicts of programs before kinds are another program's: all but those on
			// new bytes are made again.
			if item.Version = versionIn(key); item.Version == "" || !strings.HasPrefix(key, "new bytes: ") {
				continue
			}
			item.Kind = "new bytes"
		}
		if cur != nil && older(item.Version, cur.Version) {
			continue
		}
		p.Refused = append(p.Refused, item)
	}
	slices.SortFunc(p.Refused, func(a, b refusal) int {
		return cmp.Or(b.Since.Compare(a.Since), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Kind, b.Kind))
	})
}

// versionIn finds the version of the tarball that a key names, "" if it names none.
func versionIn(key string) string {
	for _, word := range strings.Fields(key) {
		if n, err := release.ParseName(word); err == nil {
			return n.Version.String()
		}
	}
	return ""
}

func older(version, than string) bool {
	a, aerr := release.ParseVersion(version)
	b, berr := release.ParseVersion(than)
	return aerr == nil && berr == nil && a.Compare(b) < 0
}

func (p *policyStatus) staged(sl *store.Slot) {
	g, err := sl.Pending()
	if err != nil || g == nil {
		return
	}
	s := &stagedStatus{Generation: g.Name, For: "run", Reason: "the next run takes it, if nothing newer is there", Activate: "rocm-nightly activate " + sl.Name()}
	switch {
	case p.hold != nil:
		s.For, s.Reason = "hold", "the slot is held"
		s.Activate += " " + g.Name
	case p.Activate == update.ActivateManual:
		s.For, s.Reason = p.Activate, "activate is manual"
	case p.Activate == update.ActivateIdle:
		s.For, s.Reason = p.Activate, "the first run takes it that finds the active one unused"
	}
	p.Staged = s
}

// shownRefusals is how many a person is shown.
const shownRefusals = 5

func (p *policyStatus) print(w io.Writer) {
	if p.hold != nil {
		fmt.Fprintf(w, "  ! %s; to end it: %s\n", update.HoldText(p.hold, p.now), p.Hold.End)
	}
	if p.Unproven != "" {
		fmt.Fprintf(w, "  ! %s is active and its check after the switch is still to be made: the next run makes it\n", p.Unproven)
	}
	if s := p.Staged; s != nil {
		fmt.Fprintf(w, "  + %s waits: %s; to take it now: %s\n", s.Generation, s.Reason, s.Activate)
	}
	for i, r := range p.Refused {
		if i == shownRefusals {
			fmt.Fprintf(w, "  - and %d more (--json lists them)\n", len(p.Refused)-i)
			break
		}
		kind := ""
		if r.Kind != "" {
			kind = " (" + r.Kind + ")"
		}
		fmt.Fprintf(w, "  - %s is not tried again since %s%s: %s\n", r.Version, r.Since.Local().Format(time.DateOnly), kind, plain.Cut(r.Reason, 160))
	}
	if len(p.Left) > 0 {
		fmt.Fprintf(w, "  - left by rollback or use: %s; something newer moves on, or: rocm-nightly unhold %s\n", strings.Join(p.Left[max(0, len(p.Left)-shownRefusals):], ", "), p.slot)
	}
}
