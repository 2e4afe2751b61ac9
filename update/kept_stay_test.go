package update

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// A record that was lost is made anew by the next run, of the parts and the ledger,
// and the install wants its tarball as before.
func TestALostRecordIsMadeAnewByTheNextRun(t *testing.T) {
	t.Parallel()
	w := keeping(t, 1)
	w.publish("10.2.0a20260928", 2)
	out, _ := w.must()
	if err := os.Remove(filepath.Join(out.Kept, "tarball.json")); err != nil {
		t.Fatal(err)
	}
	if _, n := w.must(); n != 0 || !slices.Equal(w.kept(), []string{"10.2.0a20260928"}) {
		t.Errorf("kept: %v, with %d requests", w.kept(), n)
	}
	w.publish("10.2.0a20260929", 1)
	w.must()
	if got := w.kept(); !slices.Equal(got, []string{"10.2.0a20260929"}) {
		t.Errorf("kept: %v", got)
	}
}

// After a rollback the tarball of what is active is not the one that goes, however
// old it is; nor is that of what is held.
func TestTheTarballOfWhatIsActiveStays(t *testing.T) {
	t.Parallel()
	w := keeping(t, 1)
	slot := w.o.Store.Slot("nightly", "gfx1151")
	for i, v := range []string{"10.2.0a20260926", "10.2.0a20260927", "10.2.0a20260928"} {
		w.publish(v, 5-i)
		if out := w.run(); out.Kept == "" {
			t.Fatalf("%+v", out)
		}
		w.o.Installs[0].Activate = ActivateManual
	}
	if got := w.kept(); !slices.Equal(got, []string{"10.2.0a20260926", "10.2.0a20260928"}) || w.active() != "10.2.0a20260926" {
		t.Errorf("kept: %v; %s is active", got, w.active())
	}
	if err := slot.Hold(t.Context(), time.Time{}, ""); err != nil {
		t.Fatal(err)
	}
	if _, _, err := slot.Use(t.Context(), "10.2.0a20260927"); err != nil {
		t.Fatal(err)
	}
	w.publish("10.2.0a20260929", 1)
	w.run()
	if got := w.kept(); !slices.Equal(got, []string{"10.2.0a20260926", "10.2.0a20260929"}) {
		t.Errorf("kept: %v", got)
	}
	w.o.Installs[0].KeepTarballs = 0
	w.run()
	if got := w.kept(); len(got) > 0 {
		t.Errorf("kept: %v", got)
	}
}
