package audit

import "context"

// invalidELF reports ELF files for this machine that cannot be parsed, and
// whatever else could not be read.
func invalidELF(_ context.Context, a *auditor) error {
	for _, e := range a.tree.all {
		switch {
		case e.err != nil:
			a.file(Finding{Rule: RuleUnreadable, Severity: Warning, Path: e.path,
				Detail: "cannot be read, and was not checked: " + e.err.Error(),
				Hint:   "run the audit as the owner of the tree"})
		case e.badELF != nil:
			a.file(Finding{Rule: RuleInvalidELF, Severity: Fatal, Path: e.path,
				Detail: "is a damaged ELF file: " + e.badELF.Error(),
				Hint:   "an edit or a transfer broke it; unpack the release again"})
		}
	}
	return nil
}
