package gfx

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rocm-nightly/rocm-nightly/internal/amd"
)

// Multiarch is the family that holds every target.
const Multiarch = "multiarch"

// Auto asks for the GPUs of this machine.
const Auto = "auto"

var (
	targetRE  = regexp.MustCompile(`^gfx[0-9]{1,4}[0-9a-f]{2}$`)
	slugRE    = regexp.MustCompile(`^(gfx[0-9a-f]+)([xX]?)(-[a-z]+)?$`)
	featureRE = regexp.MustCompile(`^((?:amdgcn-amd-amdhsa--)?gfx[0-9a-f]+)((?::(?:sramecc|xnack)[+-])+)$`)
)

// Table answers questions about targets, families and products from one
// amd.Data, which must not change afterwards.
type Table struct {
	data     *amd.Data
	indexed  sync.Once // products is made when it is first asked
	products productIndex
}

// New makes a table of what is known.
func New(d *amd.Data) *Table {
	return &Table{data: d}
}

// Canonical returns the target or slug that a request names, without asking
// what is published: product names become targets, case is folded, and
// features such as :xnack- are dropped. ok is false for what is neither.
func (t *Table) Canonical(asked string) (name string, ok bool) {
	if len(asked) > maxAsked {
		return "", false
	}
	lower := strings.ToLower(strings.TrimSpace(asked))
	if lower == Multiarch || lower == "multi-arch" {
		return Multiarch, true
	}
	if lower == Auto {
		return "", false // and no product's name: most configs ask this at every start
	}
	if m := featureRE.FindStringSubmatch(lower); m != nil {
		lower = m[1] // as the tools print it: gfx90a:sramecc+:xnack-
	}
	lower = strings.TrimPrefix(lower, "amdgcn-amd-amdhsa--")
	if word, rest, two := strings.Cut(lower, " "); two && word == "gfx" {
		lower = "gfx" + strings.TrimSpace(rest)
	}
	if targetRE.MatchString(lower) {
		return lower, true
	}
	if m := slugRE.FindStringSubmatch(lower); m != nil && (m[2] != "" || m[3] != "") {
		return m[1] + strings.ToUpper(m[2]) + m[3], true
	}
	t.indexed.Do(func() { t.products = newProductIndex(t.data.Products) })
	return t.products.find(asked)
}

// maxAsked bounds a request; the longest product name has some sixty bytes.
const maxAsked = 256

// Targets lists the targets that the tarball of slug is known to serve: a
// slug that is itself a target serves that. It is empty for multiarch and for
// slugs that are newer than what is known.
func (t *Table) Targets(slug string) []string {
	if known := t.data.Families[slug]; known != nil {
		return slices.Clone(known)
	}
	if targetRE.MatchString(slug) {
		return []string{slug}
	}
	return nil
}

// Kernel returns the first Linux that drives a target, such as 6.10, or "" if
// that is not known.
func (t *Table) Kernel(target string) string { return t.data.Targets[target].Kernel }

// Name returns what people call a target, or "" if that is not known.
func (t *Table) Name(target string) string { return t.data.Targets[target].Name }

// Env returns the variables that programs need on a target, or on every target
// of a slug: nil for none. The map is the caller's.
func (t *Table) Env(name string) map[string]string {
	targets := []string{name}
	if !targetRE.MatchString(name) {
		targets = t.Targets(name)
	}
	var env map[string]string
	for i, target := range targets {
		known := map[string]string{}
		for variable, v := range t.data.Targets[target].Env {
			if v.Value != "" && (i == 0 || env[variable] == v.Value) {
				known[variable] = v.Value
			}
		}
		env = known
	}
	if len(env) == 0 {
		return nil
	}
	return env
}

// Override returns what HSA_OVERRIDE_GFX_VERSION must say for a GPU to be
// taken for target: 11.0.0 for gfx1100, 9.0.10 for gfx90a. It is "" for what
// is not a target.
func Override(target string) string {
	g, ok := parseTarget(target)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d", g.major, g.minor, g.stepping)
}

// OverrideName is the variable that lets a GPU run the code of another target.
const OverrideName = "HSA_OVERRIDE_GFX_VERSION"

// Overridden returns the target whose code a GPU runs when
// HSA_OVERRIDE_GFX_VERSION says value: gfx1030 for 10.3.0. It is target, what the
// GPU is, where value is none that Override could have made.
func Overridden(target, value string) string {
	var g generation
	if n, err := fmt.Sscanf(value, "%d.%d.%d", &g.major, &g.minor, &g.stepping); n != 3 || err != nil {
		return target
	}
	if name := fmt.Sprintf("gfx%d%x%x", g.major, g.minor, g.stepping); Override(name) == value {
		return name
	}
	return target
}

// generation is a target's name taken apart: the last two characters are
// hexadecimal digits, what is before them is decimal.
type generation struct{ major, minor, stepping int }

func parseTarget(target string) (g generation, ok bool) {
	if !targetRE.MatchString(target) {
		return g, false
	}
	n := len(target)
	_, err := fmt.Sscanf(target[3:n-2]+" "+target[n-2:n-1]+" "+target[n-1:], "%d %x %x", &g.major, &g.minor, &g.stepping)
	return g, err == nil
}
