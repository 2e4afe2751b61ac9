package audit

import (
	"slices"
	"strings"
	"testing"
)

// GPU code of other targets that was left out is no fault of the tree; what is
// missing for any other reason is.
func TestOmittedKernels(t *testing.T) {
	const (
		gone    = "opt/rocm/.kpack/k_lib_gfx1151.kpack"
		warning = "warning kpack opt/rocm/lib/libk.so.1 | ../.kpack/k_lib_@GFXARCH@.kpack"
		fatal   = "fatal kpack opt/rocm/.kpack | .kpack"
	)
	line := func(path, more string) string {
		return `{"path":"` + path + `","kind":"file","rule":"kernels"` + more + "}\n"
	}
	for name, tt := range map[string]struct {
		list    string // omitted.jsonl
		options []string
		want    string
	}{
		"by the list":           {list: line(gone, ""), want: warning},
		"by the options":        {options: []string{gone}, want: warning},
		"among others":          {options: []string{"opt/rocm/a", gone, "b.kpack"}, want: warning},
		"no list":               {want: fatal},
		"of another library":    {list: line("opt/rocm/.kpack/l_lib_gfx1151.kpack", ""), want: fatal},
		"elsewhere":             {list: line("opt/rocm/lib/.kpack/k_lib_gfx1151.kpack", ""), want: fatal},
		"no GPU":                {list: line("opt/rocm/.kpack/k_lib_.kpack", ""), want: fatal},
		"needed, so not gone":   {list: line(gone, `,"needed_by":"x"`), want: fatal},
		"no JSON":               {list: "{" + line(gone, ""), want: fatal},
		"the options know best": {list: line(gone, ""), options: []string{}, want: fatal},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.remove("opt/rocm/.kpack")
			f.remove(".kpack")
			if tt.list != "" {
				f.text("omitted.jsonl", tt.list, 0o644)
			}
			o := f.options()
			o.Omitted = tt.options
			if got := brief(f.audit(o).Findings); !slices.Equal(got, []string{tt.want}) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
	// With an archive for this target there is nothing to say.
	f := newFixture(t)
	f.text("omitted.jsonl", line("opt/rocm/.kpack/k_lib_gfx1030.kpack", ""), 0o644)
	if got := brief(f.audit(f.options()).Findings); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// GPU code of tests is left out for this target too: a program that stays without
// it is not said to be another target's.
func TestOmittedKernelsAreNotAllOfOthers(t *testing.T) {
	f := newFixture(t)
	f.remove("opt/rocm/.kpack")
	f.remove(".kpack")
	o := f.options()
	o.Omitted = []string{"opt/rocm/.kpack/k_lib_gfx1151.kpack"}
	found := f.audit(o).Findings
	if len(found) != 1 || strings.Contains(found[0].Detail, "other targets") || !strings.Contains(found[0].Hint, "tests") {
		t.Errorf("%+v", found)
	}
}

// A library that was left out is missed all the same.
func TestOmittedLibrariesAreMissed(t *testing.T) {
	f := newFixture(t)
	f.remove("opt/rocm/lib/sys/libb.so.1")
	o := f.options()
	o.Omitted = []string{"opt/rocm/lib/sys/libb.so.1"}
	if r := f.audit(o); r.Counts.Required == 0 {
		t.Errorf("%q", brief(r.Findings))
	}
}
