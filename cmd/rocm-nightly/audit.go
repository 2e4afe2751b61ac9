package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/audit"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// errAuditRefused is the error of an audit that found too much.
var errAuditRefused = errors.New("the audit refused it")

type auditOptions struct {
	scope    string
	arch     string
	glibc    string
	glibcxx  string
	schema   bool
	refuse   string
	binaries bool
	smoke    string
}

func (a *app) auditCmd() *cobra.Command {
	var o auditOptions
	c := &cobra.Command{
		Use:   "audit DIR",
		Short: "Prove a ROCm prefix right without a GPU",
		Long: `Look at a prefix (or any ROCm tree): libraries that resolve
and the versions of their symbols, valid ELF files, kernels of the target, device
libraries, script interpreters, links, leaked builder paths, modes, wrappers,
licenses. Nothing of the tree is executed, unless --smoke asks for it: then
programs are started, HIP and OpenCL compiled and libraries loaded in a cage, in an
empty environment and beside another ROCm, and kernels run on the GPU where there
is one. Exit 4 when a finding is fatal or required, or something that was tried
failed. docs/audit.md describes each rule, docs/smoke.md what --smoke tries;
--schema prints the JSON Schema of --json.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.schema {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.schema {
				fmt.Fprint(a.stdout, audit.JSONSchema())
				return nil
			}
			return a.audit(cmd.Context(), args[0], o)
		},
	}
	c.Flags().StringVar(&o.scope, "scope", "", "host: this machine's libraries and interpreters count; tree: they do not")
	c.Flags().StringVar(&o.arch, "arch", "", "the GPU that kernels are looked for, and that --smoke compiles for, such as gfx1151 (default: what manifest.json names)")
	c.Flags().StringVar(&o.glibc, "glibc", "", "the oldest glibc that the tree is to run with, such as 2.28, with the libstdc++ of its day")
	c.Flags().StringVar(&o.glibcxx, "glibcxx", "", "the oldest libstdc++ that it is to run with, such as 3.4.25")
	c.Flags().BoolVar(&o.schema, "schema", false, "print the JSON Schema of --json, and look at nothing")
	c.Flags().StringVar(&o.refuse, "refuse", "", "regression, all or never")
	c.Flags().BoolVar(&o.binaries, "scan-binaries", false, "also search binaries for paths of the build machine (reads every byte)")
	smokeFlag(c, &o.smoke)
	a.jsonFlag(c)
	return c
}

func (a *app) audit(ctx context.Context, dir string, o auditOptions) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	check := *cfg
	if o.scope != "" {
		check.Audit.Scope = o.scope
	}
	if o.refuse != "" {
		check.Audit.Refuse = o.refuse
	}
	if err := check.Validate(); err != nil {
		return usage(err)
	}
	opts := audit.Options{
		Scope: check.Audit.Scope, Profile: cfg.Repack.Profile, Allow: allowed(cfg.Audit), ScanBinaries: o.binaries,
		Target: o.arch, GLIBC: o.glibc, GLIBCXX: o.glibcxx,
	}
	if o.arch != "" {
		target, ok := cfg.GFX.Canonical(o.arch)
		if !ok {
			return usage(fmt.Errorf("unknown target %q: use one such as gfx1151", o.arch))
		}
		opts.Target = target
	}
	if err := opts.Check(); err != nil {
		return usage(err)
	}
	report, err := audit.Run(ctx, dir, opts)
	if err != nil {
		return err
	}
	tried, err := a.smoke(ctx, cfg, dir, o.smoke, o.arch)
	if err != nil {
		return err
	}
	if a.json {
		a.printJSON(smokedReport{report, tried})
	} else {
		report.Table(a.stdout)
		if tried != nil {
			tried.Table(a.stdout)
		}
	}
	if tried != nil && tried.Counts.Failed > 0 {
		a.code = update.ExitRefused
		return fmt.Errorf("audit %s: %w: %d of what was tried failed", dir, errAuditRefused, tried.Counts.Failed)
	}
	if bad := report.Refused(nil, check.Audit.Refuse); len(bad) > 0 {
		a.code = update.ExitRefused
		return fmt.Errorf("audit %s: %w: %d findings that are fatal or required", dir, errAuditRefused, len(bad))
	}
	return nil
}
