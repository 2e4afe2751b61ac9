package gfx

import "testing"

func TestMayRun(t *testing.T) {
	for _, tt := range []struct {
		code, target string
		want         bool
	}{
		{"gfx1151", "gfx1151", true},
		{"gfx1150", "gfx1151", false},
		{"gfx1151", "gfx115f", false},
		{"gfx90a:sramecc+:xnack-", "gfx90a", true},
		{"gfx906:xnack-", "gfx906", true},
		{"gfx906:xnack-", "gfx908", false},
		{"gfx1250-strict", "gfx1250", true},
		{"gfx1250-strict", "gfx1251", false},
		// Generic processors.
		{"gfx11-generic", "gfx1103", true},
		{"gfx11-generic", "gfx1153", true},
		{"gfx11-generic", "gfx1170", false},
		{"gfx11-generic", "gfx1201", false},
		{"gfx11-7-generic", "gfx1171", true},
		{"gfx9-generic", "gfx906", true},
		{"gfx9-generic", "gfx90a", false},
		{"gfx9-generic", "gfx908", false},
		{"gfx9-generic", "gfx942", false},
		{"gfx9-4-generic", "gfx942", true},
		{"gfx9-4-generic", "gfx950", true},
		{"gfx9-4-generic", "gfx90a", false},
		{"gfx10-3-generic", "gfx1036", true},
		{"gfx10-3-generic", "gfx1010", false},
		{"gfx10-1-generic", "gfx1030", false},
		{"gfx12-5-generic", "gfx1250", true},
		{"gfx12-generic", "gfx1250", false},
		// Families.
		{"gfx110X-all", "gfx1103", true},
		{"gfx110X-all", "gfx1150", false},
		{"gfx90X-dcgpu", "gfx90a", true},
		{"gfx94X-dcgpu", "gfx942", true},
		{"gfx950-dcgpu", "gfx950", true},
		{"gfx11xx", "gfx1151", true},
		{"gfx120x", "gfx1100", false},
		// What is not known stays.
		{"gfx11-9-generic", "gfx1030", true},
		{"gfx11-generic", "gfx1155", true},
		{"gfx12-generic", "gfx1202", true},
		{"gfx12-generic", "gfx1155", false},
		{"amdgcnspirv", "gfx1151", true},
		{"gfx1151f00d", "gfx1030", true},
		{"", "gfx1030", true},
		{"gfx115", "gfx1151", true},
		{"gfx11", "gfx1151", true},
		{"gfx9", "gfx90a", true},
		{"gfx90", "gfx90a", true},
		{"gfx1030", "gfx110X-all", true},
	} {
		if got := MayRun(tt.code, tt.target); got != tt.want {
			t.Errorf("MayRun(%q, %q) = %v", tt.code, tt.target, got)
		}
	}
}

func TestIsTarget(t *testing.T) {
	for name, want := range map[string]bool{"gfx1151": true, "gfx90a": true, "gfx110X-all": false, "multiarch": false, "": false, "auto": false, "gfx950-dcgpu": false} {
		if IsTarget(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}
