package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
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
and other variants, other platforms, the names that are of no known grammar, what
the indexes of the past list, and what each index said.`,
		Example: "  rocm-nightly list\n  rocm-nightly list --arch gfx1151\n  rocm-nightly list --channel stable --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := emptyFlag(cmd, "arch", "channel"); err != nil {
				return err
			}
			return a.list(cmd.Context(), o)
		},
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
	Variant   string    `json:"variant,omitempty"` // tests, lite, asan, …
	Archive   string    `json:"archive"`           // tar.gz, …
	Size      int64     `json:"size,omitempty"`    // where the index says
	Platform  string    `json:"platform"`
}

// indexSaid is what one index said, in the JSON form of list.
type indexSaid struct {
	URL      string    `json:"url"`
	Error    string    `json:"error,omitempty"`
	Releases int       `json:"releases"`
	Taken    int       `json:"taken"`    // those that no other index is preferred for
	Unparsed int       `json:"unparsed"` // names of no known grammar
	Refused  int       `json:"refused"`  // references that lead elsewhere, which are not followed
	Newest   time.Time `json:"newest,omitzero"`
	Frozen   bool      `json:"frozen"` // publishes no more, as far as is known or seen
}

type listing struct {
	Schema   int      `json:"schema"`
	Releases []listed `json:"releases"`
	Unparsed []string `json:"unparsed,omitempty"` // with --all

	Indexes []indexSaid `json:"indexes"`
}

func (a *app) list(ctx context.Context, o listOptions) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	if !slices.Contains(config.ChannelNames(), o.channel) {
		return usage(fmt.Errorf("--channel %q is not one of nightly, dev, rc, bkc, stable, asan", o.channel))
	}
	client, err := a.fetchClient(cfg, nil)
	if err != nil {
		return err
	}
	l, err := client.List(ctx, o.channel, sources(cfg.Channels[o.channel], "", "", o.all))
	if err != nil {
		return err
	}
	log := a.log(a.stderr)
	for _, s := range l.Sources {
		switch {
		case s.Err != nil:
			log.Warn("an index could not be read", "url", s.URL, "error", s.Err)
		case s.Releases == 0 && len(l.Sources) > 1:
			log.Warn("an index lists nothing", "url", s.URL)
		}
	}
	releases, err := o.pick(cfg.GFX, l)
	if err != nil {
		return err
	}
	out := listing{Schema: 1, Releases: []listed{}}
	if o.all {
		out.Unparsed = l.Unparsed
	}
	for _, r := range releases {
		targets := cfg.GFX.Targets(r.Family)
		if targets == nil {
			targets = []string{}
		}
		out.Releases = append(out.Releases, listed{r.Channel, r.Family, targets, o.arch, r.Version.String(), r.URL, r.MTime.UTC(), r.Tests, r.Variant, r.Archive, r.Size, r.Platform})
	}
	for _, s := range l.Sources {
		said := indexSaid{s.URL, "", s.Releases, s.Listed, s.Unparsed, s.Refused, s.Newest.UTC(), s.Frozen}
		if s.Err != nil {
			said.Error = s.Err.Error()
		}
		out.Indexes = append(out.Indexes, said)
	}
	if a.json {
		a.printJSON(out)
		return nil
	}
	return a.printList(out, o.all)
}

// pick chooses the releases to show: with --arch or --all every one, else the
// newest of each family.
func (o listOptions) pick(known *gfx.Table, l *fetch.Listing) ([]release.Release, error) {
	family := ""
	if o.arch != "" {
		if _, ok := known.Canonical(o.arch); !ok && o.arch != gfx.Auto {
			return nil, usage(fmt.Errorf("list: %q is no GPU target: use a gfx name, a family, a product name or multiarch", o.arch))
		}
		if o.arch == gfx.Auto {
			return nil, usage(fmt.Errorf("--arch auto: name a target to list its releases"))
		}
		res, err := known.Resolve(o.arch, l.Families())
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", l.Channel, err)
		}
		family = res.Family
	}
	var out []release.Release
	seen := map[string]bool{}
	for _, r := range l.Releases {
		plain := r.Unusable() == ""
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

func (a *app) printList(l listing, all bool) error {
	if len(l.Releases) == 0 {
		fmt.Fprintln(a.stderr, "nothing is published")
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, r := range l.Releases {
		note := r.Variant
		if r.Platform != "linux" {
			note += " " + r.Platform
		}
		if r.Archive != "tar.gz" {
			note += " " + r.Archive
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
	if err := w.Flush(); err != nil || !all {
		return err
	}
	for _, s := range l.Indexes {
		fmt.Fprintf(a.stderr, "%s: %s\n", s.URL, s.text())
	}
	return nil
}

// text is what an index said, for people.
func (s indexSaid) text() string {
	if s.Error != "" {
		return "could not be read"
	}
	text := fmt.Sprintf("%d releases, %d taken from here, %d names of no known grammar, %d references refused", s.Releases, s.Taken, s.Unparsed, s.Refused)
	if !s.Newest.IsZero() {
		text += ", newest of " + s.Newest.Format("2006-01-02 15:04")
	}
	if s.Frozen {
		text += ", publishes no more"
	}
	return text
}

// sources lists the indexes of a channel to ask for what is wanted; see
// config.Channel.Ask.
func sources(ch config.Channel, version, series string, all bool) []fetch.Source {
	v, _ := release.ParseVersion(version) // what is none is refused by whoever takes it
	var out []fetch.Source
	for _, ix := range ch.Ask(v, series, all) {
		out = append(out, fetch.Source{
			URL: ix.URL, Insecure: ix.Insecure, HeadersFile: ix.HeadersFile, CAFile: ix.CAFile, ClientCert: ix.ClientCert,
			ClientKey: ix.ClientKey, AllowHosts: ix.AllowHosts, From: ix.From, Until: ix.Until, Frozen: ix.Frozen,
		})
	}
	return out
}

// fetchClient makes a client that downloads as the config says.
func (a *app) fetchClient(cfg *config.Config, event func(fetch.Event)) (*fetch.Client, error) {
	retries := cfg.Download.Retries
	if retries == 0 {
		retries = -1 // none; fetch takes 0 for its default
	}
	return fetch.New(fetch.Options{
		UserAgent: "rocm-nightly/" + version().Version, CacheDir: filepath.Join(a.cacheDir(), "indexes"), Sources: allSources(cfg),
		Connections: cfg.Download.Connections, Retries: retries,
		IdleTimeout: time.Duration(cfg.Download.IdleTimeout), RateLimit: int64(cfg.Download.RateLimit),
		Event: event,
	})
}

// allSources lists every index of every channel, and every source of trust:
// what is fetched from their hosts is fetched as the config says.
func allSources(cfg *config.Config) []fetch.Source {
	var all []fetch.Source
	for _, ch := range cfg.Channels {
		all = append(all, sources(ch, "", "", true)...)
	}
	for _, t := range cfg.Trust {
		if strings.Contains(t.URL, "://") {
			all = append(all, fetch.Source{URL: t.URL, HeadersFile: t.HeadersFile, CAFile: t.CAFile, AllowHosts: t.AllowHosts})
		}
	}
	return all
}
