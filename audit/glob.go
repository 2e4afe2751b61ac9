package audit

import (
	"fmt"
	"regexp"
	"strings"
)

// glob is a pattern over slash-separated paths: ? and * stay within a
// directory, ** does not, and **/ may stand for nothing.
type glob struct{ re *regexp.Regexp }

// maxGlob bounds a pattern of the configuration, bytes.
const maxGlob = 4096

func newGlob(pattern string) (glob, error) {
	if pattern == "" || len(pattern) > maxGlob {
		return glob{}, fmt.Errorf("parse pattern %q: want 1 to %d bytes", pattern, maxGlob)
	}
	var b strings.Builder
	b.WriteString(`\A(?s:`)
	for rest := pattern; rest != ""; {
		switch {
		case strings.HasPrefix(rest, "**/"):
			b.WriteString(`(?:.*/)?`)
			rest = rest[3:]
		case strings.HasPrefix(rest, "**"):
			b.WriteString(`.*`)
			rest = rest[2:]
		case rest[0] == '*':
			b.WriteString(`[^/]*`)
			rest = rest[1:]
		case rest[0] == '?':
			b.WriteString(`[^/]`)
			rest = rest[1:]
		default:
			n := strings.IndexAny(rest, "*?")
			if n < 0 {
				n = len(rest)
			}
			b.WriteString(regexp.QuoteMeta(rest[:n]))
			rest = rest[n:]
		}
	}
	b.WriteString(`)\z`)
	re, err := regexp.Compile(b.String())
	if err != nil {
		return glob{}, fmt.Errorf("parse pattern %q: %w", pattern, err)
	}
	return glob{re}, nil
}

func (g glob) match(p string) bool { return g.re.MatchString(p) }

// allowList is the compiled Options.Allow.
type allowList struct{ items []allowed }

type allowed struct {
	rule string
	glob glob
}

func newAllowList(list []Allow) (*allowList, error) {
	l := &allowList{}
	for _, a := range list {
		if a.Path == "" {
			a.Path = "**"
		}
		g, err := newGlob(a.Path)
		if err != nil {
			return nil, err
		}
		if a.Rule == "*" {
			a.Rule = ""
		}
		if a.Rule != "" && !knownRules[a.Rule] {
			return nil, fmt.Errorf("allow: no rule is called %q", a.Rule)
		}
		l.items = append(l.items, allowed{a.Rule, g})
	}
	return l, nil
}

func (l *allowList) has(f Finding) bool {
	short, inner := strings.CutPrefix(f.Path, "opt/rocm/")
	for _, a := range l.items {
		if (a.rule == "" || a.rule == f.Rule) && (a.glob.match(f.Path) || inner && a.glob.match(short)) {
			return true
		}
	}
	return false
}

// knownRules are the names that an Allow may have.
var knownRules = map[string]bool{
	RuleTree: true, RuleNeeded: true, RuleSymbolVersion: true, RuleForeignLibrary: true, RuleInvalidELF: true, RuleKpack: true, RuleInterpreter: true,
	RuleLink: true, RuleEscape: true, RuleLeakedPath: true, RuleMode: true, RuleUnreadable: true,
	RuleWrapper: true, RuleRootShape: true, RuleVersion: true, RuleKernels: true, RuleDeviceLibs: true, RuleLicense: true, RuleManifest: true,
}

// table is a list of patterns with the reason that each is there.
type table []tableRow

type tableRow struct{ pattern, reason string }

// compile is called once a run; the patterns of a table are constants that a
// test compiles.
func (t table) compile() []glob {
	var out []glob
	for _, row := range t {
		if g, err := newGlob(row.pattern); err == nil {
			out = append(out, g)
		}
	}
	return out
}

func matchAny(globs []glob, p string) bool {
	for _, g := range globs {
		if g.match(p) {
			return true
		}
	}
	return false
}
