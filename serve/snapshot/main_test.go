package snapshot

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/audit"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/repack"
	"github.com/rocm-nightly/rocm-nightly/serve/state"
	"github.com/rocm-nightly/rocm-nightly/store"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// TestMain lets the test binary play a process that writes and is killed.
func TestMain(m *testing.M) {
	if root := os.Getenv("SNAPSHOT_TEST_WRITE"); root != "" {
		fmt.Fprintln(os.Stderr, writeForever(root))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// writeForever replaces everything that a Take reads, as fast as it can.
func writeForever(root string) error {
	st, err := store.Open(root)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	sl := st.Slot("nightly", "gfx1151")
	for n := 0; ; n++ {
		rec := record1(night(n%5), n%2)
		if err := sl.WriteRun(rec.Version, rec); err != nil {
			return err
		}
		for name, v := range map[string]any{
			store.LooksFile: update.Looked{Schema: 1, Installs: []update.LookedAt{{Install: "nightly-gfx1151", Newest: night(n % 5), State: update.StateNewer}}},
			store.BumpsFile: update.KeptBumps{Schema: 1, Bumps: []update.KeptBump{{Name: "flake", State: update.BumpOpen}}},
		} {
			if err := write(st, name, v); err != nil {
				return err
			}
		}
	}
}

// now is the clock of these tests.
var now = time.Date(2026, 10, 2, 9, 0, 0, 0, time.UTC)

func night(n int) string { return fmt.Sprintf("10.2.0a202609%02d", n+1) }

func write(st *store.Store, name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return st.WriteService(name, b)
}

// record1 is the record of a run of a version.
func record1(version string, exit int) *update.Record {
	rec := &update.Record{
		Schema: update.Schema, Install: "nightly-gfx1151", Version: version, Started: now.Add(-10 * time.Minute), Finished: now.Add(-8 * time.Minute),
		Generation: version, Exit: exit, Verified: &update.Verified{Size: 2 << 30}, Repack: &repack.Result{Audit: repack.Verdict{Required: 2, Warnings: 5}},
		Stages: []update.StageTime{{Stage: "download", Seconds: 100}, {Stage: "unpack", Seconds: 20}},
	}
	if exit != 0 {
		rec.Error, rec.Generation = "the server hung up", ""
	}
	return rec
}

// open is a store in a directory of its own, which is there.
func open(t testing.TB) *store.Store {
	t.Helper()
	st, err := store.Open(filepath.Join(t.TempDir(), "root"))
	if err != nil {
		t.Fatal(err)
	}
	st.Now = func() time.Time { return now }
	if err := os.MkdirAll(st.Root(), 0o755); err != nil {
		t.Fatal(err)
	}
	return st
}

// install makes a generation of a version and activates it.
func install(t testing.TB, sl *store.Slot, version string) {
	t.Helper()
	ctx := context.Background()
	staging, err := sl.Stage(ctx)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(staging.Dir(), manifest.Name))
	if err != nil {
		t.Fatal(err)
	}
	digest := release.Digest("sha256:" + fmt.Sprintf("%064x", len(version)))
	m := &manifest.Manifest{
		Schema: manifest.Schema, Digest: digest.String(), SRI: release.SRI(digest), Name: "therock-dist-linux-gfx1151-" + version + ".tar.gz", Channel: "nightly",
		Version: version, Recipe: "sha256:" + version, Options: json.RawMessage("{}"), Counts: manifest.Counts{Bytes: 5 << 30}, Edits: map[string]int{},
	}
	if err := manifest.Write(f, m); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(staging.Dir(), manifest.FilesName), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := staging.Commit(version); err != nil {
		t.Fatal(err)
	}
	if err := sl.Activate(ctx, version, "update"); err != nil {
		t.Fatal(err)
	}
}

// take takes a snapshot of one configured slot, and returns both.
func take(t testing.TB, tk *Taker, st *store.Store, change ...func(*Options)) (*state.State, state.Slot) {
	t.Helper()
	o := Options{
		Store: st, Now: func() time.Time { return now },
		Installs: []Install{{Channel: "nightly", Target: "gfx1151", StaleAfter: 96 * time.Hour, Retention: 120 * 24 * time.Hour}},
	}
	for _, c := range change {
		c(&o)
	}
	s, err := tk.Take(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Slots) == 0 || s.Slots[0].Slot != "nightly-gfx1151" {
		t.Fatalf("%+v", s.Slots)
	}
	return s, s.Slots[0]
}

// large is a record with an audit of so many findings.
func large(version string, findings int) *update.Record {
	rec := record1(version, 0)
	rec.Audit = &audit.Report{Schema: audit.Schema}
	for i := range findings {
		rec.Audit.Findings = append(rec.Audit.Findings, audit.Finding{
			Rule: "needed", Severity: "required", Path: fmt.Sprintf("opt/rocm/lib/libsomething%d.so", i), Subject: "libquadmath.so.0", Detail: "is not in the tree and not in what the host has",
		})
	}
	return rec
}
