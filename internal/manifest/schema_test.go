package manifest

import (
	"bytes"
	"os"
	"testing"
)

// Manifests of each schema that there ever was are read. A schema that is raised
// needs a stored one of the one before it here.
func TestStoredManifestsAreRead(t *testing.T) {
	if format.Now() != Schema || Schema != 1 {
		t.Errorf("schema %d, in the table %d: store one of schema %d and read it here", Schema, format.Now(), Schema-1)
	}
	b, err := os.ReadFile("testdata/schema1/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	m, err := Read(bytes.NewReader(b))
	if err != nil || m.Version != "10.2.0a20261121" || m.Counts.ELF != 7 || len(m.Dropped) != 1 || m.Edits["run-path"] != 4 || len(m.Checked) != 5 {
		t.Errorf("%+v, %v", m, err)
	}
	var again bytes.Buffer
	if err := Write(&again, m); err != nil || again.String() != string(b) {
		t.Errorf("it is written as\n%s, %v", again.String(), err)
	}
}
