package gfx

import (
	"regexp"
	"slices"
	"strings"
)

// generics are the processors whose code runs on several targets, with those
// targets, as LLVM lists them (AMDGPUUsage, "AMDGPU Generic Processors"). It is
// not their digits that tell: gfx1170 runs no code for gfx11-generic, and gfx90a
// none for gfx9-generic.
var generics = map[string][]string{
	"gfx9-generic":    {"gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"},
	"gfx9-4-generic":  {"gfx940", "gfx941", "gfx942", "gfx950"},
	"gfx10-1-generic": {"gfx1010", "gfx1011", "gfx1012", "gfx1013"},
	"gfx10-3-generic": {"gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"},
	"gfx11-generic":   {"gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153", "gfx1154"},
	"gfx11-7-generic": {"gfx1170", "gfx1171", "gfx1172"},
	"gfx12-generic":   {"gfx1200", "gfx1201"},
	"gfx12-5-generic": {"gfx1250", "gfx1251"},
	"gfx13-generic":   {"gfx1310"},
}

// ungeneric are the targets of those generations that LLVM gives no generic
// processor.
var ungeneric = []string{"gfx908", "gfx90a"}

// wholeRE matches the digits of a target's name, of which x may be any: three up
// to gfx9, four from gfx10 on. Fewer name a family, such as gfx115.
var wholeRE = regexp.MustCompile(`^([6-9][0-9a-fx]{2}|[1-5][0-9a-fx]{3})$`)

// IsTarget reports whether name is one GPU target, such as gfx1151: not a
// family, not multiarch, not a product.
func IsTarget(name string) bool { return targetRE.MatchString(name) }

// MayRun reports whether a GPU of target may run code that was built for code:
// a target, with or without features (gfx90a:xnack+), a generic processor
// (gfx11-generic), or a name in which x stands for any digit (gfx110X-all,
// gfx11xx). It is true for whatever is not known for certain not to run: an
// unknown name, or a target that is newer than what is known of generics.
func MayRun(code, target string) bool {
	if strings.HasSuffix(code, "-generic") {
		return mayRunGeneric(code, target)
	}
	name, _, _ := strings.Cut(code, ":")
	name, _, _ = strings.Cut(name, "-")
	digits, ok := strings.CutPrefix(strings.ToLower(name), "gfx")
	if !ok || !IsTarget(target) || !wholeRE.MatchString(digits) {
		return true
	}
	return digitsMatch(digits, strings.TrimPrefix(target, "gfx"))
}

// digitsMatch compares the digits of a name, of which x is any, with a target's.
func digitsMatch(name, target string) bool {
	if len(name) != len(target) {
		return false
	}
	for i := range len(name) {
		if name[i] != 'x' && name[i] != target[i] {
			return false
		}
	}
	return true
}

func mayRunGeneric(code, target string) bool {
	g, ok := parseTarget(target)
	members := generics[code]
	switch {
	case !ok || members == nil || slices.Contains(members, target):
		return true
	case slices.Contains(ungeneric, target):
		return false
	}
	for _, others := range generics {
		if slices.Contains(others, target) {
			return false // its generic processor is another
		}
	}
	of, _ := parseTarget(members[0])
	return of.major == g.major
}
