package gfx

import (
	"errors"
	"slices"
	"testing"
	"testing/fstest"
)

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
	} {
		got, err := Resolve(tt.asked, tt.published)
		if err != nil || got != tt.want {
			t.Errorf("%s: %+v, %v", tt.asked, got, err)
		}
	}
	for _, asked := range []string{"", "auto", "gfx", "gfx9999", "gfx11", "RTX 4090", "../gfx1151", "gfx1151 ; rm", "gfx115X-all", "gfx1103-tests"} {
		if got, err := Resolve(asked, current); err == nil {
			t.Errorf("%q resolved to %+v", asked, got)
		}
	}
	// An APU is not served by the discrete GPUs' tarball.
	for _, asked := range []string{"gfx1103", "gfx90c"} {
		var unknown *UnknownError
		if got, err := Resolve(asked, []string{"gfx110X-dgpu", "gfx90X-dcgpu"}); !errors.As(err, &unknown) {
			t.Errorf("%s resolved to %+v, %v", asked, got, err)
		}
	}
}

func TestTargets(t *testing.T) {
	if got := Targets("gfx120X-all"); !slices.Equal(got, []string{"gfx1200", "gfx1201"}) {
		t.Error(got)
	}
	if got := Targets("gfx1151"); !slices.Equal(got, []string{"gfx1151"}) {
		t.Error(got)
	}
	if got := Targets("multiarch"); got != nil {
		t.Error(got)
	}
}

func TestDetect(t *testing.T) {
	node := func(version string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("simd_count 80\ngfx_target_version " + version + "\nlocation_id 1\n")}
	}
	sys := fstest.MapFS{
		nodesDir + "/0/properties": node("0"), // the CPU
		nodesDir + "/1/properties": node("110501"),
		nodesDir + "/2/properties": node("90010"),
		nodesDir + "/3/properties": node("90006"),
		nodesDir + "/4/properties": node("90006"),
		nodesDir + "/5/properties": {Data: []byte("gfx_target_version nonsense\n")},
	}
	got, err := Detect(sys)
	if err != nil || !slices.Equal(got, []string{"gfx1151", "gfx906", "gfx90a"}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, none := range []fstest.MapFS{{}, {nodesDir + "/0/properties": node("0")}} {
		if got, err := Detect(none); !errors.Is(err, ErrNoGPU) {
			t.Errorf("%v, %v", got, err)
		}
	}
}

func FuzzResolve(f *testing.F) {
	f.Add("gfx110x")
	f.Add("AMD Radeon RX 7900 XTX")
	f.Fuzz(func(t *testing.T, asked string) {
		if r, err := Resolve(asked, current); err == nil && !slices.Contains(current, r.Family) {
			t.Fatalf("%q resolved to %+v, which is not published", asked, r)
		}
	})
}
