package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/audit"
	"github.com/rocm-nightly/rocm-nightly/audit/smoke"
	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
)

// smokedReport is the report of an audit that also started something.
type smokedReport struct {
	*audit.Report
	Smoke *smoke.Report `json:"smoke,omitempty"`
}

// smokeFlag gives a verb its --smoke, which may stand alone.
func smokeFlag(c *cobra.Command, mode *string) {
	c.Flags().StringVar(mode, "smoke", "", "also start programs, compile, and load libraries, in a cage: `cpu`, gpu, or auto (cpu, and gpu where there is one)")
	c.Flags().Lookup("smoke").NoOptDefVal = smoke.Auto
}

// smoke starts what --smoke asks for of the tree in dir, nil where it asks for
// nothing. arch is the target that the verb was told, if it was.
func (a *app) smoke(ctx context.Context, cfg *config.Config, dir, mode, arch string) (*smoke.Report, error) {
	switch mode {
	case "":
		return nil, nil
	case smoke.Auto, smoke.CPU, smoke.GPU:
	default:
		return nil, usage(fmt.Errorf("--smoke=%s is not one of %s, %s, %s", mode, smoke.CPU, smoke.GPU, smoke.Auto))
	}
	p := a.newProgress(a.stderr)
	defer p.close()
	log := a.log(p)
	var targets []string
	if name, ok := cfg.GFX.Canonical(arch); ok && gfx.IsTarget(name) {
		targets = []string{name} // of a family the tree itself tells
	}
	machine, err := cfg.GFX.Detect(os.DirFS("/sys"))
	if err != nil {
		log.Debug("no GPU of this machine", "because", err)
		machine = &gfx.Machine{}
	}
	return smoke.Run(ctx, dir, smoke.Options{
		Mode: mode, Targets: targets, Machine: machine, GFX: cfg.GFX,
		Event: func(e smoke.Event) {
			log.Debug("trying", "check", e.Check, "environment", e.Environment, "target", e.Target)
		},
	})
}
