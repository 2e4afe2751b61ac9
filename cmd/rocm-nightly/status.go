package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/store"
	"github.com/rocm-nightly/rocm-nightly/update"
)

type statusOptions struct {
	history bool
	offline bool
}

func (a *app) statusCmd() *cobra.Command {
	var o statusOptions
	c := &cobra.Command{
		Use:   "status",
		Short: "Show what is installed, how old it is and what is newer",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.status(cmd.Context(), o) },
	}
	c.Flags().BoolVar(&o.history, "history", false, "also the runs and switches of the past")
	c.Flags().BoolVar(&o.offline, "offline", false, "do not ask the index what is newer")
	a.jsonFlag(c)
	return c
}

type statusReport struct {
	Schema int          `json:"schema"`
	Root   string       `json:"root"`
	Sizes  *sizes       `json:"sizes"` // null: they could not be measured in time
	Slots  []slotStatus `json:"slots"`
	Links  []linkStatus `json:"links"`

	Tarballs *tarballStatus `json:"tarballs"` // those that are kept
}

type slotStatus struct {
	Slot        string             `json:"slot"`
	Active      string             `json:"active"` // "" if none
	Prefix      string             `json:"prefix"`
	Age         string             `json:"age"`               // of the active night, for people
	Newer       *string            `json:"newer"`             // null: nothing newer, or not known
	Stale       *update.Stale      `json:"stale,omitempty"`   // the index has not moved for too long
	Expires     string             `json:"expires,omitempty"` // the day (UTC) on which AMD deletes what is active
	Error       string             `json:"error,omitempty"`   // what is wrong with the slot
	Bytes       int64              `json:"bytes"`             // content of all generations, as if nothing were shared
	DiskBytes   *int64             `json:"disk_bytes"`        // what they occupy together; null: not measured
	Generations []generationStatus `json:"generations"`
	Records     *recordStatus      `json:"records"` // what stays of trees that may be gone; null: nothing
	History     []store.Activation `json:"history,omitempty"`
	Runs        []runStatus        `json:"runs,omitempty"`

	policyStatus
}

type generationStatus struct {
	Name      string    `json:"name"`
	Version   string    `json:"version"`
	Active    bool      `json:"active"`
	Installed time.Time `json:"installed"`
	Digest    string    `json:"digest"`
	Bytes     int64     `json:"bytes"`      // content of the tree
	DiskBytes *int64    `json:"disk_bytes"` // what it would occupy alone; null: not measured
	OwnBytes  *int64    `json:"own_bytes"`  // what no other generation has, and its removal frees; null: not measured

	dir string
}

type runStatus struct {
	Name     string    `json:"name"`
	Finished time.Time `json:"finished"`
	Exit     int       `json:"exit"`
	Error    string    `json:"error,omitempty"`

	Attempts []update.Attempt `json:"attempts,omitempty"` // on the same version before it, oldest first
}

func (a *app) status(ctx context.Context, o statusOptions) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	st, err := a.store()
	if err != nil {
		return err
	}
	slots, err := st.Slots()
	if err != nil {
		return err
	}
	rep := statusReport{Schema: 1, Root: cfg.Root, Slots: []slotStatus{}, Links: []linkStatus{}}
	rep.Tarballs = statusOfTarballs(st)
	used := a.usage(ctx, st)
	rep.Sizes = sizesOf(used)
	// Where a lock says what to install, what else there is does not matter.
	look := &lookup{a: a, cfg: cfg, offline: o.offline || cfg.Policy.Lock != "", listings: map[string]*fetch.Listing{}}
	for _, sl := range slots {
		s := slotStatus{Slot: sl.Name(), Generations: []generationStatus{}}
		// One slot that cannot be read does not hide the others.
		if err := errors.Join(s.fill(sl), s.recorded(sl), s.past(st, sl, o.history)); err != nil {
			s.Error = err.Error()
		}
		s.policyStatus = a.policyOf(cfg, sl)
		s.measure(sl, used)
		s.Newer = look.newer(ctx, st, sl, s.Active)
		s.Stale = look.stale(ctx, sl, s.Active)
		s.Expires = expires(cfg, st, sl)
		rep.Slots = append(rep.Slots, s)
	}
	rep.Links = a.linkStatuses(cfg, st)
	if a.json {
		a.printJSON(rep)
		return nil
	}
	return a.printStatus(rep)
}

// recorded reads what stays of trees.
func (s *slotStatus) recorded(sl *store.Slot) (err error) {
	s.Records, err = statusOfRecords(sl)
	return err
}

// fill reads what is installed.
func (s *slotStatus) fill(sl *store.Slot) error {
	gens, err := sl.Generations()
	if err != nil {
		return err
	}
	for _, g := range gens {
		gs := generationStatus{dir: g.Dir, Name: g.Name, Version: g.Version, Active: g.Active, Installed: g.Installed}
		m, merr := g.Manifest()
		if merr == nil {
			gs.Digest, gs.Bytes = m.Digest, m.Counts.Bytes
		}
		err = errors.Join(err, merr)
		if g.Active {
			s.Active, s.Prefix = g.Name, sl.CurrentPath()
			if v, err := release.ParseVersion(g.Version); err == nil {
				s.Age = update.Age(v, time.Now())
			}
		}
		s.Generations = append(s.Generations, gs)
	}
	_, cerr := sl.Current()
	return errors.Join(err, cerr)
}

// past adds what happened to a slot.
func (s *slotStatus) past(st *store.Store, sl *store.Slot, wanted bool) error {
	if !wanted {
		return nil
	}
	state, err := sl.State()
	if err != nil {
		return err
	}
	s.History = state.History
	runs, err := sl.Runs()
	if err != nil {
		return err
	}
	killed, err := update.Interrupted(st, sl)
	if err != nil {
		killed = &update.Record{Exit: update.ExitFailed, Error: err.Error()}
	}
	if killed != nil {
		s.Runs = append(s.Runs, runStatus{Name: killed.Version, Finished: killed.Finished, Exit: killed.Exit, Error: killed.Error})
	}
	for _, r := range runs {
		var rec update.Record
		if err := sl.ReadRunPart(r.Name, &rec, "audit", "smoke"); err != nil {
			rec.Error = err.Error()
		}
		s.Runs = append(s.Runs, runStatus{r.Name, rec.Finished, rec.Exit, rec.Error, rec.Attempts})
	}
	return nil
}

// lookup asks the index of each channel once, and briefly: status must answer
// also without a network.
type lookup struct {
	a        *app
	cfg      *config.Config
	offline  bool
	listings map[string]*fetch.Listing // nil where the index did not answer
}

// lookupTime is how long status waits for an index.
const lookupTime = 5 * time.Second

func (l *lookup) listing(ctx context.Context, channel string) *fetch.Listing {
	if have, asked := l.listings[channel]; asked {
		return have
	}
	l.listings[channel] = nil
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	quick := *l.cfg
	quick.Download.Retries = 0
	client, err := l.a.fetchClient(&quick, nil)
	if err == nil {
		l.listings[channel], err = client.List(ctx, channel, sources(l.cfg.Channels[channel], "", "", false))
	}
	if err != nil {
		l.a.log(l.a.stderr).Warn("what is newer is not known: the index could not be read", "channel", channel, "error", err)
	}
	return l.listings[channel]
}

// newer returns the version that update would take in place of active.
func (l *lookup) newer(ctx context.Context, st *store.Store, sl *store.Slot, active string) *string {
	family, list := l.family(ctx, sl, active)
	if list == nil {
		return nil
	}
	o := updateConfig(l.cfg, "").Policy
	rel, err := fetch.Select(list, family, fetch.Policy{Prefer: o.Prefer, Series: o.Series, Deny: o.Deny, MinAge: o.MinAge, Settle: o.Settle})
	if err != nil || sl.Skip(rel.Version.String()) {
		return nil
	}
	cur, err := sl.Current()
	if err != nil || cur == nil || cur.Version == rel.Version.String() {
		return nil
	}
	v, err := release.ParseVersion(cur.Version)
	if err != nil || fetch.Compare(o.Prefer, rel, release.Release{Version: v, MTime: published(st, cur)}) <= 0 {
		return nil
	}
	text := rel.Version.String()
	return &text
}

// family is the family that serves a slot, and the listing of its channel; nil
// where nothing is active or nothing is known.
func (l *lookup) family(ctx context.Context, sl *store.Slot, active string) (string, *fetch.Listing) {
	if l.offline || active == "" {
		return "", nil
	}
	list := l.listing(ctx, sl.Channel())
	if list == nil {
		return "", nil
	}
	families := list.Families()
	res, err := l.cfg.GFX.Resolve(sl.Target(), families)
	switch {
	case err == nil:
		return res.Family, list
	case l.cfg.Policy.Multiarch == "fallback" && slices.Contains(families, gfx.Multiarch):
		return gfx.Multiarch, list
	}
	return "", nil
}

// published is when the tarball of a generation was uploaded, zero where the
// ledger does not know.
func published(st *store.Store, g *store.Generation) time.Time {
	m, err := g.Manifest()
	if err != nil {
		return time.Time{}
	}
	pins, err := st.FindPins(m.Name)
	if err != nil {
		return time.Time{}
	}
	for _, p := range slices.Backward(pins) {
		if p.Channel == m.Channel {
			return p.MTime
		}
	}
	return time.Time{}
}

// stale tells whether the index has moved, and AMD is silent only there.
func (l *lookup) stale(ctx context.Context, sl *store.Slot, active string) *update.Stale {
	family, list := l.family(ctx, sl, active)
	if list == nil {
		return nil
	}
	after := l.cfg.Policy.StaleAfter.Or(l.cfg.AMD.Channels[sl.Channel()].StaleAfter)
	f := list.Freshness(family, after, time.Now())
	if !f.Stale {
		return nil
	}
	return &update.Stale{Age: f.Age.Round(time.Second).String(), Cause: f.Cause, Detail: f.Detail}
}

// expires is the day on which AMD deletes what is active, "" if it does not or
// the day is not known.
func expires(cfg *config.Config, st *store.Store, sl *store.Slot) string {
	g, err := sl.Current()
	if err != nil || g == nil {
		return ""
	}
	v, err := release.ParseVersion(g.Version)
	if err != nil {
		return ""
	}
	day, ok := update.Expiry(v, published(st, g), time.Duration(cfg.AMD.Channels[sl.Channel()].Retention)*24*time.Hour)
	if !ok {
		return ""
	}
	return day.Format(time.DateOnly)
}

func (a *app) printStatus(rep statusReport) error {
	if len(rep.Slots) == 0 {
		fmt.Fprintf(a.stderr, "nothing is installed in %s; begin with: rocm-nightly update --arch gfx1151\n", rep.Root)
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, s := range rep.Slots {
		fmt.Fprintf(w, "%s\t%s%s\n", s.Slot, s.Prefix, s.sizeText(rep.Sizes))
		if s.Error != "" {
			fmt.Fprintf(w, "  ! %s\n", printable(s.Error))
		}
		if s.Stale != nil {
			fmt.Fprintf(w, "  ! the index is stale: %s\n", printable(s.Stale.Detail))
		}
		for _, g := range s.Generations {
			mark, note := " ", ""
			if g.Active {
				mark, note = "*", "\t"+s.Age
				if s.Newer != nil {
					note += ", newer: " + *s.Newer
				}
				if s.Expires != "" {
					note += ", AMD keeps it until " + s.Expires
				}
			}
			fmt.Fprintf(w, "  %s %s\t%s\t%s%s\n", mark, g.Name, g.sizeText(rep.Sizes), g.Installed.Local().Format("2006-01-02 15:04"), note)
		}
		if s.Records != nil && len(s.Generations) == 0 {
			fmt.Fprintf(w, "    %s\n", s.Records.text())
		}
		s.policyStatus.print(w)
		for _, h := range s.History {
			fmt.Fprintf(w, "    %s\t%s\t%s\n", h.At.Local().Format("2006-01-02 15:04"), h.Generation, h.Why)
		}
		for _, r := range s.Runs {
			fmt.Fprintf(w, "    run %s\texit %d\t%s\t%s\n", r.Name, r.Exit, r.Finished.Local().Format("2006-01-02 15:04"), printable(r.Error))
			for _, before := range slices.Backward(r.Attempts) {
				fmt.Fprintf(w, "      before\texit %d\t%s\t%s\n", before.Exit, before.Finished.Local().Format("2006-01-02 15:04"), printable(before.Error))
			}
		}
	}
	printLinks(w, rep.Links)
	rep.Tarballs.print(w, rep.Root)
	return w.Flush()
}
