package update

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// stays says which generations were to go and are still needed by somebody.
func (r *run) stays(sl *store.Slot, p store.Pruned) {
	for _, k := range p.Kept {
		switch k.Why {
		case store.KeptInUse:
			r.o.Log.Info("an old generation stays", "slot", sl.Name(), "generation", k.Generation, "used by", k.Uses.Text())
		case store.KeptUnseen:
			r.o.Log.Info("an old generation stays: it may be in use by processes that this user cannot look into (prune as root removes it)", "slot", sl.Name(), "generation", k.Generation, "processes", k.Uses.Unseen)
		}
	}
}

// Spools is what SweepSpools removed.
type Spools struct {
	Names []string `json:"names"` // of tarballs
	Bytes int64    `json:"bytes"` // on the disk
}

// SweepSpools removes the downloads that nobody needs any more: of releases no
// newer than what is installed of their family, and what no run has touched for
// two weeks. One that a process is writing to stays. With dry nothing is removed.
// The caller holds the store's run lock.
func SweepSpools(ctx context.Context, st *store.Store, now time.Time, dry bool) (Spools, error) {
	var s Spools
	have, err := newest(st)
	if err != nil {
		return s, fmt.Errorf("sweep downloads: %w", err)
	}
	channels, err := os.ReadDir(filepath.Dir(filepath.Dir(st.SpoolDir("nightly", "x"))))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil // nothing was ever downloaded: the index is a directory of this machine
	}
	if err != nil {
		return s, fmt.Errorf("sweep downloads: %w", err)
	}
	for _, ch := range channels {
		dir := filepath.Dir(st.SpoolDir(ch.Name(), "x"))
		entries, rerr := os.ReadDir(dir)
		if rerr != nil {
			continue // not a directory of ours
		}
		for _, e := range entries {
			if cerr := ctx.Err(); cerr != nil {
				return s, cerr
			}
			if !e.IsDir() || !stale(e, have[ch.Name()], now) {
				continue
			}
			path := filepath.Join(dir, e.Name())
			bytes, _, _ := diskspace.Used(path) // what cannot be read is not counted
			if !dry {
				if derr := dropSpool(path); derr != nil {
					err = errors.Join(err, fmt.Errorf("sweep downloads: %w", derr))
					continue
				}
			}
			s.Names, s.Bytes = append(s.Names, e.Name()), s.Bytes+bytes
		}
	}
	return s, err
}

// stale reports that a download will not be asked for again.
func stale(e fs.DirEntry, have map[string]release.Version, now time.Time) bool {
	n, err := release.ParseName(e.Name())
	if err != nil {
		return false // not a download of ours
	}
	if v, ok := have[n.Family]; ok && n.Version.Compare(v) <= 0 {
		return true
	}
	fi, err := e.Info()
	return err == nil && now.Sub(fi.ModTime()) >= spoolFor
}

// newest is the newest version that is installed of each family, by channel: in
// every slot that has the family, for one may be behind.
func newest(st *store.Store) (map[string]map[string]release.Version, error) {
	slots, err := st.Slots()
	if err != nil {
		return nil, err
	}
	all := map[string]map[string]release.Version{}
	for _, sl := range slots {
		gens, err := sl.Generations()
		if err != nil {
			return nil, err
		}
		own := map[string]release.Version{}
		for _, g := range gens {
			m, err := g.Manifest()
			if err != nil {
				continue
			}
			n, err := release.ParseName(m.Name)
			if err != nil {
				continue
			}
			if v, ok := own[n.Family]; !ok || n.Version.Compare(v) > 0 {
				own[n.Family] = n.Version
			}
		}
		if all[sl.Channel()] == nil {
			all[sl.Channel()] = map[string]release.Version{}
		}
		for family, v := range own {
			if have, ok := all[sl.Channel()][family]; !ok || v.Compare(have) < 0 {
				all[sl.Channel()][family] = v
			}
		}
	}
	return all, nil
}
