package main

import (
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/store"
)

type leaseOptions struct {
	version string
	pid     int
	list    bool
	release bool
}

func (a *app) leaseCmd() *cobra.Command {
	var o leaseOptions
	c := &cobra.Command{
		Use:   "lease [T]",
		Short: "Print where the active generation is, and keep it while a process lives",
		Long: `Print the directory of the generation that is active now, and keep that generation
for as long as a process lives: what is built with it is built with one compiler,
whatever update, rollback and prune do meanwhile. The process is the one that has
started this program, a shell say; where that ends at once, as in a pipe, name the
right one with --pid $$. T is a target or slot; it may be left out where there is
one slot. --release ends it before the process does, --list shows all.`,
		Example: "  ROCM=$(rocm-nightly lease) && make CXX=\"$ROCM/bin/hipcc\"\n" +
			"  rocm-nightly lease gfx1151 --version 10.2.0a20260930 --pid $$\n" +
			"  rocm-nightly lease --list",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := emptyFlag(cmd, "version"); err != nil {
				return err
			}
			if o.list && o.release || (o.list || o.release) && o.version != "" {
				return usage(errors.New("lease: --list, --release and --version exclude each other"))
			}
			if o.list && cmd.Flags().Changed("pid") {
				return usage(errors.New("lease: --list shows those of all processes: leave --pid out"))
			}
			if !cmd.Flags().Changed("pid") && !o.list {
				var err error
				if o.pid, err = leaser(os.Getppid()); err != nil {
					return err
				}
			} else if o.pid < 1 && !o.list {
				return usage(fmt.Errorf("lease: --pid %d is no process", o.pid))
			}
			switch {
			case o.list:
				return a.listLeases(args)
			case o.release:
				return a.releaseLeases(args, o.pid)
			}
			return a.lease(cmd, args, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.version, "version", "", "this generation, by its name or version, and not the active one")
	f.IntVar(&o.pid, "pid", 0, "keep it for this `process`, one of your own, and not for the one that runs this program")
	f.BoolVar(&o.list, "list", false, "show who has leased what")
	f.BoolVar(&o.release, "release", false, "end the leases of the process")
	a.jsonFlag(c)
	return c
}

// leaser is the process that wants the lease when none is named: the parent, but
// not one that lives as long as the machine.
func leaser(parent int) (int, error) {
	if parent <= 1 {
		return 0, usage(errors.New("lease: which process is to have it cannot be seen: name it with --pid"))
	}
	return parent, nil
}

// leased is the JSON form of a lease that was taken.
type leased struct {
	Schema int         `json:"schema"`
	Prefix string      `json:"prefix"` // the generation, not current
	Lease  store.Lease `json:"lease"`
}

func (a *app) lease(cmd *cobra.Command, args []string, o leaseOptions) error {
	sl, err := a.usableSlot(argOr(args), systemRoot)
	if err != nil {
		return err
	}
	l, g, err := sl.Lease(cmd.Context(), o.version, o.pid)
	if err != nil {
		return err
	}
	if a.json {
		a.printJSON(leased{1, g.Dir, *l})
		return nil
	}
	fmt.Fprintln(a.stdout, g.Dir)
	return nil
}

// argOr is the one argument, "" if there is none.
func argOr(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// leaseStore is the store that args mean, and the name of the slot, "" for all.
func (a *app) leaseStore(args []string) (*store.Store, string, error) {
	if len(args) > 0 {
		sl, err := a.usableSlot(args[0], systemRoot)
		if err != nil {
			return nil, "", err
		}
		return sl.Store(), sl.Name(), nil
	}
	// Any slot tells which store it is; without one there are no leases either.
	if sl, err := a.usableSlot("", systemRoot); err == nil {
		return sl.Store(), "", nil
	}
	st, err := a.store()
	return st, "", err
}

// leaseList is the JSON form of all leases.
type leaseList struct {
	Schema int            `json:"schema"`
	Leases []store.Leased `json:"leases"`
}

// released is the JSON form of leases that were ended.
type released struct {
	Schema   int `json:"schema"`
	Released int `json:"released"`
}

func (a *app) listLeases(args []string) error {
	st, slot, err := a.leaseStore(args)
	if err != nil {
		return err
	}
	all, err := st.Leases()
	if err != nil {
		return err
	}
	rep := leaseList{1, []store.Leased{}}
	for _, l := range all {
		if slot == "" || l.Slot == slot {
			rep.Leases = append(rep.Leases, l)
		}
	}
	if a.json {
		a.printJSON(rep)
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, l := range rep.Leases {
		what := string(l.State)
		if l.State == store.LeaseUnknown {
			what = "not seen from here: of " + l.Host
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\tuser %d\tsince %s\t%s\n", l.Slot, l.Generation, l.PID, printable(l.Program), l.UID, l.Since.Local().Format("2006-01-02 15:04"), printable(what))
	}
	return w.Flush()
}

func (a *app) releaseLeases(args []string, pid int) error {
	st, slot, err := a.leaseStore(args)
	if err != nil {
		return err
	}
	n, err := st.Release(pid, slot)
	if err != nil {
		return err
	}
	if a.json {
		a.printJSON(released{1, n})
		return nil
	}
	fmt.Fprintf(a.stdout, "released %d\n", n)
	return nil
}
