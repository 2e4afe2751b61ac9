package repack

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// leftOut reads the omitted.jsonl of another prefix, which is there if anything
// was to be left out, and must be what this version would write of it.
func (w *origin) leftOut(src *os.Root, o Options) error {
	if len(o.Omit) == 0 {
		if len(w.manifest.Omitted) > 0 {
			return fmt.Errorf("its %s contradicts itself", manifest.Name)
		}
		return nil
	}
	in, err := openPlain(src, manifest.OmittedName)
	if err != nil {
		return err
	}
	defer in.Close() // opened for reading
	limit := maxEntries
	if o.Limits.MaxEntries > 0 {
		limit = o.Limits.MaxEntries
	}
	err = asWritten(in, manifest.OmittedName, func(in io.Reader) (err error) {
		w.omitted, err = manifest.ReadOmitted(in, limit)
		return err
	}, func(out io.Writer) error { return manifest.WriteOmitted(out, w.omitted) })
	if err != nil {
		return err
	}
	if err := w.checkOmitted(o); err != nil {
		return fmt.Errorf("read %s: %w", manifest.OmittedName, err)
	}
	if !maps.Equal(manifest.CountOmitted(w.omitted), w.manifest.Omitted) {
		return fmt.Errorf("%s and %s contradict each other", manifest.Name, manifest.OmittedName)
	}
	return nil
}

// checkOmitted tells whether the list is one that Into could have made.
func (w *origin) checkOmitted(o Options) error {
	there := make(map[string]bool, len(w.files))
	for i := range w.files {
		there[w.files[i].Path] = true
	}
	for i := range w.omitted {
		e := &w.omitted[i]
		switch {
		case i > 0 && e.Path <= w.omitted[i-1].Path:
			return fmt.Errorf("%q is not in its place", e.Path)
		case !fs.ValidPath(e.Path) || !inTree(e.Path) || e.Path == treeDir || len(e.Path) > maxName || e.Size < 0 || e.Size > maxBytes:
			return errors.New("no prefix leaves out such an entry")
		case e.Kind != manifest.Regular && e.Kind != manifest.Symlink && e.Kind != manifest.Dir:
			return fmt.Errorf("%q is of no kind", e.Path)
		case !slices.Contains(o.Omit, e.Rule):
			return fmt.Errorf("%q was left out for %q", e.Path, e.Rule)
		case there[e.Path] != (e.Needs != "") || e.Needs != "" && !there[e.Needs]:
			return fmt.Errorf("%q is there, or is not", e.Path)
		}
	}
	return nil
}
