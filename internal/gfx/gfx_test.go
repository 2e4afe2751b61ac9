package gfx

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/amd"
)

// known is what is compiled in.
var known = New(amd.Builtin())

// current is what AMD publishes for Linux in autumn 2026.
var current = []string{
	"gfx900", "gfx906", "gfx908", "gfx90a", "gfx90c", "gfx94X-dcgpu", "gfx950-dcgpu", "gfx125X-dcgpu", "gfx101X-dgpu",
	"gfx103X-all", "gfx110X-all", "gfx1150", "gfx1151", "gfx1152", "gfx1153", "gfx120X-all", "multiarch",
}

func TestResolve(t *testing.T) {
	for _, tt := range []struct {
		asked     string
		published []string
		want      Resolution
	}{
		{"gfx1151", current, Resolution{"gfx1151", "gfx1151"}},
		{"GFX1151", current, Resolution{"gfx1151", "gfx1151"}},
		{"gfx1103", current, Resolution{"gfx1103", "gfx110X-all"}},
		{"gfx1036", current, Resolution{"gfx1036", "gfx103X-all"}},
		{"gfx942", current, Resolution{"gfx942", "gfx94X-dcgpu"}},
		{"gfx90a", current, Resolution{"gfx90a", "gfx90a"}},
		{"gfx90a", []string{"gfx90X-dcgpu"}, Resolution{"gfx90a", "gfx90X-dcgpu"}},
		{"gfx110X-all", current, Resolution{"gfx110X-all", "gfx110X-all"}},
		{"gfx110x-all", current, Resolution{"gfx110X-all", "gfx110X-all"}},
		{"gfx110x", current, Resolution{"gfx110X-all", "gfx110X-all"}},
		{"gfx110X-dgpu", current, Resolution{"gfx110X-all", "gfx110X-all"}}, // a slug of the past
		{"gfx1100", []string{"gfx110X-dgpu", "gfx110X-all"}, Resolution{"gfx1100", "gfx110X-all"}},
		{"gfx1100", []string{"gfx110X-dgpu"}, Resolution{"gfx1100", "gfx110X-dgpu"}},
		{"gfx1260", []string{"gfx126X-all"}, Resolution{"gfx1260", "gfx126X-all"}}, // a slug of the future
		{"multiarch", current, Resolution{"multiarch", "multiarch"}},
		{"RX 7900 XTX", current, Resolution{"gfx1100", "gfx110X-all"}},
		{"AMD Radeon RX 7900 XTX", current, Resolution{"gfx1100", "gfx110X-all"}},
		{"Strix Halo", current, Resolution{"gfx1151", "gfx1151"}},
		{"MI300X", current, Resolution{"gfx942", "gfx94X-dcgpu"}},
		{"AMD Instinct MI300X", current, Resolution{"gfx942", "gfx94X-dcgpu"}},
		{"Radeon VII", current, Resolution{"gfx906", "gfx906"}},
		{" gfx1151\n", current, Resolution{"gfx1151", "gfx1151"}},
		{"gfx 1100", current, Resolution{"gfx1100", "gfx110X-all"}},
		{"gfx90a:sramecc+:xnack-", current, Resolution{"gfx90a", "gfx90a"}}, // as rocminfo prints it
		{"amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-", current, Resolution{"gfx942", "gfx94X-dcgpu"}},
		{"gfx110X-dgpu", []string{"gfx110X-all"}, Resolution{"gfx110X-all", "gfx110X-all"}},
		{"gfx110X-all", []string{"gfx110X-dgpu"}, Resolution{"gfx110X-dgpu", "gfx110X-dgpu"}},
		{"GFX120X-ALL", current, Resolution{"gfx120X-all", "gfx120X-all"}},
		{"gfx103X-dgpu", current, Resolution{"gfx103X-all", "gfx103X-all"}},
		{"gfx1033", current, Resolution{"gfx1033", "gfx103X-all"}},
		{"Multi-Arch", current, Resolution{"multiarch", "multiarch"}},
		{"RX7900XTX", current, Resolution{"gfx1100", "gfx110X-all"}},
		{"Ryzen AI Max+ 395", current, Resolution{"gfx1151", "gfx1151"}},
		{"Radeon 8060S", current, Resolution{"gfx1151", "gfx1151"}},
		{"Instinct MI300X", current, Resolution{"gfx942", "gfx94X-dcgpu"}},
	} {
		got, err := known.Resolve(tt.asked, tt.published)
		if err != nil || got != tt.want {
			t.Errorf("%s: %+v, %v", tt.asked, got, err)
		}
	}
	for _, asked := range []string{"", "auto", "gfx", "gfx9999", "gfx11", "RTX 4090", "../gfx1151", "gfx1151 ; rm", "gfx115X-all", "gfx1103-tests",
		"gfx1151:debug", "gfx1100 gfx1101", "Radeon", "AMD", "RX", "Ryzen", "PRO", "rocm", "7", "x", strings.Repeat("gfx1151 ", 100)} {
		if got, err := known.Resolve(asked, current); err == nil {
			t.Errorf("%q resolved to %+v", asked, got)
		}
	}
	// An APU is not served by the discrete GPUs' tarball.
	for _, asked := range []string{"gfx1103", "gfx90c"} {
		var unknown *UnknownError
		if got, err := known.Resolve(asked, []string{"gfx110X-dgpu", "gfx90X-dcgpu"}); !errors.As(err, &unknown) {
			t.Errorf("%s resolved to %+v, %v", asked, got, err)
		}
	}
}

func TestTargets(t *testing.T) {
	if got := known.Targets("gfx120X-all"); !slices.Equal(got, []string{"gfx1200", "gfx1201"}) {
		t.Error(got)
	}
	if got := known.Targets("gfx1151"); !slices.Equal(got, []string{"gfx1151"}) {
		t.Error(got)
	}
	if got := known.Targets("multiarch"); got != nil {
		t.Error(got)
	}
}

func FuzzResolve(f *testing.F) {
	f.Add("gfx110x")
	f.Add("AMD Radeon RX 7900 XTX")
	f.Add("AMD Ryzen 7 7840U w/ Radeon 780M Graphics")
	f.Add("gfx90a:sramecc+:xnack-")
	f.Add("gfx1154")
	f.Fuzz(func(t *testing.T, asked string) {
		r, err := known.Resolve(asked, current)
		if err == nil && !slices.Contains(current, r.Family) {
			t.Fatalf("%q resolved to %+v, which is not published", asked, r)
		}
		var unknown *UnknownError
		if errors.As(err, &unknown) && unknown.Nearest != nil && !slices.Contains(current, unknown.Nearest.Family) {
			t.Fatalf("%q: %+v is offered, which is not published", asked, unknown.Nearest)
		}
	})
}

func TestOverridden(t *testing.T) {
	for value, want := range map[string]string{
		"10.3.0": "gfx1030", "9.0.10": "gfx90a", "9.0.6": "gfx906", "": "gfx1031", "10.3": "gfx1031", "10.3.0x": "gfx1031",
		"1.-2.3": "gfx1031", "99999.1.1": "gfx1031", "10.300.0": "gfx1031", "gfx1030": "gfx1031",
	} {
		if got := Overridden("gfx1031", value); got != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
}
