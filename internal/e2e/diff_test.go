package e2e

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/audit/diff"
)

// whatTheNightBrought tests that diff finds exactly what scripts/corpus.sh
// changes from one night to the next, and that none of it breaks anything.
func whatTheNightBrought(t *testing.T, out string) {
	t.Helper()
	var r diff.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	var changed []string
	for _, ch := range r.Changed {
		changed = append(changed, ch.Path)
	}
	want := []string{
		".kpack/rand_lib_gfx1036.kpack", "lib/libamd_comgr.so.2.4.0", "lib/librocrand.so.1", "lib/librocrand.so.1.1",
		"lib/rdc/grpc/lib/libgrpc.so.1", "share/doc/rocm/CHANGES", "share/therock/therock_manifest.json",
	}
	if !slices.Equal(changed, want) {
		t.Errorf("changed: %q", changed)
	}
	if len(r.Added) != 1 || r.Added[0].Path != "share/rocm/new-in-10.2.0a20261001.txt" || len(r.Removed) != 1 || r.Removed[0].Path != "share/doc/rocminfo/LICENSE.md" {
		t.Errorf("added %+v, removed %+v", r.Added, r.Removed)
	}
	if len(r.Risks)+len(r.Libraries)+len(r.Host.Versions)+len(r.Notes) > 0 || len(r.Kernels) == 0 {
		t.Errorf("%+v", r)
	}
	if v := r.Versions[0]; v.From != "10.2.0a20260930" || v.To != "10.2.0a20261001" || r.Sources == nil || r.Sources.Rock.Link == "" {
		t.Errorf("%+v, %+v", r.Versions, r.Sources)
	}
}
