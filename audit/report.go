package audit

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Schema is the version of the report's format.
const Schema = 1

// The severities of a finding.
const (
	Fatal    = "fatal"    // the tree must not be used
	Required = "required" // something that a user starts does not work
	Warning  = "warning"  // worth knowing
)

// The policies of Refused.
const (
	RefuseRegression = "regression"
	RefuseAll        = "all"
	RefuseNever      = "never"
)

// The names of the rules. They are part of the format: a configuration and a
// stored report name them.
const (
	RuleTree           = "tree"
	RuleNeeded         = "needed"
	RuleForeignLibrary = "foreign-library"
	RuleInvalidELF     = "invalid-elf"
	RuleKpack          = "kpack"
	RuleInterpreter    = "interpreter"
	RuleLink           = "link"
	RuleEscape         = "escape"
	RuleLeakedPath     = "leaked-path"
	RuleMode           = "mode"
	RuleUnreadable     = "unreadable"
	RuleWrapper        = "wrapper"
	RuleRootShape      = "root-shape"
	RuleVersion        = "version"
)

// Finding is one thing that is wrong. Names in it come from the tree and may be
// hostile: what a terminal or a log could take for anything but text is written
// as an escape of Go ("\x1b"), and a backslash in Path or Subject is doubled.
type Finding struct {
	Rule     string `json:"rule"`
	Severity string `json:"severity"`
	Path     string `json:"path"`              // relative to the audited directory
	Subject  string `json:"subject,omitempty"` // what Path lacks or holds: a library, an interpreter, a link target
	Detail   string `json:"detail"`
	Hint     string `json:"hint,omitempty"` // what to do about it
}

// Counts sums up the findings.
type Counts struct {
	Fatal    int            `json:"fatal"`
	Required int            `json:"required"`
	Warning  int            `json:"warning"`
	Rules    map[string]int `json:"rules"` // findings by rule
}

// Report is what an audit says.
type Report struct {
	Schema   int            `json:"schema"`
	Dir      string         `json:"dir"`    // as it was given
	Layout   string         `json:"layout"` // root (has opt/rocm) or tree
	Scope    string         `json:"scope"`
	Findings []Finding      `json:"findings"`
	Counts   Counts         `json:"counts"`
	Checked  map[string]int `json:"checked"` // how many of each thing were looked at
	Allowed  int            `json:"allowed"` // findings left out because they are allowed
}

// report closes the run.
func (a *auditor) report(dir string, allow *allowList) *Report {
	r := &Report{Schema: Schema, Dir: dir, Layout: a.tree.layout(), Scope: a.scope, Findings: []Finding{}, Checked: a.checked}
	r.Counts.Rules = map[string]int{}
	for _, f := range a.findings {
		if allow.has(f) {
			r.Allowed++
			continue
		}
		// Only now: an Allow is compared with the real name.
		f = f.printable()
		r.Findings = append(r.Findings, f)
		r.Counts.add(f)
	}
	slices.SortFunc(r.Findings, compare)
	return r
}

func (c *Counts) add(f Finding) {
	c.Rules[f.Rule]++
	switch f.Severity {
	case Fatal:
		c.Fatal++
	case Required:
		c.Required++
	default:
		c.Warning++
	}
}

// compare orders findings: the gravest first, then by rule, path and subject.
func compare(a, b Finding) int {
	return cmp.Or(
		cmp.Compare(rank(a.Severity), rank(b.Severity)),
		cmp.Compare(a.Rule, b.Rule),
		cmp.Compare(a.Path, b.Path),
		cmp.Compare(a.Subject, b.Subject),
		cmp.Compare(a.Detail, b.Detail),
	)
}

func rank(severity string) int {
	switch severity {
	case Fatal:
		return 0
	case Required:
		return 1
	}
	return 2
}

// Refused returns the findings for which a tree is refused, in the report's
// order. With RefuseRegression, which "" is too, those are the fatal ones and
// the required ones that base lacks; base is the report of the tree in use, nil
// when there is none. RefuseAll ignores base; RefuseNever refuses nothing.
//
// A library whose file name changes with every night is the same finding:
// libfoo.so.7.1 and libfoo.so.7.2 are not told apart.
func (r *Report) Refused(base *Report, mode string) []Finding {
	if mode == RefuseNever {
		return nil
	}
	known := map[string]bool{}
	if base != nil && mode != RefuseAll {
		for _, f := range base.Findings {
			if f.Severity != Warning {
				known[f.identity()] = true
			}
		}
	}
	var out []Finding
	for _, f := range r.Findings {
		if f.Severity == Fatal || f.Severity == Required && !known[f.identity()] {
			out = append(out, f)
		}
	}
	return out
}

// identity is the same for the same finding in two nights.
func (f Finding) identity() string {
	return f.Rule + "\x00" + unversioned(f.Path) + "\x00" + f.Subject
}

// unversioned takes the version off the name of a shared library.
func unversioned(p string) string {
	dir, base := path.Split(p)
	if name, _, ok := strings.Cut(base, ".so."); ok {
		base = name + ".so"
	}
	return dir + base
}
