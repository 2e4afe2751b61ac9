package update

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/repack"
)

// Targets that leave out one another's kernels have a tree each, of one download.
func TestTargetsWithKernelsOfTheirOwnShareTheDownload(t *testing.T) {
	w := newWorld(t)
	w.publishFamily("10.2.0a20260929", "gfx103X-all")
	omit := func(o *Options) {
		o.Installs[1].Target = "gfx1031"
		for i := range o.Installs {
			o.Installs[i].Repack.Omit = []string{"kernels"}
		}
	}
	rep, n := w.twins(omit)
	if rep.Exit != 0 || n != 1 || !rep.Installs[0].Changed || !rep.Installs[1].Changed {
		t.Fatalf("%d downloads, %+v %+v", n, rep.Installs[0], rep.Installs[1])
	}
	for target, other := range map[string]string{"gfx1030": "gfx1031", "gfx1031": "gfx1030"} {
		packs := filepath.Join(w.root, "slots/nightly-"+target+"/current/opt/rocm/.kpack/demo_lib_")
		_, has := os.Stat(packs + target + ".kpack")
		_, left := os.Stat(packs + other + ".kpack")
		if has != nil || left == nil {
			t.Errorf("%s: %v, %v", target, has, left)
		}
	}
	if rep, n := w.twins(omit); rep.Exit != 0 || n != 0 || rep.Installs[0].Changed || rep.Installs[1].Changed {
		t.Errorf("%d downloads, %+v %+v", n, rep.Installs[0], rep.Installs[1])
	}
	// Another list: made anew.
	rep, _ = w.twins(omit, func(o *Options) { o.Installs[1].Repack.Omit = []string{"kernels", "docs"} })
	if rep.Exit != 0 || rep.Installs[0].Changed || !rep.Installs[1].Changed {
		t.Errorf("%+v %+v", rep.Installs[0], rep.Installs[1])
	}
	// What cannot be honoured is said before anything is downloaded.
	rep, n = w.twins(func(o *Options) {
		o.Installs = []Install{{Target: "gfx103X-all", Channel: "nightly", Keep: 3, Repack: repack.Options{Omit: []string{"databases"}}}}
	})
	if rep.Exit != ExitUsage || n != 0 || !strings.Contains(rep.Installs[0].Error, "gfx103X-all") {
		t.Errorf("exit %d, %d downloads, %+v", rep.Exit, n, rep.Installs[0])
	}
}

// What one target's kernels take says little of what another's do.
func TestTheNeedOfATargetIsNotAnothers(t *testing.T) {
	w := newWorld(t)
	w.publishFamily("10.2.0a20260929", "gfx103X-all")
	left := func(o *Options) {
		o.Installs[1].Target = "gfx1031"
		for i := range o.Installs {
			o.Installs[i].Repack.Omit = []string{"kernels"}
		}
	}
	if rep, _ := w.twins(left, func(o *Options) { o.Installs = o.Installs[:1] }); rep.Exit != 0 {
		t.Fatalf("%+v", rep.Installs[0])
	}
	rep, _ := w.twins(left, func(o *Options) { o.DryRun = true })
	if space := rep.Installs[1].Space; space == nil || space.Basis != basisLast || space.need.Least.Inodes > 0 {
		t.Errorf("%+v", space)
	}
}

// What the config asks for is no damage of what was downloaded.
func TestOmissionIsNoDamage(t *testing.T) {
	if damage(&repack.OmitError{Err: errors.New("x")}, &sourceReader{}) {
		t.Error("a download would be thrown away for what the config says")
	}
}
