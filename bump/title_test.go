package bump

import (
	"strings"
	"testing"
)

// The value that stood there is named where it is a version, and else left out.
func TestTitleOf(t *testing.T) {
	for old, want := range map[string]string{
		"10.2.0a20260929":         "rocm: 10.2.0a20260929 -> 10.2.0a20260930 (gfx1151)",
		"7.0~pre1":                "rocm: 7.0~pre1 -> 10.2.0a20260930 (gfx1151)",
		"":                        "rocm: 10.2.0a20260930 (gfx1151)",
		"x; closes #1":            "rocm: 10.2.0a20260930 (gfx1151)",
		"@everybody":              "rocm: 10.2.0a20260930 (gfx1151)",
		"1\n\nSigned-off-by: x":   "rocm: 10.2.0a20260930 (gfx1151)",
		strings.Repeat("1", 5000): "rocm: 10.2.0a20260930 (gfx1151)",
	} {
		got := titleOf([]Edit{{Target: "gfx1151", From: old, To: "10.2.0a20260930"}}, []Pin{{Target: "gfx1151", Version: "10.2.0a20260930"}})
		if got != want {
			t.Errorf("the title after %.40q is %q, want %q", old, got, want)
		}
	}
}
