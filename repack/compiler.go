package repack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/wrap"
)

// compiler makes the compiler name the final prefix in the programs that it
// builds. A tree that is to be packaged has none unless it was told: its
// compiler then names the place where it runs, and not that of the staging.
func (m *maker) compiler(ctx context.Context) error {
	if m.o.FinalPrefix == "" {
		return nil
	}
	edits, left, err := wrap.CompilerPaths(m.root, m.tree, m.files, path.Join(m.o.FinalPrefix, m.tree))
	if err != nil {
		return fmt.Errorf("repack: %w", err)
	}
	for _, l := range left {
		m.skip(l.Path, l.Reason)
	}
	for _, e := range edits {
		if err := ctx.Err(); err != nil {
			return err
		}
		at := slices.IndexFunc(m.files, func(f manifest.File) bool { return f.Path == e.Path })
		if err := m.rewrite(&m.files[at], e); err != nil {
			return fmt.Errorf("edit %s: %w", e.Path, err)
		}
	}
	m.sortSkips()
	return nil
}

// rewrite gives one file new content, and the manifest what became of it. The
// file becomes a new inode: the old one may be that of another prefix.
func (m *maker) rewrite(f *manifest.File, e wrap.FileEdit) error {
	if err := m.replace(f, e.Data); err != nil {
		return err
	}
	sum := sha256.Sum256(e.Data)
	if f.Before == "" {
		f.Before = f.SHA256
	}
	f.SHA256, f.Size = hex.EncodeToString(sum[:]), int64(len(e.Data))
	f.Edits = slices.DeleteFunc(slices.Clone(f.Edits), func(rule string) bool { return rule == wrap.RuleCompilerPath })
	if f.Edits = append(f.Edits, e.Rules...); len(f.Edits) == 0 {
		f.Edits, f.Before = nil, ""
	}
	return nil
}

// replace puts a new file of the same mode and time in the place of one.
func (m *maker) replace(f *manifest.File, data []byte) (err error) {
	name := path.Join(path.Dir(f.Path), ".rocm-nightly-new")
	out, err := m.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	err = errors.Join(err, out.Chmod(fs.FileMode(f.Mode)), out.Close())
	if err == nil {
		err = m.stamp(name, f.MTime)
	}
	if err == nil {
		err = m.root.Rename(name, f.Path)
	}
	if err != nil {
		return errors.Join(err, m.root.Remove(name))
	}
	return nil
}
