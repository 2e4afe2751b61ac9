package audit

import (
	"fmt"
	"strconv"
	"strings"
)

// glibcPrivate is the version of what glibc keeps for its own libraries.
const glibcPrivate = "GLIBC_PRIVATE"

// floor is the oldest system that a tree is to run on, by the versions that its
// libraries define; the zero floor judges nothing.
type floor map[string]version

// version is a dotted number; missing parts are 0.
type version [4]int

func (f floor) none() bool { return len(f) == 0 }

// floorRow says which versions go with a glibc.
type floorRow struct{ glibc, glibcxx, cxxabi, gcc string }

// floorRows follow the manylinux profiles of PEP 600, as pypa/auditwheel
// records them (policy/manylinux-policy.json, x86_64), but for 2.28: of the systems
// with that glibc, RHEL 8 and Debian 10 have GCC 8, whose libstdc++ ends at
// GLIBCXX_3.4.25 and CXXABI_1.3.11 (libstdc++ manual, "ABI Policy and
// Guidelines"). AMD builds on the first of the two.
var floorRows = []floorRow{
	{"2.5", "3.4.8", "1.3.1", "4.2.0"},
	{"2.12", "3.4.13", "1.3.3", "4.3.0"},
	{"2.17", "3.4.19", "1.3.7", "4.8.0"},
	{"2.24", "3.4.22", "1.3.10", "4.8.0"},
	{"2.27", "3.4.24", "1.3.11", "7.0.0"},
	{"2.28", "3.4.25", "1.3.11", "7.0.0"},
	{"2.31", "3.4.28", "1.3.12", "7.0.0"},
	{"2.34", "3.4.29", "1.3.13", "7.0.0"},
	{"2.35", "3.4.30", "1.3.13", "12.0.0"},
	{"2.38", "3.4.30", "1.3.13", "12.0.0"},
	{"2.39", "3.4.33", "1.3.15", "14.0.0"},
}

// cxxabiOf is what GCC's libstdc++ defines beside a GLIBCXX (the same manual).
var cxxabiOf = []floorRow{
	{"", "3.4.8", "1.3.1", ""}, {"", "3.4.13", "1.3.3", ""}, {"", "3.4.19", "1.3.7", ""}, {"", "3.4.22", "1.3.10", ""},
	{"", "3.4.23", "1.3.11", ""}, {"", "3.4.26", "1.3.12", ""}, {"", "3.4.29", "1.3.13", ""}, {"", "3.4.31", "1.3.14", ""},
	{"", "3.4.33", "1.3.15", ""}, {"", "3.4.34", "1.3.16", ""},
}

// newFloor makes a floor of what was asked for: a version of glibc, of
// libstdc++ (GLIBCXX), or both. One alone leaves the other's to the table, or
// unjudged.
func newFloor(glibc, glibcxx string) (floor, error) {
	if glibc == "" && glibcxx == "" {
		return nil, nil
	}
	f := floor{}
	if glibc != "" {
		v, err := parseVersion(strings.TrimPrefix(glibc, "GLIBC_"))
		if err != nil {
			return nil, fmt.Errorf("glibc %q is not a version: use one such as 2.28", glibc)
		}
		f["GLIBC"] = v
		for _, row := range floorRows {
			if at, _ := parseVersion(row.glibc); !v.less(at) {
				f["GLIBCXX"], _ = parseVersion(row.glibcxx)
				f["CXXABI"], _ = parseVersion(row.cxxabi)
				f["GCC"], _ = parseVersion(row.gcc)
			}
		}
	}
	if glibcxx != "" {
		v, err := parseVersion(strings.TrimPrefix(glibcxx, "GLIBCXX_"))
		if err != nil {
			return nil, fmt.Errorf("glibcxx %q is not a version: use one such as 3.4.25", glibcxx)
		}
		f["GLIBCXX"] = v
		for _, row := range cxxabiOf {
			if at, _ := parseVersion(row.glibcxx); !v.less(at) {
				f["CXXABI"], _ = parseVersion(row.cxxabi)
			}
		}
	}
	return f, nil
}

// family is what a name of a version begins with: GLIBCXX of GLIBCXX_3.4.32.
func family(name string) string {
	before, _, ok := strings.Cut(name, "_")
	if !ok {
		return ""
	}
	return before
}

// judges tells whether the floor says anything of a version. GLIBCXX_TUNE,
// CXXABI_TM_1 and CXXABI_FLOAT128 have no order; old systems have them too.
func (f floor) judges(name string) bool {
	if _, ok := f[family(name)]; !ok {
		return false
	}
	_, ok := numberOf(name)
	return ok || name == glibcPrivate
}

// has tells whether systems of that age have a version.
func (f floor) has(name string) bool {
	v, ok := numberOf(name)
	return ok && name != glibcPrivate && !f[family(name)].less(v)
}

// of names the highest version of a family that the floor allows.
func (f floor) of(name string) string { return family(name) + "_" + f[family(name)].String() }

// numberOf is the number of a version. GLIBC_ABI_… are no numbers: they say
// that the loader knows a format, the first of which came with 2.36.
func numberOf(name string) (version, bool) {
	fam, rest, _ := strings.Cut(name, "_")
	if fam == "GLIBC" && strings.HasPrefix(rest, "ABI_") {
		return version{2, 36}, true
	}
	v, err := parseVersion(rest)
	return v, err == nil
}

func newerVersion(a, b string) bool {
	x, okX := numberOf(a)
	y, okY := numberOf(b)
	return okX && (!okY || y.less(x))
}

func parseVersion(s string) (version, error) {
	var v version
	parts := strings.Split(s, ".")
	if len(parts) > len(v) {
		return v, fmt.Errorf("%q has more than %d parts", s, len(v))
	}
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil {
			return v, fmt.Errorf("%q is not a version", s)
		}
		v[i] = int(n)
	}
	return v, nil
}

func (v version) less(w version) bool {
	for i := range v {
		if v[i] != w[i] {
			return v[i] < w[i]
		}
	}
	return false
}

func (v version) String() string {
	s := fmt.Sprintf("%d.%d", v[0], v[1])
	if v[2] != 0 {
		s += fmt.Sprintf(".%d", v[2])
	}
	return s
}
