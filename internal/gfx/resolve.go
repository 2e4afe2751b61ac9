package gfx

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Resolution says what a request means.
type Resolution struct {
	Target string // what slots and pins are named by: gfx1103, the published slug if a slug was asked for, or multiarch
	Family string // the published slug whose tarball serves it
}

// Nearest is a target that is served, and whose code a GPU runs that is not.
type Nearest struct {
	Target   string // gfx1100
	Family   string // the published slug that serves it
	Override string // what HSA_OVERRIDE_GFX_VERSION must say: 11.0.0
}

// UnknownError says that nothing on the index serves what was asked for, and
// what would do instead.
type UnknownError struct {
	Asked     string
	Target    string   // what Asked is: a target or a slug; "" if it is no name of a GPU
	Published []string // the slugs that there are
	Nearest   *Nearest // a substitute for Target; nil if there is none
	Members   []string // where Target is a slug that is not there (it was split, say): those of its targets that are served
}

func (e *UnknownError) Error() string {
	asked := fmt.Sprintf("%q", e.Asked)
	if e.Target != "" && !strings.EqualFold(e.Target, e.Asked) {
		asked += " (" + e.Target + ")"
	}
	if len(e.Published) == 0 {
		return fmt.Sprintf("no tarball serves %s: nothing is published", asked)
	}
	text := fmt.Sprintf("no tarball serves %s; published are %s", asked, strings.Join(e.Published, ", "))
	if e.Target == "" {
		return text + "; a target is a gfx name (gfx1151), a family (gfx110X-all) or a product (\"RX 7900 XTX\")"
	}
	for _, hint := range e.hints() {
		text += "; " + hint
	}
	return text
}

// hints lists what the user can do, the best first.
func (e *UnknownError) hints() []string {
	var all []string
	if len(e.Members) > 0 {
		all = append(all, fmt.Sprintf("name one of its targets, which are served: --arch %s", strings.Join(e.Members, " or --arch ")))
	}
	if n := e.Nearest; n != nil {
		all = append(all, fmt.Sprintf("the nearest target is %s, served by %s, whose code runs on it with HSA_OVERRIDE_GFX_VERSION=%s in the environment; "+
			"it is never chosen for you: to take it, use --arch %s", n.Target, n.Family, n.Override, n.Target))
	}
	if slices.Contains(e.Published, Multiarch) {
		all = append(all, "multiarch, which holds what all families hold, is taken in place of a missing family with policy.multiarch: fallback, or always with --arch multiarch")
	}
	return all
}

// Resolve finds the published slug that serves what was asked for: a target,
// a slug (also one of the past, or without its suffix), multiarch or a
// product name. Its error is an *UnknownError. Auto is not resolved here: see
// Detect.
func (t *Table) Resolve(asked string, published []string) (Resolution, error) {
	name, ok := t.Canonical(asked)
	if !ok {
		return Resolution{}, &UnknownError{Asked: asked, Published: published}
	}
	if family, ok := t.family(name, published); ok {
		if targetRE.MatchString(name) {
			return Resolution{name, family}, nil
		}
		return Resolution{family, family}, nil
	}
	unknown := &UnknownError{Asked: asked, Target: name, Published: published}
	if near, ok := t.Nearest(name, published); ok {
		unknown.Nearest = near
	}
	unknown.Members = t.members(name, published)
	return Resolution{}, unknown
}

// family returns the published slug that serves name, a target or a slug.
func (t *Table) family(name string, published []string) (string, bool) {
	if slices.Contains(published, name) {
		return name, true
	}
	var serving []string
	for _, slug := range published {
		if t.serves(slug, name) {
			serving = append(serving, slug)
		}
	}
	if len(serving) == 0 {
		return "", false
	}
	return slices.MinFunc(serving, compareSlugs), true
}

// serves reports whether the tarball of slug is right for name, a target or a slug.
func (t *Table) serves(slug, name string) bool {
	known := t.data.Families[slug]
	if slices.Contains(known, name) {
		return true
	}
	s, n := slugRE.FindStringSubmatch(slug), slugRE.FindStringSubmatch(name)
	if s == nil || n == nil {
		return false
	}
	if n[2] != "" || n[3] != "" { // a slug: its siblings serve it too
		return s[1] == n[1] && (s[2] != "") == (n[2] != "")
	}
	if known != nil {
		return false // the table says what it holds, and name is not in it
	}
	if s[2] == "" {
		return s[1] == n[1]
	}
	return len(n[1]) == len(s[1])+1 && strings.HasPrefix(n[1], s[1])
}

// members returns the targets of a slug that published slugs serve one by one.
func (t *Table) members(slug string, published []string) []string {
	if targetRE.MatchString(slug) {
		return nil
	}
	var served []string
	for _, target := range t.slugTargets(slug, published) {
		if _, ok := t.family(target, published); ok {
			served = append(served, target)
		}
	}
	return served
}

// slugTargets lists the targets of a slug: those that it is known to have
// had, else those of its siblings and those published that its digits cover.
func (t *Table) slugTargets(slug string, published []string) []string {
	m := slugRE.FindStringSubmatch(slug)
	if m == nil {
		return nil
	}
	targets := t.Targets(slug)
	if len(targets) > 0 {
		return targets
	}
	for known, members := range t.data.Families {
		if k := slugRE.FindStringSubmatch(known); k != nil && k[1] == m[1] && k[2] == m[2] {
			targets = append(targets, members...)
		}
	}
	for _, p := range published {
		if targetRE.MatchString(p) && m[2] != "" && len(p) == len(m[1])+1 && strings.HasPrefix(p, m[1]) {
			targets = append(targets, p)
		}
	}
	slices.Sort(targets)
	return slices.Compact(targets)
}

// Nearest finds a target that published slugs serve and whose code runs on
// target, for a target that they do not serve. What is known of a target
// decides; for one that is newer than that, another of its generation does,
// from gfx10 on: GPUs before, CDNA and what follows it (gfx125X), share none.
func (t *Table) Nearest(target string, published []string) (*Nearest, bool) {
	if !targetRE.MatchString(target) {
		return nil, false
	}
	candidates := t.data.Targets[target].Nearest
	if _, known := t.data.Targets[target]; !known {
		candidates = t.ofGeneration(target, published)
	}
	for _, c := range candidates {
		if family, ok := t.family(c, published); ok && c != target {
			return &Nearest{Target: c, Family: family, Override: Override(c)}, true
		}
	}
	return nil, false
}

// Substitute returns what HSA_OVERRIDE_GFX_VERSION must say for a GPU to run the
// code of what serves res, which somebody has taken in its place: "" if that
// serves the GPU as it is, or has no code that runs on it.
func (t *Table) Substitute(gpu string, res Resolution) string {
	if !targetRE.MatchString(res.Target) || t.Serves(gpu, res) {
		return ""
	}
	if near, ok := t.Nearest(gpu, []string{res.Target}); !ok || near.Target != res.Target {
		return ""
	}
	return Override(res.Target)
}

// Serves reports whether a tarball has code for a GPU as it is.
func (t *Table) Serves(gpu string, res Resolution) bool {
	_, served := t.family(gpu, []string{res.Family})
	return served || gpu == res.Target || res.Family == Multiarch
}

// ofGeneration lists the published targets with target's major and minor
// number, the nearest stepping first, the lower of two.
func (t *Table) ofGeneration(target string, published []string) []string {
	want, ok := parseTarget(target)
	// The matrix instructions of gfx1251 take longer than those of gfx1250, and
	// code waits for them by counting.
	if !ok || want.major < 10 || want.major == 12 && want.minor == 5 {
		return nil
	}
	var same []string
	for _, slug := range published {
		for _, c := range t.Targets(slug) {
			if g, ok := parseTarget(c); ok && g.major == want.major && g.minor == want.minor && c != target {
				same = append(same, c)
			}
		}
	}
	distance := func(c string) int {
		g, _ := parseTarget(c)
		return max(g.stepping-want.stepping, want.stepping-g.stepping)
	}
	slices.SortFunc(same, func(a, b string) int { return cmp.Or(cmp.Compare(distance(a), distance(b)), cmp.Compare(a, b)) })
	return slices.Compact(same)
}

// compareSlugs puts the slug that holds more, and so is newer, first.
func compareSlugs(a, b string) int {
	rank := func(s string) int {
		if strings.HasSuffix(s, "-all") {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}
