package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	_ "time/tzdata" // zones of schedules, also where the system has none

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/internal/priority"
	"github.com/rocm-nightly/rocm-nightly/serve"
	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

func (a *app) daemonCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "daemon",
		Short: "Update on the config's schedule until told to stop",
		Long: `Update on the config's schedule until SIGTERM or SIGINT, one run at a time, look
at the indexes in between, and serve the status page. A run under way is told to
stop and waited for; a download goes on where it was at the next run. SIGHUP reads
the config again; one that is wrong changes nothing. See docs/daemon.md; on laptops
the systemd timer will do too.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.daemon(cmd.Context()) },
	}
}

// memoryName is the file in ROOT in which the daemon remembers its runs.
const memoryName = "daemon.json"

// service is the daemon as it runs: what was read of the config, and who is told.
type service struct {
	a     *app // as it was started
	log   *slog.Logger
	hub   *state.Hub
	held  atomic.Pointer[holding]
	sched *serve.Daemon
}

// holding is a config that holds, with the app that has read it.
type holding struct {
	a   *app
	cfg *config.Config
}

func (a *app) daemon(ctx context.Context) error {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	cfg, err := a.config()
	if err != nil {
		return err
	}
	st, err := a.store()
	if err != nil {
		return err
	}
	s := &service{a: a, log: a.log(a.stderr), hub: new(state.Hub)}
	jobs, err := s.load(a, cfg)
	if err != nil {
		return usage(err)
	}
	token, err := serveToken(cfg, a.getenv)
	if err != nil {
		return usage(err)
	}
	s.hub.Update(func(now *state.State) { now.Root = st.Root() })
	if s.sched, err = serve.New(jobs, s.options(st.Root(), token != "", reloads(ctx, hup))); err != nil {
		return usage(err)
	}
	page := s.page(cfg, token)
	if err := page.Check(); cfg.Serve.Listen != listenOff && err != nil {
		return usage(err)
	}
	only, err := alone(st.Root())
	if err != nil {
		return err
	}
	defer only.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served, err := s.open(ctx, page)
	if err != nil {
		return err
	}
	err = s.sched.Run(ctx)
	cancel()
	<-served
	return err
}

// reloads passes SIGHUP on.
func reloads(ctx context.Context, hup <-chan os.Signal) <-chan struct{} {
	out := make(chan struct{})
	go func() {
		for {
			select {
			case <-hup:
				select {
				case out <- struct{}{}:
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// options is what the schedule needs of this machine.
func (s *service) options(root string, actions bool, reload <-chan struct{}) serve.Options {
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		s.log.Warn("what systemd says of its watchdog makes no sense: it is not told that all is well", "error", err)
	}
	b := version()
	return serve.Options{
		Log: s.log, Host: machineID(), Memory: root + "/" + memoryName, Watchdog: watchdog,
		Notify: func(state string) {
			// Outside systemd there is nobody to tell.
			_, _ = daemon.SdNotify(false, state)
		},
		Reloads: reload, Reload: s.reload, Hub: s.hub,
		Program: state.Program{Version: b.Version, Commit: b.Commit, Go: b.Go, Started: time.Now().UTC(), Loaded: time.Now().UTC(), Actions: actions},
		Snapshot: func(ctx context.Context, measure bool) (*state.State, error) {
			h := s.held.Load()
			return h.a.snapshot(ctx, h.cfg, measure)
		},
		Mark: func() string { return diskMark(root) },
	}
}

// machineID tells this host from others: machine-id(5), else its name. It is hashed,
// and never shown.
func machineID() string {
	f, err := os.Open("/etc/machine-id")
	if err == nil {
		defer f.Close()
		b, err := io.ReadAll(io.LimitReader(f, 64))
		if id := strings.TrimSpace(string(b)); err == nil && id != "" && id != "uninitialized" {
			return id
		}
	}
	name, _ := os.Hostname() // "" is a host, too
	return name
}

// load makes the jobs of a config that was read, and has it hold.
func (s *service) load(a *app, cfg *config.Config) ([]serve.Job, error) {
	if err := config.Together(wrongKeys(cfg)); err != nil {
		return nil, err
	}
	if len(cfg.Installs) == 0 {
		return nil, errors.New("daemon: the config has no installs: there is nothing to run")
	}
	jobs := s.jobs(a, cfg)
	s.held.Store(&holding{a, cfg})
	if err := priority.Set(cfg.Daemon.Priority); err != nil {
		s.log.Warn("it does not give way to others as daemon.priority asks", "error", err)
	}
	return jobs, nil
}

// reload reads the config again. What the page listens on, and where generations
// are, holds until the next start.
func (s *service) reload() ([]serve.Job, error) {
	fresh := s.a.again()
	cfg, err := fresh.config()
	if err != nil {
		return nil, err
	}
	was := s.held.Load().cfg
	if cfg.Root != was.Root {
		return nil, fmt.Errorf("root is %s now, and was %s: to move, start the daemon anew", cfg.Root, was.Root)
	}
	jobs, err := s.load(fresh, cfg)
	if err != nil {
		return nil, err
	}
	if fmt.Sprint(cfg.Serve) != fmt.Sprint(was.Serve) {
		s.log.Warn("serve has changed: the page takes that at the next start of the daemon")
	}
	return jobs, nil
}
