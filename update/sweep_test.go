package update

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/store"
)

// TestSweepWithoutDownloads: where nothing was ever downloaded there is nothing to
// sweep, and that is no failure of prune.
func TestSweepWithoutDownloads(t *testing.T) {
	st, err := store.Open(filepath.Join(t.TempDir(), "root"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := SweepSpools(t.Context(), st, time.Now(), false)
	if err != nil || len(s.Names) != 0 || s.Bytes != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}
