package gfx

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	without := func(slugs ...string) []string {
		return slices.DeleteFunc(slices.Clone(current), func(s string) bool { return slices.Contains(slugs, s) })
	}
	for _, tt := range []struct {
		target    string
		published []string
		want      *Nearest
	}{
		{"gfx1103", []string{"gfx110X-dgpu"}, &Nearest{"gfx1100", "gfx110X-dgpu", "11.0.0"}},
		{"gfx1036", []string{"gfx103X-dgpu", "multiarch"}, &Nearest{"gfx1030", "gfx103X-dgpu", "10.3.0"}},
		{"gfx1013", current, &Nearest{"gfx1010", "gfx101X-dgpu", "10.1.0"}},
		{"gfx902", current, &Nearest{"gfx900", "gfx900", "9.0.0"}},
		{"gfx90c", without("gfx90c"), &Nearest{"gfx900", "gfx900", "9.0.0"}},
		{"gfx1153", without("gfx1153"), &Nearest{"gfx1151", "gfx1151", "11.5.1"}},
		{"gfx1153", without("gfx1153", "gfx1151"), &Nearest{"gfx1152", "gfx1152", "11.5.2"}},
		{"gfx1200", []string{"gfx1201"}, &Nearest{"gfx1201", "gfx1201", "12.0.1"}},
		// Newer than the data: the nearest stepping of the same major and minor number.
		{"gfx1154", current, &Nearest{"gfx1153", "gfx1153", "11.5.3"}},
		{"gfx1202", current, &Nearest{"gfx1201", "gfx120X-all", "12.0.1"}},
		{"gfx1104", current, &Nearest{"gfx1103", "gfx110X-all", "11.0.3"}},
		{"gfx1171", []string{"gfx1170", "gfx1173"}, &Nearest{"gfx1170", "gfx1170", "11.7.0"}},
		// None of another generation, none among CDNA, none where the data says there is none.
		{"gfx1170", current, nil},
		{"gfx1300", current, nil},
		{"gfx1251", current, nil}, // not even the next stepping: see ofGeneration
		{"gfx90a", without("gfx90a"), nil},
		{"gfx908", without("gfx908"), nil},
		{"gfx942", without("gfx94X-dcgpu"), nil},
		{"gfx941", current, nil},
		{"gfx906", without("gfx906"), nil},
		{"gfx904", current, nil},
		{"gfx90b", current, nil},
		{"gfx803", current, nil},
		{"gfx1100", []string{"gfx1101", "gfx1103"}, nil}, // their code does not avoid gfx1100's bug
		{"gfx110X-all", current, nil},
		{"multiarch", current, nil},
		{"gfx1103", nil, nil},
	} {
		got, ok := known.Nearest(tt.target, tt.published)
		if ok != (tt.want != nil) || ok && *got != *tt.want {
			t.Errorf("%s of %v: %+v, %v", tt.target, tt.published, got, ok)
		}
	}
}

// The error offers the substitute by name, with the setting that it needs,
// and does not choose it.
func TestUnknownErrorOffersTheNearest(t *testing.T) {
	_, err := known.Resolve("Radeon 780M", []string{"gfx110X-dgpu", "multiarch"})
	var unknown *UnknownError
	if !errors.As(err, &unknown) || unknown.Target != "gfx1103" || unknown.Nearest == nil || unknown.Nearest.Target != "gfx1100" {
		t.Fatalf("%+v, %v", unknown, err)
	}
	for _, want := range []string{`"Radeon 780M"`, "gfx1103", "gfx1100", "gfx110X-dgpu", "HSA_OVERRIDE_GFX_VERSION=11.0.0", "--arch gfx1100", "never chosen", "policy.multiarch: fallback"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

func TestUnknownErrorSaysWhatThereIs(t *testing.T) {
	for _, tt := range []struct {
		asked     string
		published []string
		has, not  string
	}{
		{"gfx803", []string{"gfx1100"}, "gfx1100", "HSA_OVERRIDE"},
		{"gfx803", []string{"gfx1100"}, "gfx1100", "policy.multiarch"},
		{"gfx803", current, "policy.multiarch: fallback", "HSA_OVERRIDE"},
		{"RTX 4090", current, "a target is a gfx name", "policy.multiarch"},
		{"gfx1151", nil, "nothing is published", "multiarch"},
		{"gfx90X-dcgpu", current, "--arch gfx906 or --arch gfx908 or --arch gfx90a", "--arch gfx900"}, // split in three
		{"gfx90x", current, "--arch gfx900", "HSA_OVERRIDE"},
		{"gfx115X-all", current, "--arch gfx1150", "HSA_OVERRIDE"}, // never was one
	} {
		_, err := known.Resolve(tt.asked, tt.published)
		if err == nil || !strings.Contains(err.Error(), tt.has) || strings.Contains(err.Error(), tt.not) {
			t.Errorf("%s: %v", tt.asked, err)
		}
	}
}

func TestOverride(t *testing.T) {
	for target, want := range map[string]string{
		"gfx1100": "11.0.0", "gfx1151": "11.5.1", "gfx90a": "9.0.10", "gfx90c": "9.0.12", "gfx906": "9.0.6", "gfx942": "9.4.2", "gfx1030": "10.3.0", "gfx1201": "12.0.1",
		"multiarch": "", "gfx110X-all": "", "": "", "gfx1": "",
	} {
		if got := Override(target); got != want {
			t.Errorf("%s: %q", target, got)
		}
	}
}

func TestSubstitute(t *testing.T) {
	for _, tt := range []struct {
		gpu    string
		res    Resolution
		want   string
		reason string
	}{
		{"gfx1031", Resolution{"gfx1030", "gfx1030"}, "10.3.0", "its code runs on it"},
		{"gfx1035", Resolution{"gfx1030", "gfx1030"}, "10.3.0", "likewise"},
		{"gfx1030", Resolution{"gfx1030", "gfx1030"}, "", "it is the one"},
		{"gfx1031", Resolution{"gfx1030", "gfx103X-all"}, "", "the family has code of its own for it"},
		{"gfx1100", Resolution{"gfx1030", "gfx1030"}, "", "it runs no such code"},
		{"gfx1031", Resolution{"gfx1030", Multiarch}, "", "everything is in it"},
		{"gfx1031", Resolution{"gfx103X-all", "gfx103X-all"}, "", "no single target"},
		{"", Resolution{"gfx1030", "gfx1030"}, "", "no GPU"},
	} {
		if got := known.Substitute(tt.gpu, tt.res); got != tt.want {
			t.Errorf("%s for %v: %q, want %q: %s", tt.gpu, tt.res, got, tt.want, tt.reason)
		}
	}
}

func TestEnvOfTargets(t *testing.T) {
	for name, want := range map[string]string{"gfx906": "9.0.6", "gfx1151": "", "gfx90X-dcgpu": "", "multiarch": "", "": ""} {
		if got := known.Env(name)["HSA_OVERRIDE_GFX_VERSION"]; got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestKernel(t *testing.T) {
	if got := known.Kernel("gfx1201"); got != "6.11" {
		t.Error(got)
	}
	for _, unknown := range []string{"gfx906", "gfx1103", "multiarch", ""} {
		if got := known.Kernel(unknown); got != "" {
			t.Errorf("%s: %q", unknown, got)
		}
	}
}

func TestOlderKernel(t *testing.T) {
	for _, tt := range []struct {
		running, minimum string
		want             bool
	}{
		{"6.8.0-45-generic", "6.10", true}, // eight is less than ten
		{"6.10.0", "6.8", false},
		{"6.10", "6.10", false},
		{"6.10.0-arch1-1", "6.10", false},
		{"6.9.12-200.fc40.x86_64", "6.10", true},
		{"6.18-rc3", "6.18", false},
		{"6.18.0-rc3+", "6.18", false},
		{"6.17-rc7", "6.18", true},
		{"6.18.3", "6.18.4", true},
		{"6.18.49-talos", "6.18.4", false},
		{"5.14.0-427.el9.x86_64", "6.1", true},
		{"5.14.0-427.el9.x86_64", "5.13", false},
		{"5.15.167.4-microsoft-standard-WSL2", "5.15", false},
		{"7.0.0-31-generic", "6.18", false},
		{"10.0", "9.9", false},
		{" v6.1.0\n", "6.2", true},
		{"", "6.10", false},
		{"6.10", "", false},
		{"6", "6.10", false},
		{"GNU-Mach", "6.10", false},
		{"6.x", "6.10", false},
		{"9999999999999.1", "6.10", false},
		{"6.10", "9999999.1", false},
		{"6.1.", "6.2", true},
	} {
		if got := OlderKernel(tt.running, tt.minimum); got != tt.want {
			t.Errorf("%q against %q: %v", tt.running, tt.minimum, got)
		}
	}
}
