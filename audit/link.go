package audit

import (
	"context"
	"path"
	"strings"
)

// links checks that every link leads to something in the tree, and does so
// wherever the tree stands.
func links(_ context.Context, a *auditor) error {
	known := danglingLinks.compile()
	for _, e := range a.tree.all {
		if e.isLink() && e.err == nil {
			a.link(e, known)
		}
	}
	return nil
}

func (a *auditor) link(e *entry, known []glob) {
	t := a.tree
	in, rocm := t.ofROCm(e.path)
	if !rocm {
		in = e.path
	}
	p := t.follow(path.Dir(e.path), e.link)
	switch {
	case p.outside != "" && p.via == "":
		a.file(Finding{Rule: RuleEscape, Severity: Fatal, Path: e.path, Subject: e.link,
			Detail: "leads out of the tree, to " + e.link, Hint: "remove it, or make it lead to the tree's own file"})
	case p.outside != "":
		// The link that it goes through is reported for itself.
	case path.IsAbs(e.link):
		a.file(Finding{Rule: RuleLink, Severity: Required, Path: e.path, Subject: e.link,
			Detail: "is absolute and breaks when the tree moves: " + e.link, Hint: "make it relative"})
	case a.kpackLost && e.path == kpackDir:
		// The root's link to what is lost.
	case p.hidden: // which is said of the directory
	case p.found() || rocm && matchAny(known, in) || !p.loop && t.broken(p.via):
	default:
		f := Finding{Rule: RuleLink, Severity: Warning, Path: e.path, Subject: e.link,
			Detail: "leads nowhere: " + e.link, Hint: "what it leads to is not in the release, or was lost"}
		if p.loop {
			f.Detail, f.Hint = "leads in a circle: "+e.link, "remove it"
		}
		if t.licenseLink(e.path) {
			f.Rule, f.Detail, f.Hint = RuleLicense, "is lost: the license was in "+e.link, "it may not be passed on without; unpack the release again"
		}
		if public(in) || strings.HasPrefix(in, "bin/") {
			f.Severity = Required
		}
		a.file(f)
	}
}

// broken tells whether a link, which another one leads to, is a finding itself.
func (t *tree) broken(link string) bool {
	e := t.entries[link]
	if e == nil || link == "" {
		return false
	}
	p := t.follow(path.Dir(link), e.link)
	return p.outside == "" && !p.found()
}
