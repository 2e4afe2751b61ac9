package store

import (
	"context"
	"errors"
	"slices"
)

// errUnmeasured is matched when it cannot be told what files share.
var errUnmeasured = errors.New("the file system does not tell what is shared")

// freedBy measures what the removal of trees frees: the blocks of the files all
// of whose names are in them, without what reflinks share with others.
func freedBy(ctx context.Context, dirs []string) int64 {
	if len(dirs) == 0 {
		return 0
	}
	extents := mayReflink(dirs[0])
	var freed int64
	names := map[inode]uint64{}
	blocks := map[inode]int64{}
	links := map[inode]uint64{}
	for _, dir := range dirs {
		t := &tree{dir: dir}
		if t.walk(ctx, extents) != nil {
			continue
		}
		if extents {
			if m, err := t.mapped(ctx); err == nil {
				t.alone -= m.alone
				for i := range t.shared {
					t.shared[i].size -= m.inodes[t.shared[i].id]
				}
			}
		}
		freed += t.alone
		for _, p := range t.shared {
			names[p.id] += t.names[p.id]
			blocks[p.id], links[p.id] = p.size, p.links
		}
	}
	for id, n := range names {
		if n >= links[id] {
			freed += blocks[id]
		}
	}
	return freed
}

// measure looks at what generations of the slot occupy.
func (sl *Slot) measure(ctx context.Context, names []string) ([]*tree, error) {
	extents := mayReflink(sl.store.root)
	var trees []*tree
	for _, name := range names {
		t := &tree{slot: name, dir: sl.path(generationsName, name)}
		if err := t.walk(ctx, extents); err != nil {
			return nil, err
		}
		trees = append(trees, t)
	}
	if extents {
		if err := mapAll(ctx, trees); err != nil {
			return nil, errors.Join(errUnmeasured, ctx.Err(), err)
		}
	}
	return trees, nil
}

// occupied is what some of the trees take together, in bytes.
func occupied(trees []*tree, names []string) int64 {
	some := slices.DeleteFunc(slices.Clone(trees), func(t *tree) bool { return !slices.Contains(names, t.slot) })
	u := &Usage{Slots: map[string]int64{}, Generations: map[string]GenerationUsage{}}
	u.sum(some)
	return u.Total
}
