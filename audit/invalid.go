package audit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/rocm-nightly/rocm-nightly/patchelf"
)

// invalidELF reports ELF files for this machine that cannot be parsed or that
// neither the kernel nor the loader can map, and whatever else could not be read.
func invalidELF(_ context.Context, a *auditor) error {
	optional := optionalObjects.compile()
	for _, e := range a.tree.all {
		switch {
		case e.err != nil:
			f := Finding{Rule: RuleUnreadable, Severity: Warning, Path: e.path,
				Detail: "cannot be read, and was not checked: " + e.err.Error(),
				Hint:   "run the audit as the owner of the tree"}
			if errors.Is(e.err, fs.ErrNotExist) || errors.Is(e.err, errReplaced) {
				f.Hint = "run the audit again when nobody changes the tree"
			}
			a.file(f)
		case e.badELF != nil:
			a.damaged(e, "is a damaged ELF file: "+e.badELF.Error(), Fatal, optional)
		case len(e.faults) > 0:
			a.faulty(e, optional)
		}
	}
	return nil
}

// faulty reports the gravest of the faults of a file: one damage tends to break
// several rules.
func (a *auditor) faulty(e *entry, optional []glob) {
	worst := max(slices.IndexFunc(e.faults, func(f patchelf.Fault) bool { return !f.Harmless }), 0)
	f, severity := e.faults[worst], Fatal
	detail := "is a damaged ELF file: " + f.Detail + " (" + f.Rule + ")"
	if f.Harmless {
		severity = Warning
		detail = "is an odd ELF file: " + f.Detail + " (" + f.Rule + ")"
	}
	if more := len(e.faults) - 1; more > 0 {
		detail += fmt.Sprintf(", and %d more", more)
	}
	a.damaged(e, detail, severity, optional)
}

func (a *auditor) damaged(e *entry, detail, severity string, optional []glob) {
	hint := "an edit or a transfer broke it; unpack the release again"
	in, _ := a.tree.ofROCm(e.path)
	switch {
	case severity == Warning:
		hint = "it loads; leave it alone, tools that edit it may break it"
	case matchAny(optional, in):
		severity = Warning
	}
	a.file(Finding{Rule: RuleInvalidELF, Severity: severity, Path: e.path, Detail: detail, Hint: hint})
}
