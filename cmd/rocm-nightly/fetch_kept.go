package main

import (
	"context"
	"fmt"
	"os"

	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// keptTarballs is the store of the config, if there is one: a fetch needs none.
func (a *app) keptTarballs(cfg *config.Config) *store.Store {
	if cfg.Root == "" {
		return nil
	}
	st, err := store.Open(cfg.Root)
	if err != nil {
		return nil
	}
	if _, err := os.Stat(st.TarballsDir()); err != nil {
		return nil
	}
	return st
}

// agrees reports whether a kept tarball is what everybody expects. Where it is
// not, the server is asked.
func agrees(kept *store.Tarball, expect []release.Expectation) bool {
	for _, e := range expect {
		if e.Digest != kept.Digest {
			return false
		}
	}
	return true
}

// unkeep brings a kept tarball to where it goes. It is not done where that is
// damaged and nothing of it was written: then the server is asked.
func (j *fetchJob) unkeep(ctx context.Context, kept *store.Tarball, to destination) (done bool, err error) {
	if to.stream {
		err = j.streamKept(ctx, kept, to.path)
	} else {
		j.out.Here, err = kept.WriteFile(ctx, to.path, true)
	}
	switch {
	case isA[*store.TarballError](err) && !to.stream:
		j.a.log(j.a.stderr).Warn("a kept tarball is damaged; asking the server", "error", err)
		return false, nil
	case err != nil && ctx.Err() == nil && !isA[*store.TarballError](err):
		return false, &outputError{err}
	case err != nil:
		return false, fmt.Errorf("fetch %s: %w", kept.Name, err)
	}
	e := kept.Entry()
	j.out.measured(kept.Digest, kept.Size)
	j.out.ETag, j.out.LastModified = e.ETag, e.LastModified
	j.out.Checked = []string{"the tarball kept in " + kept.Dir}
	for _, e := range j.found.Expect {
		j.out.Checked = append(j.out.Checked, e.Source)
	}
	if j.ledger == nil {
		return true, nil
	}
	return true, j.ledger.Append(e)
}

func (j *fetchJob) streamKept(ctx context.Context, kept *store.Tarball, path string) error {
	r, err := kept.Open()
	if err != nil {
		return err
	}
	defer r.Close() // opened for reading
	return j.toStream(ctx, r, path)
}
