package audit

import (
	"io"
	"path"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// omission is what was left out on purpose: names by directory.
type omission map[string][]string

// omittedIn gathers the GPU code that was left out, by the options or by what
// the prefix says of itself.
func (a *auditor) omittedIn() omission {
	if a.leftOut != nil {
		return a.leftOut
	}
	a.leftOut = omission{}
	if a.omitted == nil {
		a.tree.readOmitted(a.leftOut.add)
	}
	for _, p := range a.omitted {
		a.leftOut.add(p)
	}
	return a.leftOut
}

func (o omission) add(p string) {
	if strings.HasSuffix(p, ".kpack") || strings.Contains(p, "/library/") || strings.Contains(p, "/miopen/db/") {
		o[path.Dir(p)] = append(o[path.Dir(p)], path.Base(p))
	}
}

// maxOmitted bounds the bytes of omitted.jsonl that are read. One that cannot
// be read to its end excuses what was read of it.
const maxOmitted = 1 << 30

// readOmitted reads omitted.jsonl, if there is one.
func (t *tree) readOmitted(gone func(path string)) {
	if e := t.entries[manifest.OmittedName]; e == nil || !e.isFile() {
		return
	}
	f, err := t.open(manifest.OmittedName)
	if err != nil {
		return
	}
	defer f.Close() // opened for reading
	_ = manifest.ScanOmitted(io.LimitReader(f, maxOmitted), maxEntries, func(o manifest.Omission) {
		if o.Needs == "" {
			gone(o.Path)
		}
	})
}

// archive tells whether an archive that e names was left out. The directory may
// be gone with it, so that names alone are compared; AMD marks the GPU in the
// last part.
func (o omission) archive(e *entry) bool {
	for _, p := range e.kpack.paths {
		if path.IsAbs(p) {
			continue
		}
		dir, base := path.Split(path.Join(path.Dir(e.path), p))
		before, after, _ := strings.Cut(base, gfxMark)
		for _, name := range o[path.Clean(dir)] {
			rest, ok := strings.CutPrefix(name, before)
			gfx, ok2 := strings.CutSuffix(rest, after)
			if name == base || ok && ok2 && isGFX(gfx) {
				return true
			}
		}
	}
	return false
}
