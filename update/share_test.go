package update

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/amd"
	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
)

// publishFamily publishes a night of a family.
func (w *world) publishFamily(version, family string) string {
	w.t.Helper()
	return publishNight(w.t, w.amd, version, family, 1)
}

// twins runs for two targets that gfx103X-all serves, and counts the requests
// for a tarball's bytes.
func (w *world) twins(change ...func(*Options)) (*Report, int64) {
	w.t.Helper()
	o := w.o
	o.Installs = []Install{{Target: "gfx1030", Channel: "nightly", Keep: 3}, {Target: "gfx1036", Channel: "nightly", Keep: 3}}
	for _, c := range change {
		c(&o)
	}
	before := w.bodies.Load()
	rep, err := Run(context.Background(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	return rep, w.bodies.Load() - before
}

// Targets that one tarball serves are downloaded and unpacked once.
func TestTargetsOfOneTarballShareIt(t *testing.T) {
	w := newWorld(t)
	w.publishFamily("10.2.0a20260929", "gfx103X-all")
	rep, n := w.twins()
	if rep.Exit != 0 || n != 1 || !rep.Installs[0].Changed || !rep.Installs[1].Changed {
		t.Fatalf("%d downloads, %+v %+v", n, rep.Installs[0], rep.Installs[1])
	}
	for _, target := range []string{"gfx1030", "gfx1036"} {
		env, err := os.ReadFile(filepath.Join(w.root, "slots/nightly-"+target+"/current/etc/env.sh"))
		if err != nil || !strings.Contains(string(env), "nightly-"+target) {
			t.Errorf("%s: %v\n%s", target, err, env)
		}
	}
	if left, _ := os.ReadDir(filepath.Join(w.root, "spool/nightly")); len(left) > 0 {
		t.Errorf("left of the download: %v", left)
	}
	// Also later, when only one of them is left.
	if err := os.RemoveAll(filepath.Join(w.root, "slots/nightly-gfx1036")); err != nil {
		t.Fatal(err)
	}
	if rep, n := w.twins(); rep.Exit != 0 || n != 0 || !rep.Installs[1].Changed {
		t.Errorf("%d downloads, %+v", n, rep.Installs[1])
	}
}

// A generation that is not whole is no source: the tarball is.
func TestADamagedTwinIsNotShared(t *testing.T) {
	w := newWorld(t)
	w.publishFamily("10.2.0a20260929", "gfx103X-all")
	one := func(o *Options) { o.Installs = o.Installs[:1] }
	if rep, _ := w.twins(one); rep.Exit != 0 {
		t.Fatalf("%+v", rep.Installs[0])
	}
	version := filepath.Join(w.root, "slots/nightly-gfx1030/current/opt/rocm/.info/version")
	if err := os.Remove(version); err != nil {
		t.Fatal(err)
	}
	rep, n := w.twins(func(o *Options) { o.Installs = o.Installs[1:] })
	if rep.Exit != 0 || n != 1 || !rep.Installs[0].Changed {
		t.Fatalf("%d downloads, %+v", n, rep.Installs[0])
	}
	if _, err := os.Stat(strings.Replace(version, "gfx1030", "gfx1036", 1)); err != nil {
		t.Error(err)
	}
}

// Without an installation nothing is kept, but the download is.
func TestNoInstallDownloadsOnce(t *testing.T) {
	w := newWorld(t)
	w.publishFamily("10.2.0a20260929", "gfx103X-all")
	rep, n := w.twins(func(o *Options) { o.NoInstall = true })
	if rep.Exit != 0 || n != 1 {
		t.Errorf("%d downloads, %+v %+v", n, rep.Installs[0], rep.Installs[1])
	}
}

// auto takes what computes, and says what it leaves out.
func TestAutoOnRealTopologies(t *testing.T) {
	for machine, want := range map[string][]string{
		"ryzen-rx7900": {"gfx1100"}, "strixhalo-mi50": {"gfx906", "gfx1151"}, "four-mi50": {"gfx906"}, "ryzen-alone": {"gfx1036"}, "none": nil,
	} {
		var log bytes.Buffer
		o := Options{Installs: []Install{{Target: gfx.Auto, Channel: "nightly", Link: "/opt/rocm"}}, Log: slog.New(slog.NewTextHandler(&log, nil)), Kernel: "4.18.0-553.el8"}.withDefaults()
		o.Sys = os.DirFS(filepath.Join("../internal/gfx/testdata/kfd", machine))
		installs, err := o.expand()
		var got []string
		for i, in := range installs {
			got = append(got, in.Target)
			if (in.Link != "") != (i == 0) {
				t.Errorf("%s: install %d has the link %q", machine, i, in.Link)
			}
		}
		if slices.Sort(got); err == nil != (want != nil) || !sameSet(got, want) {
			t.Errorf("%s: %v, %v", machine, got, err)
		}
		if out := strings.Contains(log.String(), "left out"); out != (machine == "ryzen-rx7900") {
			t.Errorf("%s: %s", machine, &log)
		}
		if machine == "strixhalo-mi50" && !strings.Contains(log.String(), "kernel is older") {
			t.Errorf("an old kernel is not named: %s", &log)
		}
	}
}

func sameSet(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

// A target without a tarball is not served by another one silently.
func TestTheNearestTargetIsOffered(t *testing.T) {
	w := newWorld(t)
	w.publishFamily("10.2.0a20260929", "gfx110X-dgpu")
	apu := func(o *Options) { o.Installs = []Install{{Target: "gfx1103", Channel: "nightly", Keep: 3}} }
	out := w.run(apu)
	for _, part := range []string{"gfx1103", "gfx110X-dgpu", "HSA_OVERRIDE_GFX_VERSION=11.0.", "--arch gfx110"} {
		if out.Exit != ExitFailed || !strings.Contains(out.Error, part) {
			t.Fatalf("%q is not in %+v", part, out)
		}
	}
	fallback := func(o *Options) { o.Policy.Multiarch = "fallback" }
	if out := w.run(apu, fallback); out.Exit != ExitFailed {
		t.Errorf("without multiarch on the index: %+v", out)
	}
	w.publishFamily("10.2.0a20260929", "multiarch")
	if out := w.run(apu); out.Exit != ExitFailed || !strings.Contains(out.Error, "multiarch") {
		t.Errorf("multiarch was taken unasked: %+v", out)
	}
	if out := w.run(apu, fallback); out.Exit != 0 || out.Install != "nightly-gfx1103" || !strings.Contains(out.Release, "multiarch") {
		t.Errorf("%+v", out)
	}
}

// Nights that are known to be bad are not taken.
func TestTheBuiltInDenylist(t *testing.T) {
	w := newWorld(t)
	w.o.Policy.Deny = amd.Builtin().Patterns()
	w.publish("7.14.0a20260608", 3)
	w.publish("7.14.0a20260610", 1)
	if out := w.run(); out.Exit != 0 || w.active() != "7.14.0a20260608" {
		t.Errorf("%+v", out)
	}
}
