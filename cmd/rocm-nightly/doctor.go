package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/audit/doctor"
	"github.com/rocm-nightly/rocm-nightly/internal/amd"
	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
	"github.com/rocm-nightly/rocm-nightly/update"
)

type doctorOptions struct {
	pid      int
	binaries string
	user     string
}

func (a *app) doctorCmd() *cobra.Command {
	var o doctorOptions
	c := &cobra.Command{
		Use:   "doctor [DIR|T] | doctor --pid N | doctor --binaries DIR | doctor -- CMD [ARG]...",
		Short: "Find out why ROCm does not work on this machine",
		Long: `Look at this machine: GPUs and what serves them, the driver, /dev/kfd and the
render nodes, memory, leftover variables, every ROCm there is and which of them
wins, what is installed and what it lacks. Each finding says what was looked at,
what is wrong, why it matters, and the command that puts it right here. Nothing
is changed or started. DIR is a ROCm tree to look at in place of what is
installed, T a target or slot.

  --pid N         which ROCm libraries a process maps, of which ROCm, and why
  -- CMD          the same for a command, which is not started
  --binaries DIR  programs and build directories that name one generation

Exit 0: nothing is broken, though there may be warnings and notes. 1: something
is. docs/doctor.md lists the checks.`,
		Args: func(cmd *cobra.Command, args []string) error { return doctorArgs(cmd, args, o) },
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.doctor(cmd.Context(), o, args, cmd.ArgsLenAtDash() == 0)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return a.slotNames(len(args)), cobra.ShellCompDirectiveDefault
		},
	}
	f := c.Flags()
	f.IntVar(&o.pid, "pid", 0, "look at the process of this `number`")
	f.StringVar(&o.binaries, "binaries", "", "look for programs below this `directory` that name a generation")
	f.StringVar(&o.user, "user", "", "whose access to the GPUs is judged: a `name` of /etc/passwd")
	c.MarkFlagDirname("binaries")
	a.jsonFlag(c)
	return c
}

// doctorArgs takes one of the four forms.
func doctorArgs(cmd *cobra.Command, args []string, o doctorOptions) error {
	if err := emptyFlag(cmd, "binaries", "user"); err != nil {
		return err
	}
	forms := 0
	for _, used := range []bool{o.binaries != "", cmd.Flags().Changed("pid"), len(args) > 0} {
		if used {
			forms++
		}
	}
	switch {
	case cmd.Flags().Changed("pid") && o.pid < 1:
		return fmt.Errorf("--pid %d is not the number of a process", o.pid)
	case forms > 1:
		return errors.New("a directory, --pid, --binaries and a command are asked one at a time")
	case cmd.ArgsLenAtDash() > 0 || cmd.ArgsLenAtDash() < 0 && len(args) > 1:
		return errors.New("one directory or slot; a command stands behind --")
	}
	return nil
}

func (a *app) doctor(ctx context.Context, o doctorOptions, args []string, command bool) error {
	machine := a.machine
	if machine == nil {
		machine = doctor.This
	}
	opts, err := a.doctorOptions(o, args, command)
	if err != nil {
		return err
	}
	var report *doctor.Report
	switch s := machine(); {
	case o.pid > 0:
		report, err = doctor.Process(ctx, s, opts, o.pid)
	case o.binaries != "":
		if o.binaries, err = filepath.Abs(o.binaries); err == nil {
			report, err = doctor.Binaries(ctx, s, opts, o.binaries)
		}
	case command:
		if args = slices.Clone(args); strings.Contains(args[0], "/") {
			args[0], err = filepath.Abs(args[0])
		}
		if err == nil {
			report, err = doctor.Command(ctx, s, opts, args)
		}
	default:
		report, err = doctor.Run(ctx, s, opts)
	}
	if err != nil {
		return err
	}
	if a.json {
		a.printJSON(report)
	} else {
		report.Table(a.stdout) // run sees what went wrong with the writing
	}
	if !report.OK() {
		a.code = update.ExitFailed
	}
	return nil
}

// doctorOptions takes what it can from the configuration: a machine whose config
// is broken needs a doctor too.
func (a *app) doctorOptions(o doctorOptions, args []string, command bool) (doctor.Options, error) {
	data := amd.Builtin()
	opts := doctor.Options{Table: gfx.New(data), User: o.user, Root: a.rootFlag}
	cfg, err := a.config()
	if err != nil {
		a.log(a.stderr).Warn("the config could not be read; looking without it", "error", err)
		if opts.Root == "" {
			opts.Root = a.defaultRoot()
		}
	} else {
		data, opts.Table, opts.Root, opts.Links = cfg.AMD, cfg.GFX, cfg.Root, configuredLinks(cfg)
	}
	for slug := range data.Families {
		opts.Families = append(opts.Families, slug)
	}
	if opts.Root != "" {
		if opts.Root, err = filepath.Abs(opts.Root); err != nil {
			return opts, err
		}
	}
	if a.rootFlag == "" && !isDir(filepath.Join(opts.Root, "slots")) && isDir(systemRoot+"/slots") {
		opts.Root = systemRoot // installed for everybody, and asked by a user
	}
	if len(args) == 0 || command {
		return opts, nil
	}
	return a.doctorTarget(opts, args[0])
}

// doctorTarget finds what an argument means: a directory, else a slot.
func (a *app) doctorTarget(opts doctor.Options, arg string) (doctor.Options, error) {
	if strings.Contains(arg, "/") || isDir(arg) {
		dir, err := filepath.Abs(arg)
		if err == nil && a.machine == nil && !isDir(dir) {
			err = usage(fmt.Errorf("doctor: %s is not a directory", arg))
		}
		opts.Dir = dir
		return opts, err
	}
	st, err := a.store()
	if err != nil {
		return opts, err
	}
	sl, err := st.FindSlot(arg)
	if err != nil {
		return opts, err
	}
	opts.Slot = sl.Name()
	return opts, nil
}

// configuredLinks are the links that installs ask for. Which slot auto is, the
// machine decides.
func configuredLinks(cfg *config.Config) []doctor.Link {
	var links []doctor.Link
	for _, in := range cfg.Installs {
		if in.Link == "" {
			continue
		}
		l := doctor.Link{Path: in.Link}
		if name, ok := cfg.GFX.Canonical(in.Target); ok && in.Target != gfx.Auto {
			l.Slot = in.Channel + "-" + name
		}
		links = append(links, l)
	}
	return links
}

func isDir(name string) bool {
	fi, err := os.Stat(name)
	return err == nil && fi.IsDir()
}

// slotNames are what completion offers for the first argument.
func (a *app) slotNames(args int) []string {
	st, err := a.store()
	if err != nil || args > 0 {
		return nil
	}
	slots, err := st.Slots()
	if err != nil {
		return nil
	}
	var names []string
	for _, s := range slots {
		names = append(names, s.Name())
	}
	return names
}
