package audit

import (
	"context"
	"path"
	"regexp"
	"strings"
)

// licenseName matches the files that say under which terms a part may be used.
var licenseName = regexp.MustCompile(`(?i)^(licen[sc]e|copying|copyright|notice)`)

// licenseLinks is where a prefix gathers them.
const licenseLinks = "share/licenses/rocm-nightly"

// licenses checks that the terms of use came along: whoever passes the tree on
// has to.
func licenses(_ context.Context, a *auditor) error {
	t := a.tree
	found := 0
	for _, e := range t.all {
		in, rocm := t.ofROCm(e.path)
		if rocm && !e.isDir() && (licenseName.MatchString(path.Base(in)) || strings.HasPrefix(in, "share/licenses/")) && a.whole(e) {
			found++
		}
	}
	a.checked["licenses"] = found
	gathered := t.in[licenseLinks]
	switch {
	case found == 0 && a.tree.hides("."):
	case found == 0:
		a.file(Finding{Rule: RuleLicense, Severity: Warning, Path: t.inROCm("share/doc"), Subject: "LICENSE",
			Detail: "holds no license, and nor does anything else in the tree", Hint: "it may not be passed on without; unpack the release again"})
	case t.rocm != "" && a.prefix != nil && len(gathered) == 0:
		a.file(Finding{Rule: RuleLicense, Severity: Warning, Path: licenseLinks,
			Detail: "is missing or empty: the licenses of the tree are gathered in it", Hint: "repack the release"})
	}
	return nil
}

// licenseLink tells whether a link is one of those that gather the licenses.
func (t *tree) licenseLink(p string) bool {
	return t.rocm != "" && strings.HasPrefix(p, licenseLinks+"/")
}
