package config

import (
	"strings"
	"testing"
)

func TestKeepTarballs(t *testing.T) {
	c := Default()
	src := "keep_tarballs: 3\ninstalls:\n  - target: gfx1151\n  - target: gfx1036\n    keep_tarballs: 0\n  - target: gfx1030\n    keep_tarballs: 5\n"
	if err := Decode(c, "x", []byte(src)); err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{3, 0, 5} {
		if got := c.KeepTarballsOf(c.Installs[i]); got != want {
			t.Errorf("install %d keeps %d, not %d", i, got, want)
		}
	}
	for src, want := range map[string]string{
		"keep_tarballs: -1": "keep_tarballs: -1 is not between 0 and 1000",
		"installs: [{target: gfx1151, keep_tarballs: 1001}]": "installs[0].keep_tarballs: 1001",
	} {
		c := Default()
		if err := Decode(c, "x", []byte(src)); err != nil {
			t.Fatal(err)
		}
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", src, err)
		}
	}
}
