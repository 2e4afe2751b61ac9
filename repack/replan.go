package repack

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/patchelf"
	"github.com/rocm-nightly/rocm-nightly/unpack"
	"github.com/rocm-nightly/rocm-nightly/wrap"
)

// headSize is how much of a file shows whether a text rule could want it.
const headSize = 512

// settled applies the text rules to a file that they were applied to when it
// was unpacked. They are idempotent, so that a change means that they would
// now come out differently: an interpreter has moved, say. It also finds again
// the scripts that nothing can run.
func (c *cloner) settled(f *manifest.File, in *os.File) error {
	if f.ELF != nil || f.Size == 0 || f.Size > unpack.MaxEdit {
		return nil
	}
	name := strings.TrimPrefix(f.Path, treeDir+"/")
	head := make([]byte, min(headSize, f.Size))
	if _, err := in.ReadAt(head, 0); err != nil {
		return unfit("%w", err)
	}
	if !c.scripts.Wants(name, head) {
		return nil
	}
	data := make([]byte, f.Size)
	if _, err := io.ReadFull(io.NewSectionReader(in, 0, f.Size), data); err != nil {
		return unfit("%w", err)
	}
	if !c.scripts.Wants(name, data[:min(chunkSize, f.Size)]) {
		return nil
	}
	_, rules, err := c.scripts.Edit(name, fs.FileMode(f.Mode), data)
	if err != nil {
		return unfit("%w", err)
	}
	if len(rules) > 0 {
		return unfit("the rules of today would edit %s", f.Path)
	}
	return nil
}

// replan plans the ELF edits of the tree as it is. What comes out are the
// files that were left as they are when it was made; for all others there is
// nothing to do, or the rules of today would do something else.
func (c *cloner) replan(ctx context.Context) error {
	m := c.m
	files := make(map[string]*manifest.File, len(m.files))
	for i := range m.files {
		files[m.files[i].Path] = &m.files[i]
	}
	for _, u := range c.scripts.Unresolved() {
		f := files[treeDir+"/"+u.Path]
		// In the fhs profile the host is not asked.
		if m.o.Profile == wrap.Nix && slices.Contains(f.Edits, wrap.RuleInterpreter) {
			return unfit("the interpreter %s of %s is gone: %s", u.Interpreter, f.Path, u.Reason)
		}
	}
	m.unresolved(c.scripts)
	for _, e := range m.runPaths() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.unedited(e, files[e.Path].Size); err != nil {
			return err
		}
	}
	m.sortSkips()
	return nil
}

// unedited works out why one file was not edited. It writes nothing.
func (c *cloner) unedited(e wrap.RunPathEdit, size int64) error {
	in, err := openPlain(c.m.root, e.Path)
	if err != nil {
		return err
	}
	defer in.Close() // opened for reading
	file, err := patchelf.Parse(in, size)
	if err != nil {
		return unfit("%s: %w", e.Path, err)
	}
	plan, err := file.Plan(e.Edit)
	var refused *patchelf.RefusedError
	switch {
	case errors.As(err, &refused):
		c.m.skip(e.Path, refused.Error())
		c.m.res.ELF.Skipped++
		return nil
	case err != nil:
		return unfit("%s: %w", e.Path, err)
	case plan.Empty():
		return nil
	}
	return unfit("the rules of today would edit %s", e.Path)
}
