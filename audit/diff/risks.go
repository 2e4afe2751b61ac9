package diff

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// risksOfAKind bounds the risks of one kind.
const risksOfAKind = 20

// risks says what may break, the gravest first.
func (c *comparer) risks() []Risk {
	c.programs()
	var all []Risk
	for _, find := range []func() []Risk{
		c.downgrade, c.kernelRisks, c.layoutRisks, c.sonameRisks, c.versionRisks, c.symbolRisks, c.unreadable, c.programRisks, c.hostRisks, c.neededRisks, c.configRisks,
	} {
		found := find()
		if left := len(found) - risksOfAKind; left > 0 {
			kind := found[0].Kind
			found = append(found[:risksOfAKind], Risk{kind, fmt.Sprintf("and %d more", left), "see below"})
		}
		all = append(all, found...)
	}
	return all
}

// downgrade warns of an older version.
func (c *comparer) downgrade() []Risk {
	v := c.r.Versions[0]
	from, err := release.ParseVersion(v.From)
	to, terr := release.ParseVersion(v.To)
	if err != nil || terr != nil || to.Compare(from) >= 0 {
		return nil
	}
	return []Risk{{RiskDowngrade, v.To, "is older than " + v.From}}
}

// kernelRisks finds libraries that lost the GPU code of targets, or most of it.
func (c *comparer) kernelRisks() []Risk {
	var lost, fewer []Risk
	for of := range groupBy(c.r.Kernels, func(k Kernels) string { return k.Library }) {
		gone := slices.DeleteFunc(slices.Clone(of), func(k Kernels) bool { return !k.Lost() })
		less := slices.DeleteFunc(slices.Clone(of), func(k Kernels) bool { return k.Lost() || 2*k.B.Files >= k.A.Files })
		if len(gone) > 0 {
			_, a, _ := total(gone)
			lost = append(lost, c.kernelRisk(gone, "has nothing for %s any more, and had "+a))
		}
		if len(less) > 0 {
			_, a, b := total(less)
			fewer = append(fewer, c.kernelRisk(less, "has "+b+" for %s, and had "+a))
		}
	}
	return append(lost, fewer...)
}

// kernelRisk is one risk for the targets of a library.
func (c *comparer) kernelRisk(of []Kernels, how string) Risk {
	targets, _, _ := total(of)
	them := "it"
	if len(of) > 1 {
		them = "them"
	}
	rule := "kernels"
	if of[0].Library == "MIOpen" {
		rule = "databases"
	}
	detail := of[0].Library + " " + fmt.Sprintf(how, them)
	if slices.Contains(c.b.Omitted, rule) {
		detail += " (left out on purpose: omit " + rule + ")"
	}
	return Risk{RiskKernels, some(targets, 8), detail}
}

// total sums up the targets of a library.
func total(of []Kernels) (targets []string, a, b string) {
	var ta, tb Tally
	for _, k := range of {
		targets = append(targets, k.Target)
		ta.Files, ta.Bytes = ta.Files+k.A.Files, ta.Bytes+k.A.Bytes
		tb.Files, tb.Bytes = tb.Files+k.B.Files, tb.Bytes+k.B.Bytes
	}
	return targets, ta.text(), tb.text()
}

// groupBy yields the runs of a sorted list that have one key.
func groupBy[T any](list []T, key func(T) string) func(yield func([]T) bool) {
	return func(yield func([]T) bool) {
		for len(list) > 0 {
			n := slices.IndexFunc(list, func(t T) bool { return key(t) != key(list[0]) })
			if n < 0 {
				n = len(list)
			}
			if !yield(list[:n]) {
				return
			}
			list = list[n:]
		}
	}
}

// layoutRisks finds names at the top of the tree that are gone: compilers look
// for amdgcn there, build systems for llvm.
func (c *comparer) layoutRisks() []Risk {
	var out []Risk
	for _, f := range c.removed {
		if !strings.Contains(f.Path, "/") && !f.regular() {
			out = append(out, Risk{RiskLayout, f.Path, "is gone from the top of the tree"})
		}
	}
	return out
}

func (c *comparer) sonameRisks() []Risk {
	var out []Risk
	for _, l := range c.r.Libraries {
		switch {
		case !l.Public:
		case l.Gone:
			out = append(out, Risk{RiskSoname, l.Soname, "is gone (" + l.Path + "): programs linked with it do not start"})
		case l.Now != "":
			out = append(out, Risk{RiskSoname, l.Soname, "is " + l.Now + " now: programs linked with it must be built again"})
		case l.NameGone:
			out = append(out, Risk{RiskSoname, path.Join(path.Dir(l.Path), l.Soname), "is gone: the library is there, but not under the name that programs look for"})
		}
	}
	return out
}

func (c *comparer) versionRisks() []Risk {
	var out []Risk
	for _, l := range c.r.Libraries {
		if l.Public && len(l.Versions) > 0 {
			out = append(out, Risk{RiskVersions, l.Path, "lost " + some(l.Versions, 5)})
		}
	}
	return out
}

func (c *comparer) symbolRisks() []Risk {
	var out []Risk
	for _, l := range c.r.Libraries {
		if !l.Public || l.Lost == 0 {
			continue
		}
		var names []string
		for _, s := range l.Symbols {
			if !s.Weak {
				names = append(names, s.text())
			}
		}
		out = append(out, Risk{RiskSymbols, l.Path, fmt.Sprintf("lost %s of %d: %s", count(l.Lost, "symbol"), l.Exports, someOf(names, 3, l.Lost))})
	}
	return out
}

// unreadable finds ELF files that made sense in A alone.
func (c *comparer) unreadable() []Risk {
	var out []Risk
	for i := range c.pairs {
		p := &c.pairs[i]
		if p.state != same && p.state != edits && p.a.host() && p.b.regular() && p.b.Same == "" && (p.b.ELF == nil || p.b.ELF.Class == 0) {
			out = append(out, Risk{RiskUnread, p.b.Path, "is no valid ELF file any more"})
		}
	}
	return out
}

// programs lists commands that are gone.
func (c *comparer) programs() {
	for _, f := range c.removed {
		dir := path.Dir(f.Path)
		if (dir == "bin" || dir == "lib/llvm/bin") && (f.Kind == manifest.Symlink || f.regular() && f.Mode&0o111 != 0) {
			c.r.Programs = append(c.r.Programs, f.Path)
		}
	}
	slices.Sort(c.r.Programs)
}

func (c *comparer) programRisks() []Risk {
	var out []Risk
	for _, p := range c.r.Programs {
		if path.Dir(p) == "bin" {
			out = append(out, Risk{RiskPrograms, p, "is gone"})
		}
	}
	return out
}

func (c *comparer) hostRisks() []Risk {
	var out []Risk
	for _, f := range c.r.Host.Floors {
		was := "nothing of it was needed"
		if f.From != "" {
			was = f.From + " was enough"
		}
		out = append(out, Risk{RiskFloor, f.To, fmt.Sprintf("is needed of the host (%s): by %s", was, firstOf(f.Path, f.Files))})
	}
	return out
}

func (c *comparer) neededRisks() []Risk {
	var out []Risk
	for _, l := range c.r.Host.Libraries {
		out = append(out, Risk{RiskNeeded, l.Library, "is needed of the host, and was not: by " + firstOf(l.Path, l.Files)})
	}
	return out
}

func (c *comparer) configRisks() []Risk {
	var out []Risk
	for _, t := range c.r.Config {
		if t.Why != whyEdits && isCompilers(t.Path) {
			out = append(out, Risk{RiskConfig, t.Path, t.Why + ": the compiler behaves differently"})
		}
	}
	return out
}

func firstOf(p string, files int) string {
	if files > 1 {
		return fmt.Sprintf("%s and %d more", p, files-1)
	}
	return p
}

// some joins the first n of list.
func some(list []string, n int) string { return someOf(list, n, len(list)) }

// someOf joins the first n of list, which is the beginning of one of total.
func someOf(list []string, n, total int) string {
	list = cut(list, n)
	s := strings.Join(list, ", ")
	if left := total - len(list); left > 0 {
		s += fmt.Sprintf(" and %d more", left)
	}
	return s
}

// text is a symbol for people.
func (s Symbol) text() string {
	name := s.Name
	if s.Pretty != "" {
		name = s.Pretty
	}
	if s.Version != "" {
		name += "@" + s.Version
	}
	return name
}

// count writes 1 symbol, 2 symbols.
func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
