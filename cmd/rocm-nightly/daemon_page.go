package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/internal/secret"
	"github.com/rocm-nightly/rocm-nightly/serve/metrics"
	"github.com/rocm-nightly/rocm-nightly/serve/web"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// listenOff is serve.listen without a page.
const listenOff = "off"

// serveToken is what the page's actions ask for; "" if there are none.
func serveToken(cfg *config.Config, getenv func(string) string) (string, error) {
	src := secret.Source{Env: cfg.Serve.TokenEnv, File: cfg.Serve.TokenFile, Credential: cfg.Serve.TokenCredential}
	if src == (secret.Source{}) {
		return "", nil
	}
	token, err := src.ReadToken(getenv)
	if err != nil {
		return "", fmt.Errorf("serve: the token of the page: %w", err)
	}
	return token.Reveal(), nil
}

// page is what is served.
func (s *service) page(cfg *config.Config, token string) web.Options {
	c := cfg.Serve
	o := web.Options{
		Listen: c.Listen, Public: c.Public, TLSCert: c.TLSCert, TLSKey: c.TLSKey, Hosts: c.Hosts,
		Source: s.hub, Metrics: metrics.Handler(s.hub), Live: s.sched.Live, Ready: s.sched.Ready, Log: s.log,
	}
	if token != "" {
		o.Token, o.Actions = token, s
	}
	return o
}

// Times of the page.
const (
	listenPatience = 10 * time.Second // until it must listen
	listenAgain    = time.Minute      // until it is tried again, should it end
)

// open serves the page until ctx ends, which closes what is returned. It waits until
// the page listens: what cannot be served at the start is an error, and what ends
// later is begun again, since updates do not need it.
func (s *service) open(ctx context.Context, o web.Options) (<-chan struct{}, error) {
	served := make(chan struct{})
	if o.Listen == listenOff {
		close(served)
		return served, nil
	}
	first, begun := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(served)
		err := web.Serve(ctx, o)
		first <- err
		select {
		case <-begun:
		case <-ctx.Done(): // who has started it is told why, and nothing is tried again
			return
		}
		for ctx.Err() == nil {
			s.log.Error("the status page is not served; it is tried again in a minute", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(listenAgain):
				err = web.Serve(ctx, o)
			}
		}
	}()
	if err := listening(ctx, o.Listen, first); err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("%w (serve.listen names another address, or off)", err)
	}
	close(begun)
	return served, nil
}

// listening waits until somebody can connect to listen, or until serving has failed.
func listening(ctx context.Context, listen string, failed <-chan error) error {
	network, address := "tcp", listen
	if path, unix := strings.CutPrefix(listen, "unix:"); unix {
		network, address = "unix", path
	}
	if _, port, err := net.SplitHostPort(address); network == "tcp" && (err != nil || port == "0") {
		network = "" // systemd's socket, or a port that only the page knows
	}
	patience := time.NewTimer(listenPatience)
	defer patience.Stop()
	if network == "" {
		patience.Reset(100 * time.Millisecond)
	}
	for {
		if network != "" {
			var d net.Dialer
			if conn, err := d.DialContext(ctx, network, address); err == nil {
				return endedAlready(failed, conn.Close())
			}
		}
		select {
		case err := <-failed:
			if err == nil {
				err = ctx.Err()
			}
			return err
		case <-patience.C:
			return nil // it neither listens nor has failed: it is not waited for
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// endedAlready is the error of serving, should it be somebody else who listens there.
func endedAlready(failed <-chan error, closed error) error {
	select {
	case err := <-failed:
		return err
	case <-time.After(20 * time.Millisecond):
		if errors.Is(closed, net.ErrClosed) {
			return nil
		}
		return closed
	}
}

// Run begins a job of the schedule now.
func (s *service) Run(ctx context.Context, job string) error { return s.sched.RunNow(ctx, job) }

// Rollback goes back to the generation before.
func (s *service) Rollback(ctx context.Context, slot string) error {
	return s.switchTo(ctx, slot, func(sl *store.Slot) (from, to *store.Generation, err error) { return sl.Rollback(ctx) })
}

// Use switches to a generation that is here, and holds it.
func (s *service) Use(ctx context.Context, slot, version string) error {
	err := s.switchTo(ctx, slot, func(sl *store.Slot) (from, to *store.Generation, err error) { return sl.Use(ctx, version) })
	if err != nil {
		return err
	}
	return s.onSlot(slot, func(sl *store.Slot) error { return sl.Hold(ctx, time.Time{}, "pinned on the status page") })
}

// Unhold ends a hold.
func (s *service) Unhold(ctx context.Context, slot string) error {
	return s.onSlot(slot, func(sl *store.Slot) error { return sl.Unhold(ctx) })
}

// onSlot finds a slot and does something to it; the state is read again.
func (s *service) onSlot(name string, do func(*store.Slot) error) error {
	defer s.sched.Refresh()
	if name == "" {
		return errors.New("no slot is named")
	}
	st, err := s.held.Load().a.store()
	if err != nil {
		return err
	}
	sl, err := st.FindSlot(name)
	if err != nil {
		return err
	}
	return do(sl)
}

// switchTo is onSlot for a switch, with what follows one.
func (s *service) switchTo(ctx context.Context, name string, do func(*store.Slot) (from, to *store.Generation, err error)) error {
	return s.onSlot(name, func(sl *store.Slot) error {
		from, to, err := do(sl)
		var unrecorded *store.RecordError
		if errors.As(err, &unrecorded) {
			s.log.Warn("it is active, but that could not be recorded", "error", err)
		} else if err != nil {
			return err
		}
		if from == nil || from.Name != to.Name {
			s.held.Load().a.ldconfigAfter(ctx, sl)
			s.log.Info("switched on the status page", "slot", sl.Name(), "to", to.Name)
		}
		return nil
	})
}

// maxMarked bounds how many files are looked at for a mark.
const maxMarked = 10000

// diskMark is another when something that the state shows was changed in ROOT: of the
// files and directories that change with it, the times and sizes.
func diskMark(root string) string {
	var b strings.Builder
	for _, pattern := range []string{"*.json", "*.jsonl", "slots/*", "slots/*/current", "slots/*/*.json", "slots/*/runs", "slots/*/generations", "tarballs/*", "spool/*"} {
		names, err := fs.Glob(os.DirFS(root), pattern)
		if err != nil || len(names) > maxMarked {
			continue
		}
		for _, name := range names {
			fi, err := os.Lstat(filepath.Join(root, name))
			if err != nil || name == memoryName {
				continue
			}
			fmt.Fprintf(&b, "%s %d %d\n", name, fi.Size(), fi.ModTime().UnixNano())
		}
	}
	return b.String()
}
