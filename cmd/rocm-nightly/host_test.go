package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/store"
)

// The loader's cache has the names of libraries, found by way of current: after
// every switch it is rebuilt, if the host's file is linked to that slot.
func TestEverySwitchRunsLDConfig(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	st, err := store.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	const older, newer, conf = "10.2.0a20260929", "10.2.0a20260930", "etc/ld.so.conf.d/rocm-nightly.conf"
	for _, slot := range []string{"nightly-gfx1151", "nightly-gfx1100"} {
		for _, version := range []string{older, newer} {
			gen := filepath.Join(root, "slots", slot, "generations", version)
			if err := errors.Join(os.MkdirAll(filepath.Join(gen, filepath.Dir(conf)), 0o755), os.WriteFile(filepath.Join(gen, conf), nil, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink("generations/"+newer, filepath.Join(root, "slots", slot, "current")); err != nil {
			t.Fatal(err)
		}
	}
	sl := st.Slot("nightly", "gfx1151")
	link := store.LinkOptions{Path: filepath.Join(dir, "rocm-nightly.conf"), File: conf, By: store.LinkByHost}
	if _, err := st.MakeLink(t.Context(), sl, link); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	runs := 0
	do := func(uid int, args ...string) string {
		text.Reset()
		a := &app{stdin: strings.NewReader(""), stdout: &text, stderr: &text, uid: uid, environ: func() []string { return nil },
			getenv: func(name string) string { return map[string]string{"ROCM_NIGHTLY_CONFIG": "/dev/null"}[name] },
			ldconfig: func(context.Context) error {
				runs++
				if to, err := os.Readlink(sl.CurrentPath()); err != nil || to == "" {
					t.Errorf("%v", err)
				}
				return nil
			}}
		if code := a.run(t.Context(), append([]string{"--root", root}, args...)); code != 0 {
			t.Fatalf("%v: %d\n%s", args, code, &text)
		}
		return text.String()
	}
	for _, step := range []struct {
		args string
		want int
	}{
		{"rollback gfx1151", 1},
		{"use gfx1151 " + older, 1}, // is active already
		{"use gfx1151 " + newer, 2},
		{"rollback gfx1100", 2}, // another slot's
	} {
		if out := do(0, strings.Fields(step.args)...); runs != step.want {
			t.Errorf("%s: ldconfig has been run %d times, want %d\n%s", step.args, runs, step.want, out)
		}
	}
	if out := do(1000, "rollback", "gfx1151"); runs != 2 || !strings.Contains(out, "sudo ldconfig") {
		t.Errorf("as a user: %d\n%s", runs, out)
	}
}
