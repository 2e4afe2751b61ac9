package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// LeaseForeign is how long a lease counts whose process cannot be looked for:
// one of another host that has the store by NFS, or of a container. It is
// counted from the last change of the record's file.
const LeaseForeign = 7 * 24 * time.Hour

// Lease says that a process wants a generation to stay while it lives. It is a
// record in ROOT/leases, which is everybody's to write where the store is the
// system's: nothing in it is believed but what /proc confirms.
type Lease struct {
	Schema     int       `json:"schema"`
	PID        int       `json:"pid"`
	Start      uint64    `json:"start"`         // of the process, in clock ticks after that of the machine: numbers come again
	Program    string    `json:"program"`       // its name when the lease was taken
	PIDs       string    `json:"pid_namespace"` // in which PID is its number
	BootID     string    `json:"boot_id"`
	Host       string    `json:"host"`
	UID        int       `json:"uid"` // who owns the record
	Slot       string    `json:"slot"`
	Generation string    `json:"generation"`
	Since      time.Time `json:"since"` // UTC
}

// Lease keeps a generation for the process pid until that ends or Release: what
// is active for version "", else as for Use. Whoever may write to ROOT/leases may
// lease for processes of his own.
//
// The record is written first, and only then is it looked whether the generation
// is still there; Prune takes a generation away first and looks for leases then,
// and puts it back. So one of both sees the other, without a lock.
func (sl *Slot) Lease(ctx context.Context, version string, pid int) (*Lease, *Generation, error) {
	l, g, err := sl.lease(ctx, version, pid)
	if err != nil {
		return nil, nil, fmt.Errorf("lease in %s: %w", sl.Name(), err)
	}
	return l, g, nil
}

func (sl *Slot) lease(ctx context.Context, version string, pid int) (*Lease, *Generation, error) {
	const tries = 10 // each was overtaken by an update and a prune
	for range tries {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		g, was, err := sl.resolve(version)
		if err != nil {
			return nil, nil, err
		}
		l, name, err := sl.store.writeLease(sl.Name(), g.Name, pid)
		if err != nil {
			return nil, nil, err
		}
		if now, err := statAt(unix.AT_FDCWD, g.Dir, 0); err == nil && now.ino == was.ino && now.dev == was.dev {
			return l, g, nil
		}
		if err := sl.store.dropLease(name); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, errors.New("it changes all the time (try again)")
}

// Open opens the directory of a generation, named as for Lease. While the file is
// open in this process, or in one that has inherited it, Prune sees that the
// generation is in use, and so it needs no record that could be left behind.
func (sl *Slot) Open(version string) (*Generation, *os.File, error) {
	const tries = 10
	for range tries {
		g, _, err := sl.resolve(version)
		if err != nil {
			return nil, nil, err
		}
		f, err := os.Open(g.Dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("open %s: %w", g.Name, err)
		}
		at, err := statAt(int(f.Fd()), "", unix.AT_EMPTY_PATH)
		now, nerr := statAt(unix.AT_FDCWD, g.Dir, 0)
		if err == nil && nerr == nil && now.ino == at.ino && now.dev == at.dev {
			return g, f, nil
		}
		f.Close()
	}
	return nil, nil, fmt.Errorf("open a generation of %s: it changes all the time (try again)", sl.Name())
}

// resolve finds what version means, once, and the identity of its directory.
func (sl *Slot) resolve(version string) (*Generation, stat, error) {
	var g *Generation
	var err error
	if version != "" {
		g, err = sl.Generation(version)
	} else if g, err = sl.Current(); err == nil && g == nil {
		err = fmt.Errorf("nothing is active in %s (try: update)", sl.Name())
	}
	if err != nil {
		return nil, stat{}, err
	}
	st, err := statAt(unix.AT_FDCWD, g.Dir, 0)
	if err != nil {
		return nil, stat{}, &fs.PathError{Op: "stat", Path: g.Dir, Err: err}
	}
	return g, st, nil
}

// LeaseState is what is known of the process of a lease.
type LeaseState string

// The states of a lease.
const (
	LeaseLive    LeaseState = "live"    // the process runs
	LeaseDead    LeaseState = "dead"    // it has ended: the next Prune removes the record
	LeaseUnknown LeaseState = "unknown" // that cannot be seen: it counts
)

// Leased is a lease and what is known of it.
type Leased struct {
	Lease
	State LeaseState `json:"state"`

	file string // its name in ROOT/leases
}

// Leases lists the leases, by generation and process. What is no proper record is
// left out.
func (s *Store) Leases() ([]Leased, error) {
	all, err := s.readLeases()
	if err != nil {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	slices.SortFunc(all.leases, func(a, b Leased) int {
		return cmp.Or(cmp.Compare(a.Slot, b.Slot), compareNames(a.Generation, b.Generation), cmp.Compare(a.PID, b.PID), cmp.Compare(a.file, b.file))
	})
	return all.leases, nil
}

// Release ends the leases that process pid has of a slot, or of all for slot "".
// It returns how many they were.
func (s *Store) Release(pid int, slot string) (int, error) {
	all, err := s.readLeases()
	if err != nil {
		return 0, fmt.Errorf("release leases of process %d: %w", pid, err)
	}
	n := 0
	for _, l := range all.leases {
		if l.PID != pid || l.State != LeaseLive || slot != "" && l.Slot != slot {
			continue
		}
		if e := s.dropLease(l.file); e != nil {
			err = errors.Join(err, e)
			continue
		}
		n++
	}
	if err != nil {
		err = fmt.Errorf("release leases of process %d: %w", pid, err)
	}
	return n, err
}

// leaseUses tells which of gens are leased, by Dir.
func (s *Store) leaseUses(gens []Generation) map[string]Uses {
	uses := make(map[string]Uses, len(gens))
	all, err := s.readLeases()
	if err != nil {
		all.unread++
	}
	for _, g := range gens {
		u := Uses{Unseen: all.unread}
		slot := filepath.Base(filepath.Dir(filepath.Dir(g.Dir)))
		for _, l := range all.leases {
			if l.State != LeaseDead && l.Generation == g.Name && l.Slot == slot {
				u.By = append(u.By, Use{PID: l.PID, Program: l.Program, How: UseLease})
			}
		}
		uses[g.Dir] = u
	}
	return uses
}

// sweepLeases removes the records of processes that have ended, as far as this
// user may, and returns how many they were.
func (s *Store) sweepLeases() int {
	all, err := s.readLeases()
	if err != nil {
		return 0
	}
	n := 0
	for _, name := range all.dead() {
		if s.dropLease(name) == nil {
			n++
		}
	}
	return n
}
