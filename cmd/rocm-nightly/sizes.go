package main

import (
	"context"
	"fmt"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// sizes is what the store occupies on disk.
type sizes struct {
	DiskBytes int64 `json:"disk_bytes"` // of all generations of all slots, what they share once
	AtMost    bool  `json:"at_most"`    // all measured sizes are upper bounds: files share extents that could not be told apart in time
}

// measureTime is how long status measures: it must answer at once. A tree whose
// inodes are in memory takes a hundredth of it.
const measureTime = 2 * time.Second

// usage measures the store; nil where that takes too long.
func (a *app) usage(ctx context.Context, st *store.Store) *store.Usage {
	ctx, cancel := context.WithTimeout(ctx, measureTime)
	defer cancel()
	u, err := st.Usage(ctx)
	if err != nil {
		a.log(a.stderr).Debug("what is installed could not be measured", "error", err)
		return nil
	}
	return u
}

func sizesOf(u *store.Usage) *sizes {
	if u == nil {
		return nil
	}
	return &sizes{u.Total, u.AtMost}
}

// measure fills in the sizes of a slot.
func (s *slotStatus) measure(sl *store.Slot, u *store.Usage) {
	for _, g := range s.Generations {
		s.Bytes += g.Bytes
	}
	if u == nil {
		return
	}
	disk := u.Slots[sl.Name()]
	s.DiskBytes = &disk
	for i := range s.Generations {
		g := &s.Generations[i]
		if got, ok := u.Generations[g.dir]; ok {
			g.DiskBytes, g.OwnBytes = &got.Disk, &got.Own
		}
	}
}

// sizeText is for people: what the generations of a slot have, and occupy.
func (s *slotStatus) sizeText(all *sizes) string {
	if s.DiskBytes == nil || len(s.Generations) == 0 {
		return ""
	}
	return fmt.Sprintf("\t%s on disk for %s", all.text(*s.DiskBytes), diskspace.Text(s.Bytes))
}

// sizeText is for people: what a generation has, and what it has alone.
func (g *generationStatus) sizeText(all *sizes) string {
	if g.OwnBytes == nil || *g.OwnBytes >= *g.DiskBytes {
		return diskspace.Text(g.Bytes)
	}
	return fmt.Sprintf("%s, its own %s", diskspace.Text(g.Bytes), all.text(*g.OwnBytes))
}

func (z *sizes) text(bytes int64) string {
	if z != nil && z.AtMost {
		return "at most " + diskspace.Text(bytes)
	}
	return diskspace.Text(bytes)
}

// sharedWith names the generations that files are shared with.
func sharedWith(re *store.Reused) string {
	first := re.From[0].Generation
	for _, f := range re.From[1:] {
		if f.Generation == re.From[0].Generation {
			first = re.From[0].Slot + "/" + first
			break
		}
	}
	if n := len(re.From) - 1; n > 0 {
		return fmt.Sprintf("%s and %d more", first, n)
	}
	return first
}
