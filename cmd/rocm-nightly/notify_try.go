package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/serve/notify"
	"github.com/rocm-nightly/rocm-nightly/update"
)

func (a *app) notifyTestCmd() *cobra.Command {
	var kind string
	c := &cobra.Command{
		Use:   "notify-test [NAME]",
		Short: "Send a test to those who are told of events",
		Long: `Send an event to everybody in notify of the config, or to NAME alone, whatever
events they want and whatever was told before, and say who took it. --kind sends
what an event of that kind looks like, marked as an example.`,
		Example: "  rocm-nightly notify-test\n  rocm-nightly notify-test team --kind new-bytes",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := emptyFlag(cmd, "kind"); err != nil {
				return err
			}
			return a.notifyTest(cmd.Context(), argOr(args), kind)
		},
	}
	c.Flags().StringVar(&kind, "kind", notify.Test, "the `kind` of event to send: "+strings.Join(notify.Kinds(), ", "))
	a.jsonFlag(c)
	return c
}

// notifyTested is the JSON form of a test.
type notifyTested struct {
	Schema int          `json:"schema"`
	Kind   string       `json:"kind"`
	Sinks  []sinkTested `json:"sinks"`
}

// sinkTested is what became of the test of one sink.
type sinkTested struct {
	Name    string  `json:"name"`
	Kind    string  `json:"kind"`
	OK      bool    `json:"ok"`
	Seconds float64 `json:"seconds"`
	Error   string  `json:"error,omitempty"`
}

func (a *app) notifyTest(ctx context.Context, name, kind string) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	one := *cfg // what is wrong with the others is no matter of NAME's
	one.Notify = slices.Clone(cfg.Notify)
	if name != "" {
		one.Notify = one.Notify[:0]
		for _, c := range cfg.Notify {
			if c.Name == name {
				one.Notify = append(one.Notify, c)
			}
		}
	}
	switch {
	case len(cfg.Notify) == 0:
		return usage(errors.New("notify-test: the config tells nobody: add somebody to notify (docs/notify.md)"))
	case len(one.Notify) == 0:
		return usage(fmt.Errorf("notify-test: there is no %.64q in notify of the config", name))
	case !slices.Contains(notify.Kinds(), kind):
		return usage(fmt.Errorf("notify-test: --kind %.40q is not one of %s", kind, strings.Join(notify.Kinds(), ", ")))
	}
	n, err := a.notifier(&one)
	if err != nil {
		return fmt.Errorf("notify-test: %w", err)
	}
	results, err := n.Try(ctx, name, kind, hostName())
	if err != nil {
		return fmt.Errorf("notify-test: %w", err)
	}
	return a.printNotifyTest(kind, results)
}

func (a *app) printNotifyTest(kind string, results []notify.Result) error {
	rep := notifyTested{Schema: 1, Kind: kind, Sinks: []sinkTested{}}
	for _, r := range results {
		s := sinkTested{Name: r.Sink, Kind: r.Kind, OK: r.Err == nil, Seconds: r.Seconds}
		if r.Err != nil {
			s.Error, a.code = r.Err.Error(), update.ExitFailed
		}
		rep.Sinks = append(rep.Sinks, s)
	}
	if a.json {
		a.printJSON(rep)
		return nil
	}
	for _, s := range rep.Sinks {
		if s.OK {
			fmt.Fprintf(a.stdout, "%s: sent in %.1f s\n", s.Name, s.Seconds)
		}
	}
	for _, r := range results {
		if r.Err != nil {
			a.fail(fmt.Errorf("notify-test %s: %w", r.Sink, r.Err))
		}
	}
	return nil
}
