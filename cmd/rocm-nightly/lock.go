package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/internal/lockfile"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/store"
)

type lockOptions struct {
	output string
	ledger string
}

func (a *app) lockCmd() *cobra.Command {
	var o lockOptions
	c := &cobra.Command{
		Use:   "lock [TARGET…]",
		Short: "Write what is active here as a rocm-nightly.lock",
		Long: `Write what is active here, with version, address, size and digest, as a lock: other
machines whose policy.lock names it install exactly that, digest enforced. With
-o an existing lock keeps its pins of other targets. Sign it with minisign
(minisign -Sm rocm-nightly.lock) and give the others policy.lock_key.`,
		Example: "  rocm-nightly lock -o rocm-nightly.lock\n  rocm-nightly lock gfx1151",
		RunE:    func(cmd *cobra.Command, args []string) error { return a.lock(cmd.Context(), o, args) },
	}
	c.Flags().StringVarP(&o.output, "output", "o", "", "the `file` to write, or - (default: standard output)")
	c.Flags().StringVar(&o.ledger, "ledger", "", "the `file` that update was told to remember tarballs in, if not the store's ledger")
	return c
}

func (a *app) lock(_ context.Context, o lockOptions, targets []string) error {
	st, err := a.store()
	if err != nil {
		return err
	}
	ledger := st.Ledger()
	if o.ledger != "" {
		ledger = store.OpenLedger(o.ledger)
	}
	slots, err := a.lockSlots(st, targets)
	if err != nil {
		return err
	}
	f := &lockfile.File{Schema: lockfile.Schema}
	for _, sl := range slots {
		pin, err := lockPin(sl, ledger)
		if err != nil {
			return fmt.Errorf("lock %s: %w", sl.Name(), err)
		}
		if strings.HasPrefix(pin.URL, "file:") {
			a.log(a.stderr).Warn("the lock names a directory of this machine: other machines need it at the same path, or among their indexes", "url", pin.URL)
		}
		f.Pins = append(f.Pins, pin)
	}
	if o.output == "" || o.output == "-" {
		text, err := lockfile.Encode(f)
		if err != nil {
			return err
		}
		_, err = a.stdout.Write(text)
		return err
	}
	return a.writeLock(o.output, f)
}

// lockSlots finds the slots with something active: those of the targets, or all.
func (a *app) lockSlots(st *store.Store, targets []string) ([]*store.Slot, error) {
	if len(targets) == 0 {
		return activeSlots(st)
	}
	var slots []*store.Slot
	for _, t := range targets {
		name := t
		if canonical, ok := a.cfg.GFX.Canonical(t); ok {
			name = canonical
		}
		sl, err := st.FindSlot(name)
		if err != nil {
			return nil, err
		}
		slots = append(slots, sl)
	}
	return slots, nil
}

func activeSlots(st *store.Store) ([]*store.Slot, error) {
	all, err := st.Slots()
	if err != nil {
		return nil, err
	}
	var slots []*store.Slot
	for _, sl := range all {
		g, err := sl.Current()
		if err != nil { // a lock without it would look complete
			return nil, fmt.Errorf("lock %s: %w", sl.Name(), err)
		}
		if g != nil {
			slots = append(slots, sl)
		}
	}
	if len(slots) == 0 {
		return nil, errors.New("lock: nothing is active here; install something first: rocm-nightly update")
	}
	return slots, nil
}

// lockPin is the pin of what is active in a slot, as the ledger has it.
func lockPin(sl *store.Slot, ledger *store.Ledger) (lockfile.Pin, error) {
	g, err := sl.Current()
	if err != nil {
		return lockfile.Pin{}, err
	}
	if g == nil {
		return lockfile.Pin{}, errors.New("nothing is active")
	}
	m, err := g.Manifest()
	if err != nil {
		return lockfile.Pin{}, err
	}
	entries, err := ledger.Find(m.Name)
	if err != nil {
		return lockfile.Pin{}, err
	}
	for i := len(entries) - 1; i >= 0; i-- {
		e := entries[i]
		if string(e.Digest) != m.Digest || e.Channel != sl.Channel() {
			continue
		}
		pin, err := e.Pin()
		if err != nil {
			return lockfile.Pin{}, err
		}
		return lockfile.FromPin(sl.Target(), pin), nil
	}
	return lockfile.Pin{}, fmt.Errorf("the ledger does not know %s with %s, so its address is not known", m.Name, release.Digest(m.Digest))
}

// writeLock writes f over the lock at path, whose pins of other targets stay.
func (a *app) writeLock(path string, f *lockfile.File) error {
	old, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("read the lock that is there: %w", err)
	default:
		was, err := lockfile.Parse(old)
		if err != nil {
			return fmt.Errorf("%s is there and is left alone: %w", path, err)
		}
		f = lockfile.Merge(was, f)
	}
	text, err := lockfile.Encode(f)
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(path, text, 0o644); err != nil {
		return fmt.Errorf("write the lock: %w", err)
	}
	fmt.Fprintf(a.stderr, "wrote %s: %d pins; a signature of the old one is void\n", path, len(f.Pins))
	return nil
}
