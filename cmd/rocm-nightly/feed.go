package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/bump/feed"
	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/store"
)

type feedOptions struct {
	output  string
	channel string
	family  string
	ledger  string
}

func (a *app) feedCmd() *cobra.Command {
	var o feedOptions
	c := &cobra.Command{
		Use:   "feed",
		Short: "Write what was verified here as a feed.json that other bots read",
		Long: `Write the ledger, which has every tarball that was downloaded, verified and audited
here, as a feed.json: Renovate's custom datasource, nvchecker and others read it,
so that they propose verified versions with their digests. One feed is about one
channel and one family. Nothing is downloaded.`,
		Example: "  rocm-nightly feed -o feed.json\n  rocm-nightly feed --channel stable --family gfx110X-all",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := emptyFlag(cmd, "output", "channel", "family", "ledger"); err != nil {
				return err
			}
			return a.feed(cmd.Context(), o)
		},
	}
	f := c.Flags()
	f.StringVarP(&o.output, "output", "o", "", "the `file` to write, or - (default: standard output)")
	f.StringVar(&o.channel, "channel", "nightly", "of this `channel`")
	f.StringVar(&o.family, "family", "", "of this `family` or target; may be left out where the ledger has one")
	f.StringVar(&o.ledger, "ledger", "", "the `file` that update was told to remember tarballs in, if not the store's ledger")
	return c
}

func (a *app) feed(ctx context.Context, o feedOptions) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	if !slices.Contains(config.ChannelNames(), o.channel) {
		return usage(fmt.Errorf("feed: --channel %q is not one of %s", o.channel, strings.Join(config.ChannelNames(), ", ")))
	}
	var ledger *store.Ledger
	if o.ledger != "" {
		ledger = store.OpenLedger(o.ledger)
	} else {
		st, err := a.store()
		if err != nil {
			return err
		}
		ledger = st.Ledger()
	}
	retention := time.Duration(cfg.AMD.Channels[o.channel].Retention) * 24 * time.Hour
	f, err := feedOf(ctx, ledger, o.channel, o.family, func(published time.Time) bool {
		return retention > 0 && !published.IsZero() && time.Since(published) > retention
	})
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := feed.Encode(&text, f); err != nil {
		return fmt.Errorf("write the feed: %w", err)
	}
	if o.output == "" || o.output == "-" {
		_, err := a.stdout.Write(text.Bytes())
		return err
	}
	if err := renameio.WriteFile(o.output, text.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the feed: %w", err)
	}
	fmt.Fprintf(a.stderr, "wrote %s: %d releases of %s\n", o.output, len(f.Entries), f.Family)
	return nil
}

// feedOf reads the ledger. Of one name its last line counts. gone tells, by the time
// of its publication, what AMD has deleted by now.
func feedOf(ctx context.Context, ledger *store.Ledger, channel, family string, gone func(time.Time) bool) (feed.Feed, error) {
	byFamily := map[string]map[string]feed.Entry{}
	var unread error
	for e, err := range ledger.All(ctx) {
		if err != nil {
			unread = err
			continue
		}
		pin, err := e.Pin()
		if err != nil || e.Channel != channel || pin.Tests || pin.Variant != "" && channel != "asan" || strings.HasPrefix(e.URL, "file:") {
			continue // or it is in a directory of this machine, of no use to others
		}
		if byFamily[e.Family] == nil {
			byFamily[e.Family] = map[string]feed.Entry{}
		}
		byFamily[e.Family][e.Version] = feed.Entry{Version: e.Version, Time: e.MTime, Digest: e.Digest.String(), URL: publicURL(e.URL), Size: e.Size, Withdrawn: gone(e.MTime)}
	}
	if unread != nil {
		return feed.Feed{}, fmt.Errorf("feed: %w", unread) // a feed without it would look complete
	}
	families := slices.Sorted(maps.Keys(byFamily))
	switch {
	case len(families) == 0:
		return feed.Feed{}, fmt.Errorf("feed: the ledger %s has nothing of channel %s (verify a night first: rocm-nightly update)", ledger.Path(), channel)
	case family == "" && len(families) > 1:
		return feed.Feed{}, usage(fmt.Errorf("feed: the ledger has several families: name one of %s with --family", strings.Join(families, ", ")))
	case family == "":
		family = families[0]
	case byFamily[family] == nil:
		return feed.Feed{}, usage(errors.New("feed: the ledger has nothing of " + family + "; it has " + strings.Join(families, ", ")))
	}
	f := feed.Feed{Channel: channel, Family: family}
	for _, version := range slices.Sorted(maps.Keys(byFamily[family])) {
		f.Entries = append(f.Entries, byFamily[family][version])
	}
	return f, nil
}

// publicURL is an address without the name and password that it may hold.
func publicURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.User == nil {
		return raw
	}
	u.User = nil
	return u.String()
}
