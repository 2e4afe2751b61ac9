package release

import "testing"

// TestParseBound: who says that something begins with 10.1 means its nights.
func TestParseBound(t *testing.T) {
	for s, want := range map[string]string{
		"": "", "10": "10.0.dev0", "10.1": "10.1.0.dev0", "10.1.0": "10.1.0.0.dev0",
		"10.1.0a20260823": "10.1.0a20260823", "10.1.0rc0": "10.1.0rc0",
	} {
		if v, err := ParseBound(s); err != nil || v.String() != want {
			t.Errorf("%q: %q, %v, want %q", s, v, err, want)
		}
	}
	for _, s := range []string{"x", "10.", ".1", "10.1.x", " 10.1", "-1"} {
		if v, err := ParseBound(s); err == nil {
			t.Errorf("%q is %q", s, v)
		}
	}
}
