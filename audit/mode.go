package audit

import (
	"context"
	"fmt"
	"io/fs"
)

// modes checks that nothing in the tree gives rights away.
func modes(_ context.Context, a *auditor) error {
	for _, e := range a.tree.all {
		if e.isLink() {
			continue
		}
		f := Finding{Rule: RuleMode, Severity: Fatal, Path: e.path}
		switch {
		case !e.isFile() && !e.isDir():
			f.Subject, f.Detail, f.Hint = "special", "is neither file, directory nor link", "remove it"
		case e.isFile() && e.mode&(fs.ModeSetuid|fs.ModeSetgid) != 0 || e.isDir() && e.mode&fs.ModeSetuid != 0:
			f.Subject = "set-id"
			f.Detail = fmt.Sprintf("gives the rights of its owner or group to whoever runs it (mode %s)", e.mode)
			f.Hint = "chmod ug-s"
		case e.mode&0o002 != 0:
			f.Subject = "world-writable"
			f.Detail = fmt.Sprintf("can be changed by every user (mode %s)", e.mode)
			f.Hint = "chmod o-w"
		default:
			continue
		}
		a.file(f)
	}
	return nil
}
