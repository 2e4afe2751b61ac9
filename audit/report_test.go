package audit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestRefused(t *testing.T) {
	night := func(list ...Finding) *Report { return &Report{Findings: list} }
	fatal := Finding{Rule: RuleKpack, Severity: Fatal, Path: "a"}
	old := Finding{Rule: RuleNeeded, Severity: Required, Path: "lib/liba.so.1.0", Subject: "libx.so.1"}
	same := Finding{Rule: RuleNeeded, Severity: Required, Path: "lib/liba.so.1.1", Subject: "libx.so.1"}
	worse := Finding{Rule: RuleNeeded, Severity: Required, Path: "lib/liba.so.1.1", Subject: "liby.so.1"}
	mild := Finding{Rule: RuleNeeded, Severity: Warning, Path: "lib/liba.so.1.0", Subject: "liby.so.1"}
	again := Finding{Rule: RuleNeeded, Severity: Required, Path: "lib/liba.so.2.0", Subject: "libx.so.1"}
	twin := Finding{Rule: RuleNeeded, Severity: Required, Path: "lib/liba.so.0.9", Subject: "libx.so.1"}
	dir22 := Finding{Rule: RuleLeakedPath, Severity: Required, Path: "lib/llvm/lib/clang/22/lib/x.so", Subject: "/__w/x"}
	dir23 := Finding{Rule: RuleLeakedPath, Severity: Required, Path: "lib/llvm/lib/clang/23/lib/x.so", Subject: "/__w/x"}
	link12 := Finding{Rule: RuleLink, Severity: Required, Path: "lib/libl.so.1", Subject: "libl.so.1.2"}
	link13 := Finding{Rule: RuleLink, Severity: Required, Path: "lib/libl.so.1", Subject: "libl.so.1.3"}
	sym34 := Finding{Rule: RuleSymbolVersion, Severity: Required, Path: "lib/libs.so.1", Subject: "libc.so.6 GLIBC_2.34"}
	sym38 := Finding{Rule: RuleSymbolVersion, Severity: Required, Path: "lib/libs.so.1", Subject: "libc.so.6 GLIBC_2.38"}
	for _, c := range []struct {
		name      string
		now, base *Report
		mode      string
		want      []Finding
	}{
		{"nothing is installed", night(fatal, old, mild), nil, RefuseRegression, []Finding{fatal, old}},
		{"known", night(same), night(old), RefuseRegression, nil},
		{"known, by default", night(same), night(old), "", nil},
		{"new", night(same, worse), night(old), RefuseRegression, []Finding{worse}},
		{"another, as long as the old one is there too", night(same, again), night(old), RefuseRegression, []Finding{again}},
		{"two of two", night(same, again), night(old, twin), RefuseRegression, nil},
		{"exactly the same goes first", night(same, old), night(old), RefuseRegression, []Finding{same}},
		{"a directory of another version", night(dir23), night(dir22), RefuseRegression, nil},
		{"a link to another version", night(link13), night(link12), RefuseRegression, nil},
		{"another version of a symbol", night(sym38), night(sym34), RefuseRegression, []Finding{sym38}},
		{"it was a warning", night(worse), night(mild), RefuseRegression, []Finding{worse}},
		{"fatal ones are never excused", night(fatal), night(fatal), RefuseRegression, []Finding{fatal}},
		{"all", night(same), night(old), RefuseAll, []Finding{same}},
		{"never", night(fatal), nil, RefuseNever, nil},
		{"warnings", night(mild), nil, RefuseAll, nil},
	} {
		if got := c.now.Refused(c.base, c.mode); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestUnversioned(t *testing.T) {
	for _, same := range [][]string{
		{"lib/libfoo.so.1.2", "lib/libfoo.so.1.3", "lib/libfoo.so.2", "lib/libfoo.so"},
		{"lib/llvm/lib/clang/22/x", "lib/llvm/lib/clang/23/x"},
		{"bin/clang-22", "bin/clang-23"},
		{"bin/rocgdb-py3.11", "bin/rocgdb-py3.12"},
		{"lib/cmake/hip-7.2/x.cmake", "lib/cmake/hip-7.3.1/x.cmake"},
		{"lib/libLLVM.so.22.0git", "lib/libLLVM.so.23.0git"},
		{"lib/libLLVM-22git.so", "lib/libLLVM-23git.so"},
		{"a/1/2/3", "a/4/5/6"},
	} {
		for _, p := range same[1:] {
			if unversioned(p) != unversioned(same[0]) {
				t.Errorf("%s: %s, %s: %s", p, unversioned(p), same[0], unversioned(same[0]))
			}
		}
	}
	for _, pair := range [][2]string{
		{"lib/libamdhip64.so", "lib/libamdhip32.so"}, {"x/Kernels-gfx1150.co", "x/Kernels-gfx1151.co"}, {"lib/liba1.so", "lib/liba2.so"},
		{"lib/a.so", "lib/b.so"}, {"bin/x", "lib/x"}, {"", "1"},
	} {
		if unversioned(pair[0]) == unversioned(pair[1]) {
			t.Errorf("%q are the same", pair)
		}
	}
}

func TestJSONRoundTrip(t *testing.T) {
	f := newFixture(t)
	f.link(rocm+"bin/gone", "x")
	r := f.audit(f.options())
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"schema":1`, `"severity":"required"`, `"rule":"link"`, `"rules":{"link":1}`, `"layout":"root"`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %s in %s", want, b)
		}
	}
	var again Report
	if err := json.Unmarshal(b, &again); err != nil || !slices.Equal(again.Findings, r.Findings) {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestTable(t *testing.T) {
	r := &Report{Checked: map[string]int{"files": 3, "elf": 1}, Allowed: 1}
	for i := range 11 {
		r.Findings = append(r.Findings, Finding{Rule: RuleLink, Severity: Required, Path: fmt.Sprintf("p%02d", i), Detail: "leads nowhere: \x1b[1m", Hint: "look"})
	}
	r.Findings = append(r.Findings, Finding{Rule: RuleVersion, Severity: Warning, Path: "v", Detail: "d"})
	r.Counts = Counts{Required: 11, Warning: 1}
	var b strings.Builder
	if err := r.Table(&b); err != nil {
		t.Fatal(err)
	}
	want := "required: link (11)\n"
	for i := range 8 {
		want += fmt.Sprintf("  p%02d leads nowhere: ?[1m\n", i)
	}
	want += "    -> look\n  and 3 more\nwarning: version (1)\n  v d\n" +
		"0 fatal, 11 required, 1 warnings, 1 allowed; checked 1 elf, 3 files\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestTablesOfPatternsCompile(t *testing.T) {
	for _, tab := range []table{optionalObjects, danglingLinks} {
		if len(tab.compile()) != len(tab) {
			t.Errorf("a pattern of %v does not compile", tab)
		}
		for _, row := range tab {
			if row.reason == "" {
				t.Errorf("%s has no reason", row.pattern)
			}
		}
	}
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"bin/rocgdb-py*", "bin/rocgdb-py3.11", true},
		{"bin/rocgdb-py*", "bin/rocgdb-py3/x", false},
		{"**/tests/**", "tests/x", true},
		{"**/tests/**", "share/x/tests/a/b", true},
		{"**/tests/**", "share/mytests/a", false},
		{"lib/*.so", "lib/a+b.so", true},
		{"a?c", "abc", true},
		{"a?c", "a/c", false},
		{"a.c", "abc", false},
	} {
		g, err := newGlob(c.pattern)
		if err != nil || g.match(c.path) != c.want {
			t.Errorf("%s on %s: %v", c.pattern, c.path, err)
		}
	}
}

func TestShebang(t *testing.T) {
	for _, c := range [][3]string{
		{"/bin/sh", "/bin/sh", ""},
		{" /bin/bash -e", "/bin/bash", ""},
		{"/usr/bin/env python3", "/usr/bin/env", "python3"},
		{"/usr/bin/env -S python3 -u", "/usr/bin/env", "python3"},
		{"/usr/bin/env -Sperl -w", "/usr/bin/env", "perl"},
		{"/usr/bin/env -S A=b -i python3", "/usr/bin/env", "python3"},
		{"/usr/bin/env", "/usr/bin/env", ""},
		{"/usr/bin/env -u HOME python3.12 -s", "/usr/bin/env", "python3.12"},
		{"/usr/bin/env -S -u HOME -C /tmp X=1 ruby", "/usr/bin/env", "ruby"},
		{"/usr/bin/env --split-string=perl -w", "/usr/bin/env", "perl"},
		{"/usr/bin/env -S -- awk -f", "/usr/bin/env", "awk"},
		{"/usr/bin/env -S \"python3\" -u", "/usr/bin/env", "python3"},
		{"/usr/bin/env -S /nix/store/x-python/bin/python3 -u", "/usr/bin/env", "/nix/store/x-python/bin/python3"},
		{"/usr/bin/env --", "/usr/bin/env", ""},
		{"[allow(x)]", "", ""},
		{"", "", ""},
	} {
		if i, cmd := shebang(c[0]); i != c[1] || cmd != c[2] {
			t.Errorf("%q: %q %q", c[0], i, cmd)
		}
	}
}

func FuzzLeaks(f *testing.F) {
	f.Add([]byte("prefix=/__w/x\n-L/opt/python/x\n/therock\n"))
	f.Add([]byte("\x00\xff/home/runner"))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := findLeaks(strings.NewReader(string(b)), nil, false)
		if err != nil || len(l.first) > maxLeaks || l.count < len(l.first) {
			t.Fatalf("%+v, %v", l, err)
		}
		for _, x := range l.first {
			if x.line < 1 || len(x.text) > maxLeakText+len("…") {
				t.Errorf("%+v", x)
			}
		}
		shebang(string(b))
		unstartable(string(b))
		checkKpack(b, int64(len(b)))
		readSums(strings.NewReader(string(b)), map[string]string{})
		// What has lost its numbers has none to lose.
		if p := unversioned(string(b)); unversioned(p) != p {
			t.Errorf("%q: %q, then %q", b, p, unversioned(p))
		}
	})
}
