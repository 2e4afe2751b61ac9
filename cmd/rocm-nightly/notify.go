package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/internal/secret"
	"github.com/rocm-nightly/rocm-nightly/serve/notify"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// notifiedName is the file in the store that remembers what was told to whom.
const notifiedName = "notified.json"

// tell sends the events of a run to those who want them.
func (a *app) tell(ctx context.Context, cfg *config.Config, rep *update.Report, final bool) error {
	return a.tellEvents(ctx, cfg, notify.Events(rep, hostName(), time.Now(), final))
}

// tellLooked sends the events of a look at the indexes.
func (a *app) tellLooked(ctx context.Context, cfg *config.Config, l *update.Looked) error {
	return a.tellEvents(ctx, cfg, notify.Looked(l, hostName(), time.Now()))
}

// tellError sends that a run could not begin. After the verb, the error is the
// caller's to return.
func (a *app) tellError(ctx context.Context, cfg *config.Config, err error, final bool) error {
	return a.tellEvents(ctx, cfg, notify.FromError(err, hostName(), time.Now(), final))
}

// tellBumps sends what became of the repositories, without an update.
func (a *app) tellBumps(ctx context.Context, cfg *config.Config, bumps []*update.Bumped) error {
	return a.tellEvents(ctx, cfg, notify.FromBump(bumps, hostName(), time.Now(), true))
}

// tellEvents sends events. Called without any, it sends what could not be sent before.
func (a *app) tellEvents(ctx context.Context, cfg *config.Config, events []notify.Event) error {
	if len(cfg.Notify) == 0 {
		return nil
	}
	n, err := a.notifier(cfg)
	if n == nil {
		return err
	}
	return errors.Join(err, n.Tell(ctx, events))
}

// notifier is who tells, those sinks left out whose address or secret cannot be had:
// the error names them.
func (a *app) notifier(cfg *config.Config) (*notify.Notifier, error) {
	var errs []error
	if err := secret.KeepOutOfCores(); err != nil {
		a.log(a.stderr).Warn("a core of this process could hold tokens", "error", err)
	}
	o := notify.Options{Log: a.log(a.stderr), Desk: &a.desk, Agent: "rocm-nightly/" + version().Version}
	if info, err := os.Stat(cfg.Root); err == nil && info.IsDir() {
		o.Memory = filepath.Join(cfg.Root, notifiedName)
	}
	for _, c := range cfg.Notify {
		s, err := a.sink(c)
		if err == nil {
			_, err = notify.New(notify.Options{Sinks: []notify.Sink{s}})
		} else {
			err = fmt.Errorf("notify %s: %w", c.Name, err)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		o.Sinks = append(o.Sinks, s)
	}
	if len(o.Sinks) == 0 {
		return nil, errors.Join(errs...)
	}
	n, err := notify.New(o)
	return n, errors.Join(append(errs, err)...)
}

// sink reads the address and the secret of one receiver.
func (a *app) sink(c config.Notify) (notify.Sink, error) {
	s := notify.Sink{Name: c.Name, Kind: c.Kind, URL: c.URL, Events: c.Events, Title: c.Title, Template: c.Text, Insecure: c.Insecure}
	if from := (secret.Source{Env: c.URLEnv, File: c.URLFile, Credential: c.URLCredential}); !from.Empty() {
		text, err := from.ReadToken(a.getenv)
		if err != nil {
			return s, fmt.Errorf("its address: %w", err)
		}
		s.URL = text.Reveal()
	}
	if from := (secret.Source{Env: c.SecretEnv, File: c.SecretFile, Credential: c.SecretCredential}); !from.Empty() {
		text, err := from.ReadToken(a.getenv)
		if err != nil {
			return s, fmt.Errorf("its secret: %w", err)
		}
		s.Secret = text.Reveal()
	}
	return s, nil
}

// wrongReceivers finds what is wrong with the receivers of the config, without reading a
// secret: that is there when the program runs as its service, perhaps not now.
func wrongReceivers(cfg *config.Config) (errs []error) {
	for i, c := range cfg.Notify {
		add := func(key string, err error) {
			if err != nil {
				errs = append(errs, cfg.Locate(fmt.Sprintf("notify[%d].%s", i, key), fmt.Errorf("%w (of the receiver %s)", err, c.Name)))
			}
		}
		if err := notify.CheckTemplates(c.Title, ""); err != nil {
			add("title", err)
		}
		if err := notify.CheckTemplates("", c.Text); err != nil {
			add("text", err)
		}
		if c.URL == "" {
			continue
		}
		add("url", notify.CheckAddress(c.Kind, c.URL, c.Insecure))
		if notify.HasSecret(c.Kind, c.URL) {
			add("url", errors.New("holds a secret: put the address into a file that only you can read, and write its path as url_file"))
		}
	}
	return errs
}

// hostName is the name of this machine, "" if it has none.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(name)
}
