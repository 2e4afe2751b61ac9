package bump

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/rocm-nightly/rocm-nightly/bump/forge"
	"github.com/rocm-nightly/rocm-nightly/bump/pinfile"
)

// reader reads a file as it stands before the bump.
type reader func(ctx context.Context, path string) (forge.File, error)

// change is what a plan makes of the files that a reader gives.
type change struct {
	before map[string]forge.File // those that were read and are there
	files  []forge.File          // those that differ, as they shall be, by path
	edits  []Edit                // by path and key
	lines  []int                 // of edits, in the file as it was
	pins   []Pin                 // that the edits are of, by target
	diff   string
	older  string // why the files have something newer already; "" if they have not
}

// makeChange edits the files of p. All edits are made, or none. Whatever comes
// out fetches what the pins name, or it is an error.
func makeChange(ctx context.Context, p *plan, read reader, migrate bool) (_ *change, err error) {
	m := &maker{ctx: ctx, read: read, migrate: migrate, c: &change{before: map[string]forge.File{}}, after: map[string][]byte{}}
	g := newGuard(migrate)
	for i := range p.wants {
		w := &p.wants[i]
		if err := m.edit(w, g); err != nil {
			return nil, err
		}
	}
	for i := range p.wants {
		if err := m.follow(&p.wants[i], g); err != nil {
			return nil, err
		}
	}
	if err := g.verdict(); err != nil {
		return nil, err
	}
	if m.c.older, err = m.older(p); err != nil {
		return nil, err
	}
	return m.finish(p), nil
}

// maker is a change in the making.
type maker struct {
	ctx     context.Context
	read    reader
	migrate bool
	c       *change
	after   map[string][]byte
}

func (m *maker) edit(w *want, g *guard) error {
	f, err := m.read(m.ctx, w.path)
	if err != nil {
		return err
	}
	m.c.before[w.path] = f
	res, err := pinfile.Edit(w.path, f.Text, w.set, w.o)
	if err != nil {
		return err
	}
	for _, c := range res.Changes {
		m.note(Edit{w.path, c.Key, w.pins[c.Key].Target, c.From, c.To}, c.Line)
	}
	text, moved, err := g.look(w, f.Text, res.Text)
	if err != nil {
		return err
	}
	for _, e := range moved {
		m.note(e.Edit, e.line)
	}
	m.after[w.path] = text
	return nil
}

func (m *maker) note(e Edit, line int) {
	m.c.edits = append(m.c.edits, e)
	m.c.lines = append(m.c.lines, line)
}

// follow brings along the files that are made from an edited one.
func (m *maker) follow(w *want, g *guard) error {
	if bytes.Equal(m.after[w.path], m.c.before[w.path].Text) {
		return nil
	}
	files, err := pinfile.Follow(w.path, m.after[w.path], w.o, func(path string) ([]byte, error) {
		if text, edited := m.after[path]; edited {
			return text, nil
		}
		f, err := m.read(m.ctx, path)
		return f.Text, err
	})
	if err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if err := checkPath(path); err != nil {
			return err
		}
		f, err := m.read(m.ctx, path)
		if err == nil {
			m.c.before[path] = f
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := g.followed(w, path, files[path]); err != nil {
			return err
		}
		m.after[path] = files[path]
	}
	return nil
}

// finish puts what differs in order.
func (m *maker) finish(p *plan) *change {
	c := m.c
	for _, path := range slices.Sorted(maps.Keys(m.after)) {
		f, there := c.before[path]
		if there && bytes.Equal(f.Text, m.after[path]) {
			continue
		}
		if !there {
			f = forge.File{Path: path, Mode: "100644"}
		}
		c.diff += unified(path, f.Text, m.after[path])
		f.Text = m.after[path]
		c.files = append(c.files, f)
	}
	c.sort()
	touched := map[string]Pin{}
	for _, w := range p.wants {
		for _, e := range w.from {
			if touches(c.edits, e.pin) {
				touched[e.pin.Target] = e.pin
			}
		}
	}
	for _, target := range slices.Sorted(maps.Keys(touched)) {
		c.pins = append(c.pins, touched[target])
	}
	return c
}

// sort orders the edits by path and key.
func (c *change) sort() {
	order := make([]int, len(c.edits))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := c.edits[i], c.edits[j]
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Attr, b.Attr))
	})
	edits, lines := make([]Edit, len(order)), make([]int, len(order))
	for i, j := range order {
		edits[i], lines[i] = c.edits[j], c.lines[j]
	}
	c.edits, c.lines = edits, lines
}

// paths are those that the change edits.
func (c *change) paths() []string {
	var out []string
	for _, f := range c.files {
		out = append(out, f.Path)
	}
	return out
}

// readAt reads files of a commit; only a regular one is a file of pins.
func readAt(at place, commit, branch string) reader {
	return func(ctx context.Context, path string) (forge.File, error) {
		f, err := at.File(ctx, commit, path, pinfile.MaxLen)
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, forge.ErrNotFound):
			return f, fmt.Errorf("read %s: no such file on branch %s: %w", path, branch, fs.ErrNotExist)
		case err != nil:
			return f, err
		case !regular(f.Mode):
			return f, fmt.Errorf("read %s: on branch %s it is a %s, not a regular file", path, branch, modeName(f.Mode))
		}
		return f, nil
	}
}

func modeName(mode string) string {
	switch mode {
	case "120000":
		return "symlink"
	case "160000":
		return "submodule"
	case "040000":
		return "directory"
	}
	return "file of mode " + mode
}
