package gfx

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Multiarch is the family that holds every target.
const Multiarch = "multiarch"

// Auto asks for the GPUs of this machine.
const Auto = "auto"

// families lists the targets of every slug that AMD has published, as its
// build matrix names them. A slug that is not here is matched by its digits.
var families = map[string][]string{
	"gfx90X-dcgpu":  {"gfx906", "gfx908", "gfx90a"},
	"gfx94X-dcgpu":  {"gfx942"},
	"gfx950-dcgpu":  {"gfx950"},
	"gfx125X-dcgpu": {"gfx1250"},
	"gfx101X-dgpu":  {"gfx1010", "gfx1011", "gfx1012"},
	"gfx103X-dgpu":  {"gfx1030", "gfx1031", "gfx1032", "gfx1034"},
	"gfx103X-all":   {"gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"},
	"gfx110X-dgpu":  {"gfx1100", "gfx1101", "gfx1102"},
	"gfx110X-all":   {"gfx1100", "gfx1101", "gfx1102", "gfx1103"},
	"gfx120X-all":   {"gfx1200", "gfx1201"},
}

// products maps what people call their GPU to its target. Keys are folded:
// lower case, letters and digits only.
var products = map[string]string{
	"radeonvii": "gfx906", "mi50": "gfx906", "mi60": "gfx906",
	"mi100": "gfx908", "mi210": "gfx90a", "mi250": "gfx90a", "mi250x": "gfx90a",
	"mi300a": "gfx942", "mi300x": "gfx942", "mi325x": "gfx942", "mi350x": "gfx950", "mi355x": "gfx950",
	"mi450": "gfx1250", "mi455x": "gfx1250", "mi25": "gfx900", "vega10": "gfx900",
	"rx5700": "gfx1010", "rx5700xt": "gfx1010", "prov520": "gfx1011", "rx5500": "gfx1012", "rx5500xt": "gfx1012", "w5500": "gfx1012",
	"rx6800": "gfx1030", "rx6800xt": "gfx1030", "rx6900xt": "gfx1030", "rx6950xt": "gfx1030", "w6800": "gfx1030", "v620": "gfx1030",
	"rx6700": "gfx1031", "rx6700xt": "gfx1031", "rx6750xt": "gfx1031", "rx6600": "gfx1032", "rx6600xt": "gfx1032", "rx6650xt": "gfx1032",
	"vangogh": "gfx1033", "steamdeck": "gfx1033", "rx6500xt": "gfx1034", "rx6400": "gfx1034", "680m": "gfx1035", "rembrandt": "gfx1035", "raphael": "gfx1036",
	"rx7900xtx": "gfx1100", "rx7900xt": "gfx1100", "rx7900gre": "gfx1100", "w7900": "gfx1100", "w7800": "gfx1100",
	"rx7800xt": "gfx1101", "rx7700xt": "gfx1101", "w7700": "gfx1101", "rx7600": "gfx1102", "rx7600xt": "gfx1102", "rx7700s": "gfx1102",
	"780m": "gfx1103", "phoenix": "gfx1103", "hawkpoint": "gfx1103",
	"strixpoint": "gfx1150", "890m": "gfx1150", "strixhalo": "gfx1151", "8060s": "gfx1151", "8050s": "gfx1151", "krackan": "gfx1152", "860m": "gfx1152", "820m": "gfx1153",
	"rx9060": "gfx1200", "rx9060xt": "gfx1200", "rx9070": "gfx1201", "rx9070xt": "gfx1201", "rx9070gre": "gfx1201", "r9700": "gfx1201",
}

var (
	targetRE = regexp.MustCompile(`^gfx[0-9]{1,4}[0-9a-f]{2}$`)
	slugRE   = regexp.MustCompile(`^(gfx[0-9a-f]+)([xX]?)(-[a-z]+)?$`)
)

// Resolution says what a request means.
type Resolution struct {
	Target string // what slots and pins are named by: gfx1103, the published slug if a slug was asked for, or multiarch
	Family string // the published slug whose tarball serves it
}

// UnknownError says that nothing on the index serves what was asked for.
type UnknownError struct {
	Asked     string
	Published []string
}

func (e *UnknownError) Error() string {
	if len(e.Published) == 0 {
		return fmt.Sprintf("no tarball serves %q: nothing is published", e.Asked)
	}
	return fmt.Sprintf("no tarball serves %q; published are %s", e.Asked, strings.Join(e.Published, ", "))
}

// Canonical returns the target or slug that a request names, without asking
// what is published: product names become targets, case is folded. ok is
// false for what is neither.
func Canonical(asked string) (name string, ok bool) {
	asked = strings.TrimSpace(asked)
	lower := strings.ToLower(asked)
	if lower == Multiarch || lower == "multi-arch" {
		return Multiarch, true
	}
	if target, known := products[fold(asked)]; known {
		return target, true
	}
	if targetRE.MatchString(lower) {
		return lower, true
	}
	if m := slugRE.FindStringSubmatch(strings.ToLower(asked)); m != nil && (m[2] != "" || m[3] != "") {
		return m[1] + strings.ToUpper(m[2]) + m[3], true
	}
	return "", false
}

// fold reduces a product name to letters and digits and drops the brand.
func fold(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return -1
	}, strings.ToLower(s))
	for _, brand := range []string{"amd", "radeon", "instinct", "pro"} {
		if rest, ok := strings.CutPrefix(s, brand); ok && products[rest] != "" {
			return rest
		} else if ok && products[s] == "" {
			s = rest
		}
	}
	return s
}

// Resolve finds the published slug that serves what was asked for: a target,
// a slug (also one of the past, or without its suffix), multiarch or a
// product name. Auto is not resolved here: see Detect.
func Resolve(asked string, published []string) (Resolution, error) {
	name, ok := Canonical(asked)
	if !ok {
		return Resolution{}, &UnknownError{asked, published}
	}
	if slices.Contains(published, name) {
		return Resolution{name, name}, nil
	}
	var serving []string
	for _, slug := range published {
		if serves(slug, name) {
			serving = append(serving, slug)
		}
	}
	if len(serving) == 0 {
		return Resolution{}, &UnknownError{asked, published}
	}
	best := slices.MinFunc(serving, compareSlugs)
	if targetRE.MatchString(name) {
		return Resolution{name, best}, nil
	}
	return Resolution{best, best}, nil
}

// serves reports whether the tarball of slug is right for name, a target or a slug.
func serves(slug, name string) bool {
	if slices.Contains(families[slug], name) {
		return true
	}
	s, n := slugRE.FindStringSubmatch(slug), slugRE.FindStringSubmatch(name)
	if s == nil || n == nil {
		return false
	}
	if n[2] != "" || n[3] != "" { // a slug: its siblings serve it too
		return s[1] == n[1] && (s[2] != "") == (n[2] != "")
	}
	if _, known := families[slug]; known {
		return false // the table says what it holds, and name is not in it
	}
	if s[2] == "" {
		return s[1] == n[1]
	}
	return len(n[1]) == len(s[1])+1 && strings.HasPrefix(n[1], s[1])
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

// Targets lists the targets that the tarball of slug is known to serve: a
// slug that is itself a target serves that. It is empty for multiarch and for
// slugs that are newer than this program.
func Targets(slug string) []string {
	if known := families[slug]; known != nil {
		return slices.Clone(known)
	}
	if targetRE.MatchString(slug) {
		return []string{slug}
	}
	return nil
}
