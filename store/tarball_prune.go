package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// PrunedTarballs is what PruneTarballs has removed.
type PrunedTarballs struct {
	Removed []Tarball
	Bytes   int64 // of them
}

// PruneTarballs removes the kept tarballs that no slot wants any more. keep says
// how many each slot wants, by its name: those that it installed last, and, if it
// wants any, those of its active generation and of the one that is held, which a
// rollback may have made older than all. What a slot that is not in keep wants
// stays, and so does what nobody was ever noted to want. What interrupted runs have
// left goes too, also with a keep of nil. The caller holds run.lock.
func (s *Store) PruneTarballs(ctx context.Context, keep map[string]int) (PrunedTarballs, error) {
	var pruned PrunedTarballs
	err := s.asOwner(s.sweepTarballs)
	all, bad, serr := s.scanTarballs("", "")
	for _, b := range bad {
		s.event(EventTarball, "", b.Dir, "%v", b)
	}
	err = errors.Join(err, serr)
	drop := surplus(all, keep, s.tarballsInUse)
	for i := range all {
		t, slots := &all[i], drop[all[i].Dir]
		if len(slots) == 0 {
			continue
		}
		if e := ctx.Err(); e != nil {
			return pruned, errors.Join(err, e)
		}
		rec := t.record()
		maps.DeleteFunc(rec.Slots, func(slot string, _ time.Time) bool { return slices.Contains(slots, slot) })
		if len(rec.Slots) > 0 {
			err = errors.Join(err, s.rewriteTarball(t, rec))
			continue
		}
		if e := s.removeTarball(t); e != nil {
			err = errors.Join(err, e)
			continue
		}
		pruned.Removed, pruned.Bytes = append(pruned.Removed, *t), pruned.Bytes+t.Size
	}
	if err != nil {
		err = fmt.Errorf("prune kept tarballs: %w", err)
	}
	return pruned, err
}

// PlanPruneTarballs says what PruneTarballs would remove, and changes nothing.
func (s *Store) PlanPruneTarballs(keep map[string]int) (PrunedTarballs, error) {
	var plan PrunedTarballs
	all, _, err := s.scanTarballs("", "")
	if err != nil {
		return plan, fmt.Errorf("plan to prune kept tarballs: %w", err)
	}
	drop := surplus(all, keep, s.tarballsInUse)
	for _, t := range all {
		if n := len(drop[t.Dir]); n > 0 && n == len(t.wants) {
			plan.Removed, plan.Bytes = append(plan.Removed, t), plan.Bytes+t.Size
		}
	}
	return plan, nil
}

// surplus tells, by directory, which slots do not want a tarball any more; used
// are the digests of those that a slot needs however old they are.
func surplus(all []Tarball, keep map[string]int, used func(slot string) (map[release.Digest]bool, error)) map[string][]string {
	drop := map[string][]string{}
	for slot, n := range keep {
		var mine []*Tarball
		for i := range all {
			if _, wants := all[i].wants[slot]; wants {
				mine = append(mine, &all[i])
			}
		}
		slices.SortStableFunc(mine, func(a, b *Tarball) int { return b.wants[slot].Compare(a.wants[slot]) })
		mine = mine[min(len(mine), max(0, n)):]
		if len(mine) == 0 {
			continue
		}
		inUse, err := used(slot)
		if err != nil {
			continue // what it has is not known: it keeps all
		}
		for _, t := range mine {
			if n < 1 || !inUse[t.Digest] {
				drop[t.Dir] = append(drop[t.Dir], slot)
			}
		}
	}
	return drop
}

// tarballsInUse are the digests of the tarballs of which the active generation of a
// slot was made, and the one that is held. A slot that is not here has none.
func (s *Store) tarballsInUse(slot string) (map[release.Digest]bool, error) {
	channel, target, _ := strings.Cut(slot, "-")
	sl := s.Slot(channel, target)
	gens, err := sl.Generations()
	if sl.err != nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	hold, err := sl.Held()
	if err != nil {
		return nil, err
	}
	digests := map[release.Digest]bool{}
	for i := range gens {
		g := &gens[i]
		if !g.Active && (hold == nil || hold.Generation != g.Name) {
			continue
		}
		if m, err := g.Manifest(); err == nil {
			digests[release.Digest(m.Digest)] = true
		}
	}
	return digests, nil
}

// removeTarball takes a kept tarball out of sight, durably, and then deletes it,
// whoever wants it. The caller holds run.lock.
func (s *Store) removeTarball(t *Tarball) error {
	err := s.asOwner(func() error {
		dying := filepath.Join(filepath.Dir(t.Dir), dyingPrefix+random())
		err := moveAway(t.Dir, dying)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			err = s.disk.syncDir(filepath.Dir(t.Dir))
		}
		if err == nil {
			err = removeTree(dying)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("remove the kept tarball %s: %w", t.Name, lockHint(err))
	}
	return nil
}

// sweepTarballs removes what interrupted runs have left: copies that did not
// come to their end, deletions that did not either, and halves of a record.
func (s *Store) sweepTarballs() (err error) {
	channels, err := s.tarballChannels()
	if err != nil {
		return err
	}
	for _, ch := range channels {
		dir := filepath.Join(s.TarballsDir(), ch)
		entries, e := os.ReadDir(dir)
		err = errors.Join(err, e)
		for _, entry := range entries {
			path := filepath.Join(dir, entry.Name())
			switch {
			case strings.HasPrefix(entry.Name(), keepingPrefix), strings.HasPrefix(entry.Name(), dyingPrefix):
				if e := removeTree(path); e != nil {
					s.event(EventDebris, "", path, "could not be removed: %v", e)
				} else {
					s.event(EventCleaned, "", path, "removed what an interrupted run had left")
				}
			case entry.IsDir():
				s.sweepRecord(path)
			}
		}
	}
	return err
}

// sweepRecord removes halves of a tarball.json.
func (s *Store) sweepRecord(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // it tells when it is read
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "."+tarballName) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if err := os.Remove(path); err != nil {
			s.event(EventDebris, "", path, "could not be removed: %v", err)
		}
	}
}
