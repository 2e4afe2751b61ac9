package update

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/repack"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// reuse lets the staged prefix share the content of its files with what is
// installed already: the last step before it is made durable. What was cloned
// shares with its twin what it can. An error means that the prefix may not be
// whole; whatever else goes wrong costs space and is said.
func (t *task) reuse(ctx context.Context, staging *store.Staging, res *repack.Result, rec *Record) error {
	if res == nil || res.ClonedFrom != "" || t.in.Repack.Dedup == repack.DedupOff {
		return nil
	}
	log := t.r.o.Log
	donors, err := staging.Donors()
	if err != nil {
		log.Warn("what is installed could not be listed: no file is shared with it", "error", err)
		return nil
	}
	if len(donors) == 0 {
		return nil
	}
	t.say("reuse", "sharing files with what is installed")
	reused, err := staging.Reuse(ctx, donors, store.ReuseOptions{
		Dedup: t.in.Repack.Dedup, Own: repack.PerPrefix,
		Event: func(done int64) {
			t.r.o.Event(Event{Install: t.out.Install, Stage: "reuse", Done: done})
		},
	})
	if err != nil {
		return err
	}
	for _, file := range reused.Damaged {
		log.Warn("an installed file is not what it was when it was installed; nothing is shared with it", "file", file)
	}
	for _, note := range reused.Notes {
		log.Warn("some files could not be shared", "because", note)
	}
	if reused.Files == 0 && len(reused.Left) > 0 {
		log.Info("no file could be shared with what is installed", "because", strings.Join(slices.Sorted(maps.Keys(reused.Left)), "; "))
	}
	rec.Reused, t.out.Reused = reused, reused
	return nil
}
