package update

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
	"github.com/rocm-nightly/rocm-nightly/repack"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// Room is what an install takes of the disk, and what is there: of the file
// system that comes nearest to its limit, if there are several.
type Room struct {
	Fits       string `json:"fits"`        // yes, perhaps or no
	Basis      string `json:"basis"`       // how the need is known: known, last or guess
	Bytes      int64  `json:"bytes"`       // that it takes while it is made
	Inodes     int64  `json:"inodes"`      // the same
	FreeBytes  int64  `json:"free_bytes"`  // -1: not limited, or not known
	FreeInodes int64  `json:"free_inodes"` // the same
	Mount      string `json:"mount"`       // where the file system is mounted

	space diskspace.Space
	need  diskspace.Need
}

// place is a directory, and what a work will take there.
type place struct {
	dir  string
	need diskspace.Need
}

// judge compares needs with what is free. Needs on one file system add up. It
// is nil where nothing can be told: then writing will tell.
func (t *task) judge(basis string, places ...place) *Room {
	statfs := t.r.o.Space
	if statfs == nil {
		statfs = diskspace.Statfs
	}
	var on []diskspace.Space
	var needs []diskspace.Need
	for _, p := range places {
		s, err := statfs(p.dir)
		if err != nil {
			t.r.o.Log.Debug("what is free is not known", "error", err)
			continue
		}
		i := slices.IndexFunc(on, func(o diskspace.Space) bool { return o.Dev == s.Dev })
		if i < 0 {
			on, needs = append(on, s), append(needs, p.need)
			continue
		}
		needs[i] = needs[i].Plus(p.need)
	}
	order := []diskspace.Fit{diskspace.Fits, diskspace.Doubtful, diskspace.Short}
	var worst *Room
	for i, s := range on {
		fit := s.Fit(needs[i])
		if worst == nil || slices.Index(order, fit) > slices.Index(order, diskspace.Fit(worst.Fits)) {
			worst = &Room{
				Fits: string(fit), Basis: basis, Bytes: needs[i].Bytes, Inodes: needs[i].Inodes,
				FreeBytes: s.Bytes, FreeInodes: s.Inodes, Mount: s.Mount, space: s, need: needs[i],
			}
		}
	}
	return worst
}

// room makes sure that there is room for the rest of a download of so many
// bytes, and for what its tarball becomes. What nobody needs any more gives way.
func (t *task) room(ctx context.Context, what string, look func() *Room) error {
	room := look()
	if room != nil && room.Fits != string(diskspace.Fits) && !room.space.ReadOnly {
		t.giveWay(ctx)
		room = look()
	}
	if room == nil {
		return nil
	}
	t.out.Space = room
	if t.r.o.NoInstall && !t.told {
		t.told = true
		t.r.o.Log.Info("this is what it takes of the disk at most, until it is judged", "install", t.out.Install, "takes", room.need.String(), "free", room.space.String())
	}
	switch diskspace.Fit(room.Fits) {
	case diskspace.Short:
		err := &diskspace.ShortError{What: what, Need: room.need, Space: room.space}
		if room.space.ReadOnly {
			return err
		}
		return fmt.Errorf("%w (lower keep.last%s, or work elsewhere with --root)", err, t.keptRoom())
	case diskspace.Doubtful:
		if !t.warned {
			t.r.o.Log.Warn("there may not be enough room; trying it", "install", t.out.Install, "takes", room.need.String(), "free", room.space.String())
		}
		t.warned = true
	}
	return nil
}

// allow is asked before a download of t.rel that is to be unpacked.
func (t *task) allow(ctx context.Context) func(fetch.Ahead) error {
	return func(a fetch.Ahead) error {
		return t.room(ctx, "downloading and unpacking it", func() *Room { return t.ahead(diskspace.Incompressible(a.Bytes()), a.Size) })
	}
}

// ahead judges what of a download is still to come, and what its tarball of so
// many bytes becomes.
func (t *task) ahead(rest diskspace.Need, size int64) *Room {
	e := t.estimate(size)
	places := []place{{t.r.o.Store.SpoolDir(t.rel.Channel, t.rel.Name), rest}, {t.slot.Dir(), e.need}}
	return t.judge(e.basis, append(places, t.keptElsewhere(size)...)...)
}

// allowSpool is asked before a download that is only compared.
func (t *task) allowSpool(ctx context.Context, dir string) func(fetch.Ahead) error {
	return func(a fetch.Ahead) error {
		return t.room(ctx, "downloading it", func() *Room { return t.judge(basisKnown, place{dir, diskspace.Incompressible(a.Bytes())}) })
	}
}

// cloned judges what a clone of a generation takes. Shared content takes next
// to nothing, but of reflinked files each has an inode.
func (t *task) cloned(from *store.Generation) *Room {
	m, err := from.Manifest()
	if err != nil {
		return nil // the clone tells
	}
	c := m.Counts
	all, apart := int64(c.Files+c.Dirs+c.Symlinks), int64(c.Dirs+c.Symlinks)
	need := diskspace.Estimated(all*1024+int64(c.Dirs)*4096, all, diskspace.Least{Inodes: apart})
	basis := basisLast
	switch dedup := t.in.Repack.Dedup; dedup {
	case repack.DedupHardLink:
		need.Inodes = apart
	case repack.DedupOff, repack.DedupReflink:
		bytes, inodes, err := diskspace.Used(from.Dir)
		if err != nil {
			return nil
		}
		need, basis = diskspace.Known(bytes, inodes, m.Size), basisKnown
		if dedup == repack.DedupReflink { // where the file system can
			need.Exact, need.Least.Bytes, need.Least.Compressed = false, 0, 0
		}
	}
	return t.judge(basis, place{t.slot.Dir(), need})
}

// giveWay removes what nobody needs any more: what runs that died have left, the
// tarballs beyond keep_tarballs, the generations beyond keep, and downloads that
// have served. Where none of that can be done, what is free stays as it is.
func (t *task) giveWay(ctx context.Context) {
	if t.kept() == nil { // or it may be the one that is about to be unpacked
		t.r.pruneTarballs(ctx)
	}
	slots, err := t.r.o.Store.Slots()
	if err != nil {
		t.r.o.Log.Warn("what is there could not be listed", "error", err)
	}
	for _, sl := range slots {
		keep := store.Keep{Last: math.MaxInt} // its debris alone
		if sl.Name() == t.slot.Name() && t.in.Keep > 0 && !t.r.o.NoInstall {
			keep = t.in.keep()
		}
		pruned, err := sl.Prune(ctx, keep)
		if err != nil {
			t.r.o.Log.Warn("what is not needed any more could not be removed", "slot", sl.Name(), "error", err)
		}
		t.r.stays(sl, pruned)
		if len(pruned.Removed) > 0 {
			t.r.o.Log.Info("old generations made room", "slot", sl.Name(), "removed", pruned.Removed)
		}
	}
	own := t.r.o.Store.SpoolDir(t.rel.Channel, t.rel.Name)
	t.r.spools = slices.DeleteFunc(t.r.spools, func(dir string) bool { return dir != own && !t.r.pending[dir] && dropSpool(dir) == nil })
}

// planRoom says what the install would take, and whether that fits.
func (t *task) planRoom(ctx context.Context) string {
	from, _ := t.twin()
	var room *Room
	switch {
	case from != nil && !t.r.o.NoInstall:
		room = t.cloned(from)
	case t.kept() != nil:
		room = t.unkeptRoom(t.kept())
	case t.r.planned[t.rel.URL] != "":
		return "" // there is nothing yet to share with
	default:
		c, err := t.r.client()
		if err != nil {
			return ""
		}
		a, err := c.Ahead(ctx, t.rel, t.r.o.Store.SpoolDir(t.rel.Channel, t.rel.Name))
		if err != nil {
			t.r.o.Log.Warn("what it would take is not known", "release", t.rel.Name, "error", err)
			return ""
		}
		room = t.ahead(diskspace.Incompressible(a.Bytes()), a.Size)
	}
	if room == nil {
		return ""
	}
	t.out.Space = room
	text := fmt.Sprintf("; it takes %s, and %s", room.need, room.space)
	switch diskspace.Fit(room.Fits) {
	case diskspace.Short:
		return text + ": it does not fit"
	case diskspace.Doubtful:
		return text + ": it may not fit"
	}
	return text
}

// onDisk says of an error of writing which file system it is about: the names
// in it are relative to the tree. What the download reports is about the spool.
func (t *task) onDisk(err error) error {
	if errorsAs[*fetch.DownloadError](err) {
		return err
	}
	for _, full := range []error{unix.ENOSPC, unix.EDQUOT, unix.EROFS, unix.EFBIG, unix.EIO} {
		if errors.Is(err, full) {
			return fmt.Errorf("write on the file system of %s: %w", t.slot.Dir(), err)
		}
	}
	return err
}
