package main

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/internal/amd"
	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
)

// completions gives flags and arguments what a shell may offer for them: names that
// are known without the network. Nothing is offered where the config or the store
// cannot be read; the verb itself says why.
func (a *app) completions(c *cobra.Command) {
	for name, offer := range map[string]func() []string{"arch": targetNames, "channel": channelNames} {
		if c.Flags().Lookup(name) == nil {
			continue
		}
		// It fails for a flag that is not there, or has one already.
		_ = c.RegisterFlagCompletionFunc(name, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return offer(), cobra.ShellCompDirectiveNoFileComp
		})
	}
	if offer, ok := a.arguments()[c.Name()]; ok && c.ValidArgsFunction == nil {
		c.ValidArgsFunction = offer
	}
	for _, sub := range c.Commands() {
		a.completions(sub)
	}
}

// arguments says what the arguments of each verb may be.
func (a *app) arguments() map[string]cobra.CompletionFunc {
	slot := a.offer(cobra.ShellCompDirectiveNoFileComp, func(args []string) []string { return a.slotNames(len(args)) })
	slotOrPath := a.offer(cobra.ShellCompDirectiveDefault, func(args []string) []string { return a.slotNames(len(args)) })
	version := a.offer(cobra.ShellCompDirectiveNoFileComp, a.slotsAndVersions)
	target := a.offer(cobra.ShellCompDirectiveNoFileComp, func([]string) []string { return targetNames() })
	return map[string]cobra.CompletionFunc{
		"rollback": slot, "prune": slot, "verify": slot, "env": slot, "lease": slot, "hold": slot, "unhold": slot, "uninstall": slot,
		"link": slotOrPath, "tarball": slotOrPath, "exec": slotOrPath, "audit": slotOrPath,
		"use": version, "remove": version, "activate": version,
		"fetch": target, "lock": target,
		"bump": a.offer(cobra.ShellCompDirectiveNoFileComp, a.bumpNames),
	}
}

// offer makes a completion function of what the arguments before lead to. One that
// was given is not offered again.
func (a *app) offer(files cobra.ShellCompDirective, names func(args []string) []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return slices.DeleteFunc(names(args), func(n string) bool { return slices.Contains(args, n) }), files
	}
}

// slotsAndVersions are what [T] VERSION may be: T or a version, then a version of T.
func (a *app) slotsAndVersions(args []string) []string {
	if len(args) > 1 {
		return nil
	}
	st, err := a.store()
	if err != nil {
		return nil
	}
	names := a.slotNames(len(args))
	slots, err := st.Slots()
	if len(args) == 1 {
		one, findErr := st.FindSlot(args[0])
		if findErr != nil {
			return nil
		}
		slots, err = append(slots[:0:0], one), nil
	}
	if err != nil {
		return nil
	}
	for _, sl := range slots {
		gens, err := sl.Generations()
		if err != nil {
			continue
		}
		for _, g := range gens {
			if !slices.Contains(names, g.Name) {
				names = append(names, g.Name)
			}
		}
	}
	return names
}

// bumpNames are those of the config.
func (a *app) bumpNames([]string) []string {
	cfg, err := a.config()
	if err != nil {
		return nil
	}
	var names []string
	for _, b := range cfg.Bump {
		names = append(names, b.Name)
	}
	return names
}

// targetNames are what --arch takes and is easily typed: gfx names and families. The
// names of products have blanks.
func targetNames() []string {
	d := amd.Builtin()
	names := slices.Sorted(maps.Keys(d.Targets))
	return append(names, append(slices.Sorted(maps.Keys(d.Families)), gfx.Auto, gfx.Multiarch)...)
}

func channelNames() []string { return slices.Sorted(maps.Keys(amd.Builtin().Channels)) }
