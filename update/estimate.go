package update

import (
	"encoding/json"
	"path"
	"slices"

	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/repack"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// The values of Room.Basis.
const (
	basisKnown = "known" // this very tarball was unpacked here before, in the same way
	basisLast  = "last"  // by the last one of its family
	basisGuess = "guess" // by what AMD's tarballs become
)

// estimate is what a tarball will become.
type estimate struct {
	size  int64 // of the tarball
	need  diskspace.Need
	basis string
}

// estimate tells what a tarball of so many bytes will take, with a small
// reserve. It is found out once: what is measured does not change.
func (t *task) estimate(size int64) *estimate {
	if t.est != nil && t.est.size == size {
		return t.est
	}
	t.est = &estimate{size: size}
	var sure bool
	t.est.need, t.est.basis, sure = t.expands(size)
	if !sure && len(t.in.Repack.Omit) > 0 {
		// How little stays of a tarball, nobody knows before it was unpacked.
		t.est.need.Least = diskspace.Least{}
	}
	t.est.need.Bytes += diskspace.Reserve(t.est.need.Bytes)
	return t.est
}

// expands is estimate without the reserve; sure says that what it tells of was
// made with the same options.
func (t *task) expands(size int64) (need diskspace.Need, basis string, sure bool) {
	if last, sure := t.last(size); last != nil {
		bytes, inodes, err := diskspace.Used(last.dir)
		switch {
		case err != nil: // the record of a run, or nothing, tells
		case sure && last.m.Name == t.rel.Name && last.m.Size == size:
			return diskspace.Known(bytes, inodes, size), basisKnown, true
		default:
			return diskspace.Scaled(size, bytes, inodes, last.m.Size, sure), basisLast, sure
		}
	}
	if need, ok := t.recordedSize(size); ok {
		return need, basisLast, false
	}
	return diskspace.Guess(t.rel.Name, size), basisGuess, false
}

// unpacked is a generation that tells of the one to be made.
type unpacked struct {
	dir string
	m   *manifest.Manifest
}

// last finds the generation that tells most: one of this very tarball, else the
// newest of its family, in this slot before others. sure says that it was made
// with the same options: what was left out of it is left out again.
func (t *task) last(size int64) (found *unpacked, sure bool) {
	slots, err := t.r.o.Store.Slots()
	if err != nil {
		return nil, false
	}
	mine := func(sl *store.Slot) bool { return sl.Name() == t.slot.Name() }
	slices.SortStableFunc(slots, func(a, b *store.Slot) int {
		switch {
		case mine(a) == mine(b):
			return 0
		case mine(a):
			return -1
		}
		return 1
	})
	for _, sl := range slots {
		gens, err := sl.Generations()
		if err != nil {
			continue
		}
		for _, g := range slices.Backward(gens) {
			m, err := g.Manifest()
			if err != nil || m.Family != t.rel.Family || m.Channel != t.rel.Channel || m.Size <= 0 {
				continue
			}
			alike := t.alike(m)
			if alike && m.Name == t.rel.Name && m.Size == size {
				return &unpacked{g.Dir, m}, true
			}
			if found == nil || alike && !sure {
				found, sure = &unpacked{g.Dir, m}, alike
			}
		}
	}
	return found, sure
}

// alike reports whether a prefix was made as this install makes its own, but
// for the variables and the target, which shape no more than a few small files
// unless what is of other targets is left out.
func (t *task) alike(m *manifest.Manifest) bool {
	var was struct {
		Target string            `json:"target"`
		Env    map[string]string `json:"env"`
	}
	if json.Unmarshal(m.Options, &was) != nil {
		return false
	}
	o := t.in.Repack
	o.Env = was.Env
	if !o.PerTarget() {
		o.Target = was.Target
	}
	recipe, err := repack.Recipe(release.Digest(m.Digest), o)
	return err == nil && recipe.String() == m.Recipe
}

// recordedRuns is how many records of runs are looked at: each may have a
// long audit in it.
const recordedRuns = 3

// recordedSize asks the records of runs, which is all that stays of one that
// installed nothing.
func (t *task) recordedSize(size int64) (diskspace.Need, bool) {
	runs, err := t.slot.Runs()
	if err != nil {
		return diskspace.Need{}, false
	}
	for _, run := range runs[:min(len(runs), recordedRuns)] {
		var rec struct {
			URL    string
			Repack *repack.Result
		}
		if t.slot.ReadRun(run.Name, &rec) != nil || rec.Repack == nil || rec.Repack.Size <= 0 || rec.Repack.Bytes <= 0 {
			continue
		}
		n, err := release.ParseName(path.Base(rec.URL))
		if err != nil || n.Family != t.rel.Family {
			continue
		}
		files := int64(rec.Repack.Files)
		const half = 2048 // of a block, which the end of a file leaves empty
		return diskspace.Scaled(size, rec.Repack.Bytes+files*half, files+files/8+int64(rec.Repack.Links), rec.Repack.Size, false), true
	}
	return diskspace.Need{}, false
}
