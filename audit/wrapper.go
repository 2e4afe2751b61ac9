package audit

import (
	"context"
	"path"
)

// wrappers checks the bin directory of a prefix against that of its ROCm tree:
// every program has a wrapper or a link of its name, and each of those leads to
// a program. A bare tree has none.
func wrappers(_ context.Context, a *auditor) error {
	t := a.tree
	if t.rocm == "" {
		return nil
	}
	for _, e := range t.in[t.inROCm("bin")] {
		if p := t.follow(".", e.path); p.entry == nil || !p.entry.executable() {
			continue
		}
		a.checked["wrappers"]++
		name := path.Join("bin", path.Base(e.path))
		if t.entries[name] == nil {
			a.file(Finding{Rule: RuleWrapper, Severity: Required, Path: name, Subject: path.Base(e.path),
				Detail: "is missing: " + e.path + " has no wrapper", Hint: "repack the release"})
		}
	}
	for _, e := range t.in["bin"] {
		a.wrapper(e)
	}
	return nil
}

// wrapper checks one entry of the prefix's bin.
func (a *auditor) wrapper(e *entry) {
	t := a.tree
	f := Finding{Rule: RuleWrapper, Severity: Required, Path: e.path, Subject: path.Base(e.path), Hint: "repack the release"}
	switch {
	case !e.isFile():
		return // where links lead, and whether to a program, is said by others
	case !e.executable():
		f.Detail = "cannot be executed"
	default:
		target := t.inROCm(path.Join("bin", path.Base(e.path)))
		p := t.follow(".", target)
		switch {
		case p.entry == nil:
			f.Detail = "starts " + target + ", which does not exist"
		case !p.entry.executable():
			f.Detail = "starts " + target + ", which cannot be executed"
		default:
			return
		}
	}
	a.file(f)
}
