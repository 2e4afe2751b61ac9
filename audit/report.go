package audit

import (
	"cmp"
	"path"
	"regexp"
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
	RuleSymbolVersion  = "symbol-version"
	RuleInvalidELF     = "invalid-elf"
	RuleKpack          = "kpack"
	RuleKernels        = "kernels"
	RuleDeviceLibs     = "device-libraries"
	RuleInterpreter    = "interpreter"
	RuleLink           = "link"
	RuleEscape         = "escape"
	RuleLeakedPath     = "leaked-path"
	RuleMode           = "mode"
	RuleUnreadable     = "unreadable"
	RuleWrapper        = "wrapper"
	RuleRootShape      = "root-shape"
	RuleLicense        = "license"
	RuleVersion        = "version"
	RuleManifest       = "manifest"
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
	Target   string         `json:"target,omitempty"` // the GPU that kernels were looked for, "" if none was named
	Findings []Finding      `json:"findings"`
	Counts   Counts         `json:"counts"`
	Checked  map[string]int `json:"checked"` // how many of each thing were looked at
	Allowed  int            `json:"allowed"` // findings left out because they are allowed
}

// report closes the run.
func (a *auditor) report(dir string, allow *allowList) *Report {
	r := &Report{Schema: Schema, Dir: dir, Layout: a.tree.layout(), Scope: a.scope, Target: a.target, Findings: []Finding{}, Checked: a.checked}
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
// A finding is an old one when base has it with the same rule, path and subject,
// or with a path and subject that differ only in version numbers, which change
// with every night: libfoo.so.7.1 and libfoo.so.7.2, clang/22 and clang/23. Each of
// base's excuses one: two libraries that break where one was broken are one new
// finding.
func (r *Report) Refused(base *Report, mode string) []Finding {
	if mode == RefuseNever {
		return nil
	}
	var known []Finding
	if base != nil && mode != RefuseAll {
		known = base.Findings
	}
	old := r.excused(known, Finding.identity)
	var out []Finding
	for i, f := range r.Findings {
		if f.Severity == Fatal || f.Severity == Required && !old[i] {
			out = append(out, f)
		}
	}
	return out
}

// excused tells of which findings, by index, there is one in known. Those that
// are exactly the same come first, so that none takes the excuse of another.
func (r *Report) excused(known []Finding, loose func(Finding) string) map[int]bool {
	old, used := map[int]bool{}, map[int]bool{}
	for _, key := range []func(Finding) string{Finding.exact, loose} {
		have := map[string][]int{}
		for i, f := range known {
			if f.Severity != Warning && !used[i] {
				have[key(f)] = append(have[key(f)], i)
			}
		}
		for i, f := range r.Findings {
			if k := key(f); !old[i] && f.Severity == Required && len(have[k]) > 0 {
				old[i], used[have[k][0]] = true, true
				have[k] = have[k][1:]
			}
		}
	}
	return old
}

func (f Finding) exact() string { return f.Rule + "\x00" + f.Path + "\x00" + f.Subject }

// identity is the same for the same finding in two nights. What a file needs,
// and the version of a symbol, are no name of a file: another number there is
// another finding.
func (f Finding) identity() string {
	subject := f.Subject
	if f.Rule == RuleLink || f.Rule == RuleEscape || f.Rule == RuleWrapper {
		subject = unversioned(subject)
	}
	return f.Rule + "\x00" + unversioned(f.Path) + "\x00" + subject
}

// dotted matches 3.11 and 7.2.1, wherever they are.
var dotted = regexp.MustCompile(`[0-9]+(?:\.[0-9]+)+`)

// unversioned takes out of a path the numbers that tell versions apart, not
// things: what is behind .so, numbers with dots, and numbers that stand alone
// between -, _, . and /. The digits of gfx1151 and libfoo64 stay.
func unversioned(p string) string {
	dir, base := path.Split(p)
	if name, _, ok := strings.Cut(base, ".so."); ok {
		base = name + ".so"
	}
	p = dotted.ReplaceAllString(dir+base, "#")
	var b strings.Builder
	for rest := p; rest != ""; {
		n := strings.IndexAny(rest, "-_./")
		word := rest
		if n >= 0 {
			word = rest[:n]
		}
		if word != "" && strings.Trim(strings.TrimSuffix(word, "git"), "0123456789") == "" {
			word = "#"
		}
		b.WriteString(word)
		if n < 0 {
			break
		}
		b.WriteByte(rest[n])
		rest = rest[n+1:]
	}
	return b.String()
}
