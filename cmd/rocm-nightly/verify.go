package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
	"github.com/rocm-nightly/rocm-nightly/store"
	"github.com/rocm-nightly/rocm-nightly/update"
)

type verifyOptions struct {
	slot    string
	version string
	fast    bool
	repair  bool
}

func (a *app) verifyCmd() *cobra.Command {
	var o verifyOptions
	c := &cobra.Command{
		Use:   "verify [T]",
		Short: "Compare what is installed with what was, and mend it",
		Long: `Compare every file of what is installed with its manifest: content, size, mode,
time, links, and what is missing. Without T every generation of every slot is
compared, with T (a target or slot, see status) those of that slot. Nothing is
locked or changed, and no network is asked. What is not listed, such as
__pycache__, is named and left alone. Exit code 1 says that something is damaged.

--fast reads only files whose size, time or inode has changed since they were
installed or last verified.

--repair writes the damaged files anew, each under another name first, and never
into a file that is there: from another generation that has an equal file that is
whole, from the kept tarball or download, or from AMD, if the release is still
listed and its bytes are the same. What is in use stays in use.`,
		Example: "  rocm-nightly verify\n  rocm-nightly verify gfx1151 --fast\n  rocm-nightly verify --version 10.2.0a20260930 --repair",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := emptyFlag(cmd, "version"); err != nil {
				return err
			}
			if len(args) > 0 {
				if o.slot = args[0]; o.slot == "" {
					return usage(errors.New("verify: T is empty: name a target or slot, or leave it out"))
				}
			}
			return a.verify(cmd.Context(), o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.version, "version", "", "compare this `version` or generation alone")
	f.BoolVar(&o.fast, "fast", false, "read only what has another size, time or inode than before")
	f.BoolVar(&o.repair, "repair", false, "write what is damaged anew")
	a.jsonFlag(c)
	return c
}

// verifyReport is the JSON form of the verb.
type verifyReport struct {
	Schema      int                   `json:"schema"`
	OK          bool                  `json:"ok"` // nothing is damaged, any more
	Generations []*store.Verification `json:"generations"`
	Repairs     []*update.Repaired    `json:"repairs,omitempty"`
	Broken      []string              `json:"broken,omitempty"` // slots whose current leads nowhere, and why
	Exit        int                   `json:"exit"`
}

func (a *app) verify(ctx context.Context, o verifyOptions) error {
	st, err := a.store()
	if err != nil {
		return err
	}
	gens, err := st.VerifyTargets(o.slot, o.version)
	if err != nil {
		return err
	}
	p := a.newProgress(a.stderr)
	rep, err := a.verified(ctx, st, gens, o, p)
	p.close()
	if err != nil {
		return err
	}
	rep.Broken = brokenSlots(st, gens)
	rep.OK = len(rep.Broken) == 0
	for _, v := range rep.Generations {
		rep.OK = rep.OK && v.OK()
	}
	if !rep.OK {
		rep.Exit = update.ExitFailed
	}
	a.code = rep.Exit
	if a.json {
		a.printJSON(rep)
		return nil
	}
	a.printVerified(rep, o)
	return nil
}

// verified verifies, and repairs if that is asked for.
func (a *app) verified(ctx context.Context, st *store.Store, gens []store.Generation, o verifyOptions, p *progress) (*verifyReport, error) {
	vo := store.VerifyOptions{
		Fast:  o.fast,
		Event: func(done, total int64) { p.event(update.Event{Stage: "verify", Done: done, Total: total}) },
	}
	rep := &verifyReport{Schema: 1, Generations: []*store.Verification{}}
	if !o.repair {
		all, err := st.Verify(ctx, gens, vo)
		rep.Generations = append(rep.Generations, all...)
		return rep, err
	}
	cfg, err := a.config()
	if err != nil {
		return nil, err
	}
	uo := a.updateOptions(cfg, "", p.event, a.log(p))
	uo.Store = st
	all, repairs, err := update.Repair(ctx, uo, gens, vo)
	rep.Generations = append(rep.Generations, all...)
	rep.Repairs = repairs
	return rep, err
}

// brokenSlots are those of the generations whose current leads nowhere.
func brokenSlots(st *store.Store, gens []store.Generation) []string {
	slots, err := st.Slots()
	if err != nil {
		return []string{err.Error()}
	}
	of := map[string]bool{}
	for _, g := range gens {
		of[path.Base(path.Dir(path.Dir(g.Dir)))] = true
	}
	var broken []string
	for _, sl := range slots {
		if !of[sl.Name()] {
			continue
		}
		if _, err := sl.Current(); errors.Is(err, store.ErrBroken) {
			broken = append(broken, err.Error())
		}
	}
	return broken
}

// maxNamed is how many damaged files of a generation are named to a person.
const maxNamed = 20

// printVerified tells a person.
func (a *app) printVerified(rep *verifyReport, o verifyOptions) {
	for _, r := range rep.Repairs {
		a.printRepaired(r)
	}
	for _, v := range rep.Generations {
		a.printVerification(v, o)
	}
	for _, b := range rep.Broken {
		fmt.Fprintln(a.stdout, printable(b))
	}
	if rep.Exit != 0 && !o.repair {
		fmt.Fprintf(a.stderr, "  hint: mend it with: rocm-nightly verify %s--repair\n", joined(o.slot, o.version))
	}
}

// joined is what of the command line says which generations are meant.
func joined(slot, version string) string {
	s := ""
	if slot != "" {
		s = slot + " "
	}
	if version != "" {
		s += "--version " + version + " "
	}
	return s
}

func (a *app) printVerification(v *store.Verification, o verifyOptions) {
	name := v.Slot + "/" + v.Generation
	if v.Active {
		name += " (active)"
	}
	if v.Gone {
		fmt.Fprintf(a.stdout, "%s: it was removed meanwhile\n", name)
		return
	}
	how := ""
	switch v.Method {
	case store.MethodSeal:
		how = ", by size, time and inode"
	case store.MethodManifest:
		how = ", by size and time alone: there is no seal to compare with (verify without --fast makes one)"
	}
	if v.OK() {
		fmt.Fprintf(a.stdout, "%s: %d files, %s: all right%s\n", name, v.Files, diskspace.Text(v.Bytes), how)
	} else {
		fmt.Fprintf(a.stdout, "%s: %d of its entries are damaged (%d files, %s%s)\n", name, len(v.Damage), v.Files, diskspace.Text(v.Bytes), how)
	}
	for i, d := range v.Damage {
		if i == maxNamed {
			fmt.Fprintf(a.stdout, "  … and %d more (all with --json)\n", len(v.Damage)-i)
			break
		}
		fmt.Fprintf(a.stdout, "  %s  %s: %s\n", strings.Join(d.What, ", "), printable(d.Path), printable(d.Detail))
		for _, other := range d.Shared {
			fmt.Fprintf(a.stdout, "    the same file: %s\n", printable(other))
		}
	}
	if n := len(v.Extra) + v.ExtraMore; n > 0 {
		fmt.Fprintf(a.stdout, "  not listed, and left alone: %s\n", extras(v.Extra, n))
	}
}

// extras names the first entries that are not listed.
func extras(names []string, n int) string {
	const few = 3
	s := printable(strings.Join(names[:min(few, len(names))], ", "))
	if n > few {
		s += fmt.Sprintf(" and %d more", n-few)
	}
	return s
}

// printRepaired says what was mended, from where, and what could not be.
func (a *app) printRepaired(r *update.Repaired) {
	name := r.Slot + "/" + r.Generation
	if r.Mended > 0 {
		fmt.Fprintf(a.stdout, "%s: mended %d entries", name, r.Mended)
		sep := ": "
		for _, f := range r.From {
			fmt.Fprintf(a.stdout, "%s%d files from %s", sep, f.Files, printable(f.Source))
			sep = ", "
		}
		fmt.Fprintln(a.stdout)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(a.stdout, "%s: %s\n", name, printable(n))
	}
}
