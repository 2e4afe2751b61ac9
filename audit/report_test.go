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
		l, err := findLeaks(strings.NewReader(string(b)), nil)
		if err != nil || len(l.first) > maxLeaks || l.count < len(l.first) {
			t.Fatalf("%+v, %v", l, err)
		}
		for _, x := range l.first {
			if x.line < 1 || len(x.text) > maxLeakText+len("…") {
				t.Errorf("%+v", x)
			}
		}
		shebang(string(b))
	})
}
