package audit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// versionError matches what ld.so says of a version that is missing.
var versionError = regexp.MustCompile("(?m)(\\S+): (weak )?version `([^']+)' not found \\(required by ([^)]+)\\)")

// versionErrors asks ld.so for the versions that are missing in the process of a
// file: "PATH wants VERSION of LIBRARY", with paths relative to dir.
func versionErrors(t *testing.T, dir, file string) []string {
	t.Helper()
	cmd := exec.Command(ldso, file)
	cmd.Env = []string{"LD_TRACE_LOADED_OBJECTS=1", "LD_WARN=1"}
	out, err := cmd.CombinedOutput()
	if err != nil && !strings.Contains(string(out), "version `") {
		t.Fatalf("%v: %s", err, out)
	}
	var all []string
	for _, m := range versionError.FindAllStringSubmatch(string(out), -1) {
		by, err := filepath.Rel(dir, real(t, m[4]))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s wants %s of %s", by, m[3], filepath.Base(m[1])))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// versionsOf is what the audit says of the same.
func versionsOf(r *Report) []string {
	var all []string
	for _, f := range r.Findings {
		if f.Rule == RuleSymbolVersion {
			file, version, _ := strings.Cut(f.Subject, " ")
			all = append(all, fmt.Sprintf("%s wants %s of %s", f.Path, version, file))
		}
	}
	slices.Sort(all)
	return all
}

// Missing versions are those that ld.so finds missing.
func TestVersionsAgreeWithLdSo(t *testing.T) {
	needLoader(t)
	for _, c := range []struct {
		name  string
		files map[string]elfSpec
		want  int
	}{
		{"all there", map[string]elfSpec{
			"bin/main":      {program: true, uses: []string{"libv.so.1 V_1.0"}, runpath: "$ORIGIN/../lib"},
			"lib/libv.so.1": {soname: "libv.so.1", defines: []string{"V_1.0", "V_1.1"}},
		}, 0},
		{"one missing", map[string]elfSpec{
			"bin/main":      {program: true, uses: []string{"libv.so.1 V_2.0", "libv.so.1 V_1.0"}, runpath: "$ORIGIN/../lib"},
			"lib/libv.so.1": {soname: "libv.so.1", defines: []string{"V_1.0", "V_1.1"}},
		}, 1},
		{"no versions at all", map[string]elfSpec{
			"bin/main":      {program: true, uses: []string{"libv.so.1 V_2.0"}, runpath: "$ORIGIN/../lib"},
			"lib/libv.so.1": {soname: "libv.so.1"},
		}, 0},
		{"the first library of a name serves all", map[string]elfSpec{
			"bin/main":        {program: true, needed: []string{"libu.so.1", "libv.so.1"}, rpath: "$ORIGIN/../lib"},
			"lib/libu.so.1":   {soname: "libu.so.1", uses: []string{"libv.so.1 V_2.0"}, runpath: "$ORIGIN/u"},
			"lib/libv.so.1":   {soname: "libv.so.1", defines: []string{"V_1.0"}},
			"lib/u/libv.so.1": {soname: "libv.so.1", defines: []string{"V_2.0"}},
		}, 1},
		{"a version of the host's C library", map[string]elfSpec{
			"bin/main":      {program: true, uses: []string{"libc.so.6 GLIBC_2.99", "libc.so.6 GLIBC_2.2.5"}},
			"lib/libx.so.1": {soname: "libx.so.1", uses: []string{"libm.so.6 GLIBC_2.98"}},
		}, 2},
		{"a version of the loader", map[string]elfSpec{
			"bin/main": {program: true, uses: []string{"ld-linux-x86-64.so.2 GLIBC_2.97", "ld-linux-x86-64.so.2 GLIBC_2.3"}},
		}, 1},
		{"two libraries, several objects", map[string]elfSpec{
			"bin/main":      {program: true, uses: []string{"liba.so.1 A_1", "libb.so.1 B_2"}, runpath: "$ORIGIN/../lib"},
			"lib/liba.so.1": {soname: "liba.so.1", defines: []string{"A_1"}, uses: []string{"libb.so.1 B_3"}, runpath: "$ORIGIN"},
			"lib/libb.so.1": {soname: "libb.so.1", defines: []string{"B_1"}},
		}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := real(t, t.TempDir())
			for name, spec := range c.files {
				write(t, filepath.Join(dir, name), string(build(t, spec)), 0o755)
			}
			var theirs []string
			for name := range c.files {
				theirs = append(theirs, versionErrors(t, dir, filepath.Join(dir, name))...)
			}
			slices.Sort(theirs)
			theirs = slices.Compact(theirs)
			r, err := Run(t.Context(), dir, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if ours := versionsOf(r); !slices.Equal(ours, theirs) || len(ours) != c.want {
				t.Errorf("ours   %q\nld.so: %q", ours, theirs)
			}
		})
	}
}

// The programs of this machine find all their versions on it.
func TestThisMachineHasItsOwnVersions(t *testing.T) {
	needLoader(t)
	dir := real(t, t.TempDir())
	names, err := filepath.Glob("/usr/bin/[g-p]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names[:min(len(names), 80)] {
		if b, err := os.ReadFile(name); err == nil && len(b) < 4<<20 {
			write(t, filepath.Join(dir, "bin", filepath.Base(name)), string(b), 0o755)
		}
	}
	r, err := Run(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := slices.DeleteFunc(versionsOf(r), func(v string) bool { return strings.Contains(v, glibcPrivate) })
	if len(got) > 0 || r.Checked["versions"] < 50 {
		t.Errorf("%q of %d", got, r.Checked["versions"])
	}
}

func TestFloor(t *testing.T) {
	for _, c := range []struct {
		glibc, glibcxx string
		has, lacks     string
		unjudged       string
	}{
		{"2.28", "", "GLIBC_2.28 GLIBC_2.2.5 GLIBC_2.3.4 GLIBCXX_3.4 GLIBCXX_3.4.25 CXXABI_1.3.11 CXXABI_1.3 GCC_3.0 GCC_7.0.0",
			"GLIBC_2.29 GLIBC_2.34 GLIBC_ABI_DT_RELR GLIBC_PRIVATE GLIBCXX_3.4.26 GLIBCXX_3.4.32 CXXABI_1.3.12 GCC_12.0.0",
			"CXXABI_TM_1 CXXABI_FLOAT128 GLIBCXX_TUNABLES OPENSSL_3.0.0 AMDROCM_SYSDEPS_1.0 X 2.99 _"},
		{"2.39", "", "GLIBC_2.39 GLIBC_ABI_DT_RELR GLIBCXX_3.4.33 CXXABI_1.3.15", "GLIBC_2.40 GLIBCXX_3.4.34", ""},
		{"2.30", "", "GLIBC_2.30 GLIBCXX_3.4.25", "GLIBC_2.31 GLIBCXX_3.4.26", ""},
		{"", "3.4.32", "GLIBCXX_3.4.32 CXXABI_1.3.14", "GLIBCXX_3.4.33 CXXABI_1.3.15", "GLIBC_2.99 GCC_99.0"},
		{"2.28", "3.4.30", "GLIBC_2.28 GLIBCXX_3.4.30 CXXABI_1.3.13", "GLIBC_2.29 GLIBCXX_3.4.31 CXXABI_1.3.14", ""},
		{"GLIBC_2.4", "", "GLIBC_2.4", "GLIBC_2.5", "GLIBCXX_3.4.1"},
	} {
		f, err := newFloor(c.glibc, c.glibcxx)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range strings.Fields(c.has) {
			if !f.judges(v) || !f.has(v) {
				t.Errorf("%s %s lacks %s", c.glibc, c.glibcxx, v)
			}
		}
		for _, v := range strings.Fields(c.lacks) {
			if !f.judges(v) || f.has(v) {
				t.Errorf("%s %s has %s", c.glibc, c.glibcxx, v)
			}
		}
		for _, v := range strings.Fields(c.unjudged) {
			if f.judges(v) {
				t.Errorf("%s %s judges %s", c.glibc, c.glibcxx, v)
			}
		}
	}
	for _, bad := range [][2]string{{"two", ""}, {"2.28.", ""}, {"", "3.4.x"}, {"1.2.3.4.5", ""}, {"99999999999", ""}} {
		if err := (Options{GLIBC: bad[0], GLIBCXX: bad[1]}).Check(); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// The tables ascend, as the search in them wants.
func TestFloorRowsAscend(t *testing.T) {
	for _, rows := range [][]floorRow{floorRows, cxxabiOf} {
		for i, row := range rows {
			for _, text := range []string{row.glibc, row.glibcxx, row.cxxabi, row.gcc} {
				if _, err := parseVersion(text); text != "" && err != nil {
					t.Error(err)
				}
			}
			if i > 0 && (newerVersion("x_"+rows[i-1].glibcxx, "x_"+row.glibcxx) || newerVersion("x_"+rows[i-1].glibc, "x_"+row.glibc)) {
				t.Errorf("row %d: %+v", i, row)
			}
		}
	}
}
