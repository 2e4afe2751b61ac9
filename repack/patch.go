package repack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/patchelf"
	"github.com/rocm-nightly/rocm-nightly/wrap"
)

// patch reads the facts of every ELF file of the tree, plans the edits from
// all of them together and applies them in parallel.
func (m *maker) patch(ctx context.Context) error {
	m.o.Event(Event{Stage: "patch"})
	if err := m.readFacts(ctx); err != nil {
		return err
	}
	if err := m.leaveOut(ctx); err != nil {
		return err
	}
	edits := m.runPaths()
	byPath := make(map[string]*manifest.File, len(m.files))
	for i := range m.files {
		byPath[m.files[i].Path] = &m.files[i]
	}
	p := &patcher{m: m, byPath: byPath}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(m.jobs)
	for _, e := range edits {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return p.edit(e)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	p.twins()
	m.sortSkips()
	return nil
}

// runPaths plans the edits of the tree's ELF files.
func (m *maker) runPaths() []wrap.RunPathEdit {
	return wrap.RunPaths(m.files, wrap.RunPathOptions{Tree: m.tree, Tag: m.o.tag(), AddRPath: m.o.AddRPath, Interp: m.o.Interpreter})
}

func (m *maker) sortSkips() {
	slices.SortFunc(m.res.Skips, func(a, b Skip) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Reason, b.Reason)) })
}

// readFacts reads the headers of every file that begins with ELF's magic. A
// file that is no valid ELF stays as it is; the audit judges it.
func (m *maker) readFacts(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(m.jobs)
	firsts := map[string]*manifest.File{}
	for i := range m.files {
		f := &m.files[i]
		if f.ELF == nil {
			continue
		}
		if f.Same != "" {
			continue
		}
		firsts[f.Path] = f
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return m.readFact(f)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i := range m.files {
		f := &m.files[i]
		if first := firsts[f.Same]; f.Same != "" && first != nil {
			f.ELF = first.ELF
		}
		if f.ELF != nil && f.Same == "" {
			m.res.ELF.Seen++
		}
	}
	return nil
}

func (m *maker) readFact(f *manifest.File) (err error) {
	in, err := m.root.Open(f.Path)
	if err != nil {
		return fmt.Errorf("read ELF headers: %w", err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	parsed, err := patchelf.Parse(in, f.Size)
	var format *patchelf.FormatError
	switch {
	case errors.As(err, &format) || errors.Is(err, patchelf.ErrNotELF):
		f.ELF = nil // not one after all
		return nil
	case err != nil:
		return fmt.Errorf("read ELF headers of %s: %w", f.Path, err)
	}
	f.ELF = parsed.Facts()
	return nil
}

// patcher applies edits; what its goroutines share is behind mu.
type patcher struct {
	m      *maker
	byPath map[string]*manifest.File
	mu     sync.Mutex
}

func (p *patcher) edit(e wrap.RunPathEdit) error {
	f := p.byPath[e.Path]
	res, err := patchelf.EditIn(p.m.root, e.Path, e.Edit)
	var refused *patchelf.RefusedError
	if errors.As(err, &refused) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.m.skip(e.Path, refused.Error())
		p.m.res.ELF.Skipped++
		return nil
	}
	if err != nil {
		return fmt.Errorf("patch %s: %w", e.Path, err)
	}
	if !res.Changed {
		return nil
	}
	sum, size, err := p.m.hash(e.Path)
	if err != nil {
		return err
	}
	if f.Before == "" {
		f.Before = f.SHA256
	}
	f.SHA256, f.Size, f.ELF = sum, size, res.After
	f.Edits = append(f.Edits, e.Rules...)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.m.res.ELF.Patched++
	return nil
}

// twins gives the other names of an edited inode its new facts.
func (p *patcher) twins() {
	for i := range p.m.files {
		f := &p.m.files[i]
		first := p.byPath[f.Same]
		if f.Same == "" || first == nil || first.SHA256 == f.SHA256 {
			continue
		}
		f.SHA256, f.Size, f.Before, f.Edits, f.ELF = first.SHA256, first.Size, first.Before, first.Edits, first.ELF
	}
}
