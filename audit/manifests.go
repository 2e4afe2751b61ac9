package audit

import (
	"context"
	"encoding/json"

	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// readManifest reads what a prefix says of itself, and takes the target from
// there unless it is known. A family or multiarch is no target: what one GPU of
// several needs is not asked then.
func (a *auditor) readManifest() {
	if e := a.tree.entries[manifest.Name]; e != nil && e.isFile() {
		f, err := a.tree.root.Open(manifest.Name)
		if err == nil {
			a.prefix, err = manifest.Read(f)
			f.Close() // opened for reading
		}
		a.badList = err
	}
	if a.target == "" && a.prefix != nil {
		var o struct {
			Target string `json:"target"`
		}
		if json.Unmarshal(a.prefix.Options, &o) == nil {
			a.target = o.Target
		}
	}
	if !gfx.IsTarget(a.target) {
		a.target = ""
	}
}

// manifests checks that a prefix of ours says what it is. One that somebody
// else made has no such files.
func manifests(_ context.Context, a *auditor) error {
	t := a.tree
	if t.rocm == "" {
		return nil
	}
	f := Finding{Rule: RuleManifest, Severity: Warning, Path: manifest.Name,
		Hint: "the programs of the prefix work, but nothing says any more what it is; repack the release"}
	switch {
	case a.badList != nil:
		f.Detail = "cannot be read: " + a.badList.Error()
	case t.entries[manifest.Name] == nil && t.entries[manifest.FilesName] != nil:
		f.Detail = "is missing: it says which release this is"
	case a.prefix != nil && t.entries[manifest.FilesName] == nil:
		f.Path, f.Detail = manifest.FilesName, "is missing: it lists the files with their digests"
	default:
		return nil
	}
	a.file(f)
	return nil
}
