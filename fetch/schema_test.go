package fetch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/schema"
)

// spoolWith is a spool that has this state.json, and one segment.
func spoolWith(t *testing.T, text string) *spool {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{stateName: text, "0000": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := openSpool(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.close() })
	return s
}

// Spools of each schema that there ever was are taken up again. A schema that is
// raised needs a stored one of the one before it here.
func TestStoredSpoolsAreRead(t *testing.T) {
	if stateFormat.Now() != stateSchema || stateSchema != 1 {
		t.Errorf("schema %d, in the table %d: store one of schema %d and read it here", stateSchema, stateFormat.Now(), stateSchema-1)
	}
	b, err := os.ReadFile("testdata/schema1/state.json")
	if err != nil {
		t.Fatal(err)
	}
	st, err := spoolWith(t, string(b)).readState()
	want := state{1, "https://nightly.example/rocm/core/tarball/therock-dist-linux-gfx1151-10.2.0a20261121.tar.gz", `"21a440effc17934da9f5517a18a5bcc2-1"`, "Sat, 21 Nov 2026 06:00:00 GMT", 1383845, 524288}
	if err != nil || st != want {
		t.Errorf("%+v, %v", st, err)
	}
}

// What a newer program has downloaded is neither taken for something else nor
// thrown away.
func TestASpoolOfANewerProgramIsLeftAlone(t *testing.T) {
	s := spoolWith(t, `{"schema": 2, "url": {}}`)
	_, err := s.prepare(&object{size: 1, ranges: true}, 1)
	if !errors.Is(err, schema.ErrNewer) || !strings.Contains(err.Error(), "upgrade, or remove the spool") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(s.path(0)); err != nil {
		t.Error(err)
	}
}
