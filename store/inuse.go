package store

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"
)

// How a process uses a generation.
const (
	UseMaps  = "maps"  // it maps a file
	UseExe   = "exe"   // it is a program of it
	UseCwd   = "cwd"   // its working directory
	UseRoot  = "root"  // its root directory
	UseFD    = "fd"    // it has something open
	UseMount = "mount" // it sees it mounted somewhere: a container, perhaps
	UseLease = "lease" // it has asked for it (Lease)
)

// Use is one process that uses a generation.
type Use struct {
	PID     int    `json:"pid"`     // 0: one that this user may not look into
	Program string `json:"program"` // its name, as ps shows it; "" if not known
	How     string `json:"how"`     // one of the Use constants, the first that was found
}

// Uses says who uses a generation.
type Uses struct {
	By []Use `json:"by"` // in the order of process numbers
	// Unseen counts the processes that may use it, and the records of leases,
	// that this user could not look into. While it is not 0, an empty By proves
	// nothing.
	Unseen int `json:"unseen"`
}

// Free reports that nobody uses the generation, as far as can be known for
// certain.
func (u Uses) Free() bool { return len(u.By) == 0 && u.Unseen == 0 }

// InUse tells for each of gens who uses it, by its Dir. What is used is judged
// by device and inode, over the files that a process maps, its program, its
// working and root directories, what it has open and what is mounted where it
// runs, in containers too; and by leases. An inode that generations share counts
// for the one through whose name it is used, and for all where that is not
// known.
//
// It takes no lock and writes nothing: a process may begin to use something at
// any moment. This process itself is not looked at.
func (s *Store) InUse(ctx context.Context, gens []Generation) (map[string]Uses, error) {
	l, err := s.lookout(ctx, gens)
	if err != nil {
		return nil, fmt.Errorf("find what is in use: %w", err)
	}
	uses, err := l.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("find what is in use: %w", err)
	}
	return uses, nil
}

// lookout knows the inodes of some generations, so that one can look several
// times who uses them: also when they have been renamed meanwhile.
type lookout struct {
	store   *Store
	gens    []Generation
	indexes []*index
}

func (s *Store) lookout(ctx context.Context, gens []Generation) (*lookout, error) {
	l := &lookout{store: s, gens: gens}
	for batch := range slices.Chunk(gens, maskBits) {
		x, err := newIndex(ctx, s.root, batch)
		if err != nil {
			return nil, err
		}
		l.indexes = append(l.indexes, x)
	}
	return l, nil
}

// look goes through all processes and leases.
func (l *lookout) look(ctx context.Context) (map[string]Uses, error) {
	return l.lookAs(ctx, func(ctx context.Context, found *findings, x *index, uses []Uses) error {
		group, gctx := errgroup.WithContext(ctx)
		group.SetLimit(runtime.GOMAXPROCS(0))
		for i := range uses {
			group.Go(func() error {
				found.strangers(gctx, x, i, &uses[i])
				return gctx.Err()
			})
		}
		return group.Wait()
	})
}

// glance is look without what takes long: processes that this user may not look
// into are passed over.
func (l *lookout) glance(ctx context.Context) (map[string]Uses, error) {
	return l.lookAs(ctx, func(context.Context, *findings, *index, []Uses) error { return nil })
}

func (l *lookout) lookAs(ctx context.Context, strangers func(context.Context, *findings, *index, []Uses) error) (map[string]Uses, error) {
	uses := make(map[string]Uses, len(l.gens))
	leases := l.store.leaseUses(l.gens)
	for _, x := range l.indexes {
		found, err := x.processes(ctx)
		if err != nil {
			return nil, err
		}
		for i, g := range x.gens {
			u := &found.uses[i]
			u.By = append(u.By, leases[g.Dir].By...)
			u.Unseen += leases[g.Dir].Unseen
		}
		if err := strangers(ctx, found, x, found.uses); err != nil {
			return nil, err
		}
		for i, g := range x.gens {
			u := found.uses[i]
			slices.SortStableFunc(u.By, func(a, b Use) int { return cmp.Compare(a.PID, b.PID) })
			uses[g.Dir] = u
		}
	}
	return uses, nil
}

// strangers adds what can be told of the processes that could not be looked into.
func (f *findings) strangers(ctx context.Context, x *index, i int, u *Uses) {
	n, foreign := f.unseenFor(x, i)
	if n == 0 {
		return
	}
	if len(u.By) > 0 {
		u.Unseen += n
		return
	}
	// A file with several names that is open is so for one of the other
	// generations, most likely, in a process that was looked into. Where those that
	// were not are the user's own, an agent with his keys say, that is enough.
	switch open, unknown := x.probe(ctx, i, foreign > 0); {
	case open:
		u.By = append(u.By, Use{How: UseFD})
	case unknown:
		u.Unseen += n
	default:
		u.Unseen += f.contained
	}
}

// findings is what the processes were found to use, of the generations of one
// index.
type findings struct {
	mu         sync.Mutex
	uses       []Uses         // of each generation
	namespaces map[string]*ns // mount namespaces, by their links
	unseen     []*stranger    // processes that could not be looked into
	contained  int            // of those, in containers of others: what is mounted there is not seen
	hidden     bool           // there may be processes of which nothing is seen
}

// add records that a process uses the generations of m, unless that is known.
func (f *findings) add(m mask, pid int, program func() string, how string) {
	if m == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.uses {
		if m&(1<<i) == 0 || slices.ContainsFunc(f.uses[i].By, func(u Use) bool { return u.PID == pid }) {
			continue
		}
		f.uses[i].By = append(f.uses[i].By, Use{PID: pid, Program: program(), How: how})
	}
}

// processes looks at every process but this one.
func (x *index) processes(ctx context.Context) (*findings, error) {
	found := &findings{uses: make([]Uses, len(x.gens)), namespaces: map[string]*ns{}}
	if len(x.homes) == 0 {
		return found, nil // nothing is left of the generations
	}
	pids, err := processIDs()
	if err != nil {
		return nil, err
	}
	workers := runtime.GOMAXPROCS(0)
	group, gctx := errgroup.WithContext(ctx)
	for w := range workers {
		group.Go(func() error {
			k := newLooker(x, found)
			for i := w; i < len(pids); i += workers {
				if err := gctx.Err(); err != nil {
					return err
				}
				k.process(pids[i])
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	found.hidden = processesHidden()
	x.mountedHere(found)
	for _, s := range found.unseen {
		if s.contained {
			found.contained++
		}
	}
	return found, nil
}

// procDir is where the kernel shows processes.
const procDir = "/proc"

// processIDs lists the processes but for this one.
func processIDs() ([]int, error) {
	f, err := os.Open(procDir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	self := os.Getpid()
	var pids []int
	buf := make([]byte, direntBytes)
	err = eachEntry(int(f.Fd()), buf, func(e dirent) error {
		if pid, err := strconv.Atoi(string(e.name)); err == nil && pid != self {
			pids = append(pids, pid)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	return pids, nil
}
