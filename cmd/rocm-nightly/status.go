package main

import (
	"context"
	"fmt"
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
	Slots  []slotStatus `json:"slots"`
	Links  []linkStatus `json:"links"`
}

type slotStatus struct {
	Slot        string             `json:"slot"`
	Active      string             `json:"active"` // "" if none
	Prefix      string             `json:"prefix"`
	Age         string             `json:"age"`   // of the active night, for people
	Newer       *string            `json:"newer"` // null: nothing newer, or not known
	Generations []generationStatus `json:"generations"`
	History     []store.Activation `json:"history,omitempty"`
	Runs        []runStatus        `json:"runs,omitempty"`
}

type generationStatus struct {
	Name      string    `json:"name"`
	Version   string    `json:"version"`
	Active    bool      `json:"active"`
	Installed time.Time `json:"installed"`
	Digest    string    `json:"digest"`
	Bytes     int64     `json:"bytes"`
}

type runStatus struct {
	Name     string    `json:"name"`
	Finished time.Time `json:"finished"`
	Exit     int       `json:"exit"`
	Error    string    `json:"error,omitempty"`
}

type linkStatus struct {
	Path  string `json:"path"`
	State string `json:"state"`
	What  string `json:"what"`
}

func (a *app) status(ctx context.Context, o statusOptions) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	st, err := store.Open(cfg.Root)
	if err != nil {
		return err
	}
	slots, err := st.Slots()
	if err != nil {
		return err
	}
	rep := statusReport{Schema: 1, Root: cfg.Root, Slots: []slotStatus{}, Links: []linkStatus{}}
	for _, sl := range slots {
		s, err := a.slotStatus(ctx, cfg, sl, o)
		if err != nil {
			return err
		}
		rep.Slots = append(rep.Slots, *s)
	}
	for _, in := range cfg.Installs {
		if in.Link == "" {
			continue
		}
		l, err := st.LinkStatus(in.Link)
		if err != nil {
			return err
		}
		rep.Links = append(rep.Links, linkStatus{l.Path, string(l.State), l.What})
	}
	if a.json {
		a.printJSON(rep)
		return nil
	}
	return a.printStatus(rep)
}

func (a *app) slotStatus(ctx context.Context, cfg *config.Config, sl *store.Slot, o statusOptions) (*slotStatus, error) {
	s := &slotStatus{Slot: sl.Name(), Generations: []generationStatus{}}
	gens, err := sl.Generations()
	if err != nil {
		return nil, err
	}
	for _, g := range gens {
		gs := generationStatus{Name: g.Name, Version: g.Version, Active: g.Active, Installed: g.Installed}
		if m, err := g.Manifest(); err == nil {
			gs.Digest, gs.Bytes = m.Digest, m.Counts.Bytes
		}
		if g.Active {
			s.Active, s.Prefix = g.Name, sl.CurrentPath()
			if v, err := release.ParseVersion(g.Version); err == nil {
				s.Age = update.Age(v, time.Now())
				s.Newer = a.newer(ctx, cfg, sl, v, o)
			}
		}
		s.Generations = append(s.Generations, gs)
	}
	if !o.history {
		return s, nil
	}
	return s, s.past(sl)
}

// past adds what happened to a slot.
func (s *slotStatus) past(sl *store.Slot) error {
	state, err := sl.State()
	if err != nil {
		return err
	}
	s.History = state.History
	runs, err := sl.Runs()
	if err != nil {
		return err
	}
	for _, r := range runs {
		var rec update.Record
		if err := sl.ReadRun(r.Name, &rec); err != nil {
			rec.Error = err.Error()
		}
		s.Runs = append(s.Runs, runStatus{r.Name, rec.Finished, rec.Exit, rec.Error})
	}
	return nil
}

// newer asks the index, briefly: status must answer also without a network.
func (a *app) newer(ctx context.Context, cfg *config.Config, sl *store.Slot, active release.Version, o statusOptions) *string {
	if o.offline {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	urls, insecure := indexes(cfg.Channels[sl.Channel()])
	quick := *cfg
	quick.Download.Retries = 0
	client, err := a.fetchClient(&quick, insecure, nil)
	if err != nil {
		return nil
	}
	l, err := client.List(ctx, sl.Channel(), urls)
	if err != nil {
		a.log(a.stderr).Debug("the index could not be read", "error", err)
		return nil
	}
	res, err := gfx.Resolve(sl.Target(), l.Families())
	if err != nil {
		return nil
	}
	rel, err := fetch.Select(l, res.Family, fetch.Policy{Prefer: cfg.Policy.Prefer, Series: cfg.Policy.Series, Deny: cfg.Policy.Deny})
	if err != nil || rel.Version.Compare(active) <= 0 {
		return nil
	}
	v := rel.Version.String()
	return &v
}

func (a *app) printStatus(rep statusReport) error {
	if len(rep.Slots) == 0 {
		fmt.Fprintf(a.stderr, "nothing is installed in %s; begin with: rocm-nightly update --arch gfx1151\n", rep.Root)
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, s := range rep.Slots {
		fmt.Fprintf(w, "%s\t%s\n", s.Slot, s.Prefix)
		for _, g := range s.Generations {
			mark, note := " ", ""
			if g.Active {
				mark, note = "*", s.Age
				if s.Newer != nil {
					note += ", newer: " + *s.Newer
				}
			}
			fmt.Fprintf(w, "  %s %s\t%s\t%s\t%s\n", mark, g.Name, bytesText(g.Bytes), g.Installed.Local().Format("2006-01-02 15:04"), note)
		}
		for _, h := range s.History {
			fmt.Fprintf(w, "    %s\t%s\t%s\n", h.At.Local().Format("2006-01-02 15:04"), h.Generation, h.Why)
		}
		for _, r := range s.Runs {
			fmt.Fprintf(w, "    run %s\texit %d\t%s\t%s\n", r.Name, r.Exit, r.Finished.Local().Format("2006-01-02 15:04"), r.Error)
		}
	}
	for _, l := range rep.Links {
		fmt.Fprintf(w, "%s\t%s\t%s\n", l.Path, l.State, l.What)
	}
	return w.Flush()
}
