package main

import (
	"context"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

type listOptions struct {
	arch    string
	channel string
	all     bool
}

func (a *app) listCmd() *cobra.Command {
	var o listOptions
	c := &cobra.Command{
		Use:   "list",
		Short: "Show what AMD publishes",
		Long: `Show what AMD publishes: the newest release of each family, or with --arch
every release of the family that serves it, newest first. With --all also the -tests
tarballs, those of other platforms, and the names that are of no known grammar.`,
		Example: "  rocm-nightly list\n  rocm-nightly list --arch gfx1151\n  rocm-nightly list --channel stable --json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.list(cmd.Context(), o) },
	}
	c.Flags().StringVar(&o.arch, "arch", "", "a GPU `target`, family or product: every release of it")
	c.Flags().StringVar(&o.channel, "channel", "nightly", "nightly, dev, rc, bkc, stable or asan")
	c.Flags().BoolVar(&o.all, "all", false, "also -tests, other platforms and names that do not parse")
	a.jsonFlag(c)
	return c
}

// listed is a release in the JSON form of list.
type listed struct {
	Channel   string    `json:"channel"`
	Family    string    `json:"family"`
	Targets   []string  `json:"targets"`   // that the family is known to serve
	Requested string    `json:"requested"` // what --arch asked for
	Version   string    `json:"version"`
	URL       string    `json:"url"`
	MTime     time.Time `json:"mtime"`
	Tests     bool      `json:"tests"`
	Platform  string    `json:"platform"`
}

type listing struct {
	Schema   int      `json:"schema"`
	Releases []listed `json:"releases"`
	Unparsed []string `json:"unparsed,omitempty"`
}

func (a *app) list(ctx context.Context, o listOptions) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	if !slices.Contains(config.ChannelNames(), o.channel) {
		return usage(fmt.Errorf("--channel %q is not one of nightly, dev, rc, bkc, stable, asan", o.channel))
	}
	urls, insecure := indexes(cfg.Channels[o.channel])
	client, err := a.fetchClient(cfg, insecure, nil)
	if err != nil {
		return err
	}
	l, err := client.List(ctx, o.channel, urls)
	if err != nil {
		return err
	}
	log := a.log(a.stderr)
	for _, s := range l.Sources {
		if s.Err != nil {
			log.Warn("an index could not be read", "url", s.URL, "error", s.Err)
		}
	}
	releases, err := o.pick(l)
	if err != nil {
		return err
	}
	out := listing{Schema: 1, Releases: []listed{}}
	if o.all {
		out.Unparsed = l.Unparsed
	}
	for _, r := range releases {
		targets := gfx.Targets(r.Family)
		if targets == nil {
			targets = []string{}
		}
		out.Releases = append(out.Releases, listed{r.Channel, r.Family, targets, o.arch, r.Version.String(), r.URL, r.MTime.UTC(), r.Tests, r.Platform})
	}
	if a.json {
		a.printJSON(out)
		return nil
	}
	return a.printList(out)
}

// pick chooses the releases to show: with --arch or --all every one, else the
// newest of each family.
func (o listOptions) pick(l *fetch.Listing) ([]release.Release, error) {
	family := ""
	if o.arch != "" {
		if _, known := gfx.Canonical(o.arch); !known && o.arch != gfx.Auto {
			return nil, usage(fmt.Errorf("list: %q is no GPU target: use a gfx name, a family, a product name or multiarch", o.arch))
		}
		if o.arch == gfx.Auto {
			return nil, usage(fmt.Errorf("--arch auto: name a target to list its releases"))
		}
		res, err := gfx.Resolve(o.arch, l.Families())
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", l.Channel, err)
		}
		family = res.Family
	}
	var out []release.Release
	seen := map[string]bool{}
	for _, r := range l.Releases {
		plain := r.Platform == "linux" && !r.Tests
		switch {
		case family != "" && r.Family != family, !o.all && !plain:
			continue
		case family == "" && !o.all && seen[r.Family]:
			continue
		}
		seen[r.Family] = true
		out = append(out, r)
	}
	return out, nil
}

func (a *app) printList(l listing) error {
	if len(l.Releases) == 0 {
		fmt.Fprintln(a.stderr, "nothing is published")
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, r := range l.Releases {
		note := ""
		if r.Tests {
			note = "tests"
		}
		if r.Platform != "linux" {
			note += " " + r.Platform
		}
		day := "-"
		if !r.MTime.IsZero() {
			day = r.MTime.Format("2006-01-02 15:04")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.Family, r.Version, day, note)
	}
	for _, name := range l.Unparsed {
		fmt.Fprintf(w, "?\t%s\t\tunknown name\n", name)
	}
	return w.Flush()
}

// indexes lists the indexes of a channel, and whether http:// is taken.
func indexes(ch config.Channel) (sources []fetch.Source, insecure bool) {
	for _, ix := range ch.Indexes {
		sources = append(sources, fetch.Source{URL: ix.URL})
		insecure = insecure || ix.Insecure
	}
	return sources, insecure
}

// fetchClient makes a client that downloads as the config says.
func (a *app) fetchClient(cfg *config.Config, insecure bool, event func(fetch.Event)) (*fetch.Client, error) {
	retries := cfg.Download.Retries
	if retries == 0 {
		retries = -1 // none; fetch takes 0 for its default
	}
	return fetch.New(fetch.Options{
		UserAgent: "rocm-nightly/" + version().Version, Insecure: insecure,
		Connections: cfg.Download.Connections, Retries: retries,
		IdleTimeout: time.Duration(cfg.Download.IdleTimeout), RateLimit: int64(cfg.Download.RateLimit),
		Event: event,
	})
}
