package update

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/fault"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// dropSpools removes the downloads that have served. They stay to the end of
// the run: another install may want the same tarball.
func (r *run) dropSpools() {
	for _, dir := range r.spools {
		if r.pending[dir] {
			continue // the next run takes it up again
		}
		if err := dropSpool(dir); err != nil {
			r.o.Log.Warn("a download could not be removed", "error", err)
		}
	}
}

// served says that the download of t.rel, if there is one, is not needed any
// more: what it is for is here. One that died before its end may have left it.
func (t *task) served() {
	if !t.r.o.DryRun {
		t.r.spools = append(t.r.spools, t.r.o.Store.SpoolDir(t.rel.Channel, t.rel.Name))
	}
}

// oneAtATime removes the downloads that have served before another begins, in a run
// that installs nothing: there the disk is that of a job, and holds one at a time.
func (t *task) oneAtATime(next string) {
	if !t.r.o.NoInstall {
		return
	}
	t.r.spools = slices.DeleteFunc(t.r.spools, func(dir string) bool { return dir != next && !t.r.pending[dir] && dropSpool(dir) == nil })
}

// dropSpool removes a spool under the lock of its directory.
func dropSpool(dir string) error {
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()                                     // opened for reading
	for err = unix.EINTR; errors.Is(err, unix.EINTR); { // of a signal
		err = unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		return fmt.Errorf("%s is in use: %w", dir, err)
	}
	if err := fault.Point("update.spool.drop"); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// spoolFor is how long the download of another family is kept: its install may
// have gone from the config, or just be slow.
const spoolFor = 14 * 24 * time.Hour

// sweepSpool removes what earlier runs left of older nights: something newer is
// about to be fetched, nobody will ask for them again.
func (t *task) sweepSpool(ctx context.Context) {
	dir := filepath.Dir(t.r.o.Store.SpoolDir(t.rel.Channel, t.rel.Name))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	left := 0
	for _, e := range slices.Backward(entries) { // the newest first
		n, err := release.ParseName(e.Name())
		if err != nil {
			continue // not a download of ours
		}
		fi, err := e.Info()
		old := n.Family == t.rel.Family && n.Version.Compare(t.rel.Version) < 0
		if !old && (err != nil || t.r.o.Now().Sub(fi.ModTime()) < spoolFor) {
			continue
		}
		if t.keepLeft(ctx, e.Name()) {
			if left++; left <= t.in.KeepTarballs { // what can never be kept must not fill the disk
				continue
			}
		}
		if err := dropSpool(filepath.Join(dir, e.Name())); err != nil { // another process may be at it
			t.r.o.Log.Warn("an old download could not be removed", "error", err)
		}
	}
}
