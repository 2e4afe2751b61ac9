package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A user who has installed nothing has what the system has, and the own slots
// come first.
func TestUsersFindTheSystemsSlots(t *testing.T) {
	dir := t.TempDir()
	system, own := filepath.Join(dir, "system"), filepath.Join(dir, "own", "rocm-nightly")
	slot := func(root, name string) {
		gen := filepath.Join(root, "slots", name, "generations", "10.2.0a20260930")
		if err := os.MkdirAll(gen, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("generations/10.2.0a20260930", filepath.Join(root, "slots", name, "current")); err != nil {
			t.Fatal(err)
		}
	}
	find := func(uid int, root, name string) string {
		a := &app{stderr: io.Discard, uid: uid, rootFlag: root, getenv: func(name string) string {
			return map[string]string{"XDG_DATA_HOME": filepath.Join(dir, "own"), "ROCM_NIGHTLY_CONFIG": "/dev/null"}[name]
		}}
		sl, err := a.usableSlot(name, system)
		if err != nil {
			return err.Error()
		}
		return sl.CurrentPath()
	}
	slot(system, "nightly-gfx1151")
	for what, tt := range map[string]struct{ got, want string }{
		"a user":         {find(1000, "", ""), system + "/slots/nightly-gfx1151/current"},
		"by name":        {find(1000, "", "gfx1151"), system + "/slots/nightly-gfx1151/current"},
		"another target": {find(1000, "", "gfx1100"), "gfx1100"},
		"another root":   {find(1000, dir+"/none", ""), "nothing is installed"},
	} {
		if !strings.Contains(tt.got, tt.want) {
			t.Errorf("%s: %s, want %s", what, tt.got, tt.want)
		}
	}
	slot(own, "nightly-gfx1100")
	if got := find(1000, "", ""); got != own+"/slots/nightly-gfx1100/current" {
		t.Errorf("the own slot is not the one: %s", got)
	}
	slot(own, "stable-gfx1100")
	slot(system, "rc-gfx1100")
	for _, name := range []string{"", "gfx1100"} {
		if got := find(1000, "", name); !strings.Contains(got, "nightly-gfx1100, stable-gfx1100") {
			t.Errorf("%q: one of several was taken: %s", name, got)
		}
	}
	if got := find(1000, "", "gfx1151"); got != system+"/slots/nightly-gfx1151/current" {
		t.Errorf("the system's slot is not found by its name: %s", got)
	}
}
