package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/audit"
	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
	"github.com/rocm-nightly/rocm-nightly/internal/hostpkg"
	"github.com/rocm-nightly/rocm-nightly/internal/secret"
	"github.com/rocm-nightly/rocm-nightly/repack"
	"github.com/rocm-nightly/rocm-nightly/store"
	"github.com/rocm-nightly/rocm-nightly/unpack"
	"github.com/rocm-nightly/rocm-nightly/update"
)

type updateOptions struct {
	arch           []string
	version        string
	dryRun         bool
	noInstall      bool
	noBump         bool
	acceptNewBytes bool
	retry          bool
	ledger         string
	trust          []string
	outputs        bool
}

func (a *app) updateCmd() *cobra.Command {
	var o updateOptions
	c := &cobra.Command{
		Use:   "update",
		Short: "Install or update the newest admissible release, and bump its pins",
		Long: `Bring every install of the config (or each --arch) up to the newest admissible
release: download, verify, unpack, patch, wrap, audit, switch, and bump the
pins of the repositories in the config. Up to date means no download and no
change. Whatever fails, what was installed stays in use.`,
		Example: "  rocm-nightly update --arch gfx1151\n  rocm-nightly update --dry-run\n  rocm-nightly update --arch \"RX 7900 XTX\" --version 10.2.0a20260930",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := emptyFlag(cmd, "version", "ledger"); err != nil {
				return err
			}
			return a.update(cmd.Context(), o)
		},
	}
	f := c.Flags()
	f.StringArrayVar(&o.arch, "arch", nil, "a GPU `target`, family or product in place of the config's installs; may be given again")
	f.StringVar(&o.version, "version", "", "take this `version` and no other")
	f.BoolVar(&o.dryRun, "dry-run", false, "say what would be done, and what it takes of the disk, and do nothing")
	f.BoolVar(&o.noInstall, "no-install", false, "verify, repack and audit for the pins' sake, but install nothing")
	f.BoolVar(&o.noBump, "no-bump", false, "leave the repositories alone")
	f.BoolVar(&o.acceptNewBytes, "accept-new-bytes", false, "take new bytes under a name that is known with others")
	f.BoolVar(&o.retry, "retry", false, "try nights again that failed before (status lists them)")
	f.StringVar(&o.ledger, "ledger", "", "remember verified tarballs in this `file`, not in the store's ledger")
	trustFlag(c, &o.trust)
	outputsFlag(c, &o.outputs)
	a.jsonFlag(c)
	return c
}

func (a *app) update(ctx context.Context, o updateOptions) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	if len(cfg.Installs) == 0 && len(o.arch) == 0 {
		return usage(errors.New("update: the config has no installs, and --arch names none"))
	}
	p := a.newProgress(a.stderr)
	rep, err := a.updateOnce(ctx, cfg, o, p, a.log(p))
	p.close()
	if err != nil {
		a.couldNotRun(ctx, cfg, o, err)
		return err
	}
	a.code = rep.Exit
	if !o.dryRun {
		a.after(ctx, cfg, rep, true)
	}
	if a.json {
		a.printJSON(rep)
	} else {
		a.printUpdate(rep)
	}
	if o.outputs {
		if err := a.githubOutput(rep.Bumps); err != nil {
			return errors.Join(a.updateErrors(rep), err)
		}
	}
	return a.updateErrors(rep)
}

// updateOnce is one run of the pipeline, as the verb and the daemon do it.
func (a *app) updateOnce(ctx context.Context, cfg *config.Config, o updateOptions, p *progress, log *slog.Logger) (*update.Report, error) {
	st, err := a.store()
	if err != nil {
		return nil, err
	}
	uo := a.updateOptions(cfg, o.version, p.event, log)
	uo.Store = st
	if o.ledger != "" {
		uo.Ledger = store.OpenLedger(o.ledger)
	}
	if len(o.arch) > 0 {
		uo.Installs = archInstalls(cfg, o.arch)
	}
	if uo.Trust, err = trusted(uo.Trust, o.trust); err != nil {
		return nil, usage(err)
	}
	uo.Retry = o.retry
	uo.DryRun, uo.NoInstall, uo.NoBump, uo.AcceptNewBytes = o.dryRun, o.noInstall, o.noBump, o.acceptNewBytes
	return update.Run(ctx, uo)
}

// trustFlag is --trust of the verbs that propose.
func trustFlag(c *cobra.Command, to *[]string) {
	c.Flags().StringArrayVar(to, "trust", nil, "a `file` or URL of a ledger or a rocm-nightly.lock whose digests must hold, as trust in the config; may be given again")
}

// trusted adds the places of --trust, URLs or paths that may be relative.
func trusted(places []update.Place, flags []string) ([]update.Place, error) {
	places = slices.Clone(places)
	for _, at := range flags {
		if at == "" {
			return nil, errors.New("--trust is empty: give it a value, or leave it out")
		}
		if !strings.Contains(at, "://") {
			path, err := filepath.Abs(at)
			if err != nil {
				return nil, err
			}
			at = path
		}
		places = append(places, update.Place{URL: at})
	}
	return places, nil
}

// updateOptions is the config as the pipeline wants it, for the newest
// admissible version or for the one that is named.
func (a *app) updateOptions(cfg *config.Config, wanted string, event func(update.Event), log *slog.Logger) update.Options {
	uo := updateConfig(cfg, wanted)
	dir, _ := os.Getwd() // without it, files are told by their names alone
	for i := range uo.Bumps {
		uo.Bumps[i].Config = bumpKey(a.read, dir, i)
	}
	if len(cfg.Bump) > 0 { // tokens are about to be read
		if err := secret.KeepOutOfCores(); err != nil {
			log.Warn("a core of this process could hold tokens", "error", err)
		}
	}
	uo.Log, uo.Event, uo.Kernel = log, event, kernelRelease()
	uo.Smoke, uo.Tool = cfg.Health.Smoke, tool()
	uo.Health = update.Health{Command: cfg.Health.Command, Timeout: time.Duration(cfg.Health.Timeout), Sandbox: cfg.Health.Sandbox}
	uo.Program = version().judge()
	uo.Host, uo.Owner = a.updateHost(cfg), hostpkg.Owners{}.Of
	uo.Client = func(event func(fetch.Event)) (*fetch.Client, error) { return a.fetchClient(cfg, event) }
	return uo
}

// kernelRelease is the release of the running kernel, "" if it does not say.
func kernelRelease() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

// archInstalls makes installs of --arch: those of the config that name the
// same target keep their settings.
func archInstalls(cfg *config.Config, arch []string) []update.Install {
	var out []update.Install
	for _, target := range arch {
		out = append(out, updateInstall(cfg, archInstall(cfg, target)))
	}
	return out
}

// archInstall finds the install that means the same target, else the one of
// auto, whose settings are those of this machine.
func archInstall(cfg *config.Config, target string) config.Install {
	in := config.Install{Target: target, Channel: "nightly"}
	want, known := cfg.GFX.Canonical(target) // neither auto nor a mistyped name is
	for _, c := range cfg.Installs {
		name, _ := cfg.GFX.Canonical(c.Target)
		if known && name == want {
			return c
		}
		if c.Target == gfx.Auto {
			in = c
			in.Target = target
		}
	}
	return in
}

// updateConfig translates the config for the pipeline.
func updateConfig(cfg *config.Config, version string) update.Options {
	o := update.Options{
		Channels: map[string]update.Channel{}, GFX: cfg.GFX, Version: version,
		Lock: update.Place{URL: cfg.Policy.Lock, Key: cfg.Policy.LockKey}, Verify: cfg.Policy.Verify, Quorum: cfg.Policy.Quorum,
		Policy: update.Policy{
			Prefer: cfg.Policy.Prefer, Series: cfg.Policy.Series, MinAge: time.Duration(cfg.Policy.MinAge),
			Settle: time.Duration(cfg.Policy.Settle), Deny: slices.Concat(cfg.Policy.Deny, cfg.AMD.Patterns()), Multiarch: cfg.Policy.Multiarch, AllowDowngrade: cfg.Policy.AllowDowngrade,
		},
	}
	for name, ch := range cfg.Channels {
		known := cfg.AMD.Channels[name]
		o.Channels[name] = update.Channel{
			Indexes:    sources(ch, version, cfg.Policy.Series, false),
			StaleAfter: cfg.Policy.StaleAfter.Or(known.StaleAfter), Retention: time.Duration(known.Retention) * 24 * time.Hour,
		}
	}
	for _, in := range cfg.Installs {
		o.Installs = append(o.Installs, updateInstall(cfg, in))
	}
	for _, t := range cfg.Trust {
		o.Trust = append(o.Trust, update.Place{URL: t.URL, Key: t.Key})
	}
	for _, b := range cfg.Bump {
		o.Bumps = append(o.Bumps, updateBump(b))
	}
	return o
}

func updateInstall(cfg *config.Config, in config.Install) update.Install {
	keep := cfg.KeepOf(in)
	return update.Install{
		Target: in.Target, Channel: in.Channel, Link: in.Link, Keep: keep.Last, KeepDays: keep.Days, KeepBytes: int64(keep.Bytes),
		KeepTarballs: cfg.KeepTarballsOf(in), Activate: cfg.ActivateOf(in),
		Repack: shared(repackOptions(cfg.RepackOf(in), cfg.AuditOf(in), cfg.Unpack), cfg.Dedup), Env: cfg.EnvOf(in),
	}
}

// shared says how files are shared between generations.
func shared(o repack.Options, dedup string) repack.Options {
	o.Dedup = dedup
	return o
}

func repackOptions(r config.Repack, au config.Audit, u config.Unpack) repack.Options {
	o := repack.Options{
		Profile: r.Profile, RunPath: r.RunPath, Interpreter: r.Interpreter, InterpreterPath: r.InterpreterPath, AddRPath: r.AddRPath, Omit: r.Leaves(),
		Limits:       unpack.Limits{MaxBytes: int64(u.MaxBytes), MaxEntries: u.MaxEntries, MaxRatio: u.MaxRatio},
		Decompressor: u.Decompressor,
		Audit:        repack.AuditOptions{Scope: au.Scope, Refuse: au.Refuse, Allow: allowed(au)},
	}
	return o
}

func allowed(au config.Audit) []audit.Allow {
	var allow []audit.Allow
	for _, al := range au.Allow {
		allow = append(allow, audit.Allow{Rule: al.Rule, Path: al.Path})
	}
	return allow
}

// printUpdate tells a person what a run did.
func (a *app) printUpdate(rep *update.Report) {
	for _, out := range rep.Installs {
		fmt.Fprintf(a.stdout, "%s: %s\n", out.Install, out.Message)
		if v := out.Verified; v != nil {
			fmt.Fprintf(a.stdout, "  verified %s (%d bytes) against %s\n", v.SRI, v.Size, strings.Join(v.Against, ", "))
		}
		if re := out.Reused; re != nil && re.Files > 0 {
			fmt.Fprintf(a.stdout, "  shared %s with %s\n", diskspace.Text(re.Bytes), sharedWith(re))
		}
		if au := out.Audit; au != nil {
			fmt.Fprintf(a.stdout, "  audit: %d fatal, %d required, %d warnings\n", au.Fatal, au.Required, au.Warnings)
		}
		for _, c := range out.Health {
			fmt.Fprintf(a.stdout, "  health command %s the switch: %s\n", c.Phase, c.Status)
		}
		for _, p := range out.PassedOver {
			fmt.Fprintf(a.stdout, "  passed over %s\n", p.Version)
		}
		if s := out.Smoke; s != nil {
			fmt.Fprintf(a.stdout, "  smoke: %d passed, %d failed, %d not there, %d not run\n", s.Passed, s.Failed, s.NotThere, s.NotRun)
		}
	}
	a.printLinked(rep)
	a.printBumps(rep.Bumps)
	if terminal(a.stdout) && !rep.DryRun {
		a.printUsable(rep)
	}
}

// printUsable ends with the line that makes the new ROCm usable in this shell.
func (a *app) printUsable(rep *update.Report) {
	for _, out := range rep.Installs {
		if out.Prefix == "" || !out.Changed {
			continue
		}
		current := filepath.Join(filepath.Dir(filepath.Dir(out.Prefix)), "current")
		fmt.Fprintf(a.stdout, "\nto use it in this shell:\n  %s\n", sourceLine(a.getenv("SHELL"), current))
		return
	}
}

// sourceLine is what a user of shell types to get the environment of a prefix.
func sourceLine(shell, prefix string) string {
	verb, file := ".", "env.sh"
	switch name := filepath.Base(shell); name {
	case "fish", "nu":
		verb, file = "source", "env."+name
	case "csh", "tcsh":
		verb, file = "source", "env.csh"
	}
	path := filepath.Join(prefix, "etc", file)
	if strings.ContainsFunc(path, unquoted) {
		// Single quotes are the same in all these shells, and none is left in it.
		path = "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return verb + " " + path
}

// unquoted reports whether a character needs quotes in a shell.
func unquoted(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._+-", r))
}

// updateErrors prints what went wrong with single installs; the report has
// been printed and the exit code is set.
func (a *app) updateErrors(rep *update.Report) error {
	for _, out := range rep.Installs {
		if out.Err == nil {
			continue
		}
		a.fail(fmt.Errorf("update %s: %w", out.Install, out.Err))
	}
	a.failBumps(rep.Bumps)
	return nil
}
