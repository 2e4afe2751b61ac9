package doctor

import (
	"context"
	"fmt"
	"path"
	"strings"
)

// checkLibraries names what an install lacks of this host, by the packages of
// this distribution.
func checkLibraries(ctx context.Context, x *exam) error {
	if x.Missing == nil {
		return nil
	}
	for _, tree := range x.trees() {
		// A prefix knows what is in it: the audit takes that.
		dir := strings.TrimSuffix(tree, "/opt/rocm")
		if dir == "" || !x.isDir(path.Join(dir, "opt/rocm")) {
			dir = tree
		}
		if !x.isDir(dir) {
			continue
		}
		missing, err := x.Missing(ctx, dir)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			x.find(Finding{Check: "libraries", Severity: Warning, Subject: dir, Detail: err.Error(),
				Why: "which libraries of the host it lacks is not known", Remedy: []string{"rocm-nightly audit " + quote(dir)}})
			continue
		}
		x.missing(dir, missing)
	}
	return nil
}

func (x *exam) missing(dir string, all []Missing) {
	required := 0
	for _, group := range []bool{true, false} {
		var names []string
		by := ""
		for _, m := range all {
			if m.Required == group {
				if names = append(names, m.Name); by == "" {
					by = m.By
				}
			}
		}
		if group {
			required = len(names)
		}
		if len(names) == 0 {
			continue
		}
		f := Finding{Check: "libraries", Severity: Note, Subject: dir, Detail: fmt.Sprintf("it needs %s of the host (%s does, first)", strings.Join(names, ", "), by),
			Why: "parts that few use do not start: one rocgdb for each Python, tests"}
		if group {
			f.Severity = Broken
			f.Why = "programs that need it end with \"cannot open shared object file\""
		}
		command, rest := x.distro.Install(names...)
		if command != "" {
			f.Remedy = append(f.Remedy, command)
		}
		if len(rest) > 0 {
			f.Remedy = append(f.Remedy, "install what this distribution has "+strings.Join(rest, ", ")+" in")
		}
		x.find(f)
	}
	if required == 0 {
		x.fact("%s: this host has all that its programs need", dir)
	}
}
