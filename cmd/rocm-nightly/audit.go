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
	refuse   string
	binaries bool
}

func (a *app) auditCmd() *cobra.Command {
	var o auditOptions
	c := &cobra.Command{
		Use:   "audit DIR",
		Short: "Prove a ROCm prefix right without a GPU",
		Long: `Look at a prefix (or any ROCm tree): libraries that resolve, valid ELF files,
GPU kernel archives, script interpreters, links, leaked builder paths, modes.
Nothing of the tree is executed. Exit 4 when a finding is fatal or required.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.audit(cmd.Context(), args[0], o) },
	}
	c.Flags().StringVar(&o.scope, "scope", "", "host: this machine's libraries and interpreters count; tree: they do not")
	c.Flags().StringVar(&o.refuse, "refuse", "", "regression, all or never")
	c.Flags().BoolVar(&o.binaries, "scan-binaries", false, "also search binaries for paths of the build machine (reads every byte)")
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
	report, err := audit.Run(ctx, dir, audit.Options{
		Scope: check.Audit.Scope, Profile: cfg.Repack.Profile, Allow: allowed(cfg.Audit), ScanBinaries: o.binaries,
	})
	if err != nil {
		return err
	}
	if a.json {
		a.printJSON(report)
	} else {
		report.Table(a.stdout)
	}
	if bad := report.Refused(nil, check.Audit.Refuse); len(bad) > 0 {
		a.code = update.ExitRefused
		return fmt.Errorf("audit %s: %w: %d findings that are fatal or required", dir, errAuditRefused, len(bad))
	}
	return nil
}
