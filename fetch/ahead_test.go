package fetch

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// TestADownloadThatIsNotAllowed changes nothing: what an earlier run left is
// there, and what was not there is not made.
func TestADownloadThatIsNotAllowed(t *testing.T) {
	data := random(1, 4*testSegment+9)
	no := errors.New("no room")
	o := newOrigin(t, data)
	dir := filepath.Join(t.TempDir(), "spool")
	var ahead Ahead
	refuse := func(a Ahead) error { ahead = a; return no }
	client := testClient(t, nil)
	if _, err := client.DownloadIf(t.Context(), o.release(), dir, refuse); !errors.Is(err, no) {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err == nil || ahead != (Ahead{Size: int64(len(data))}) || o.requests("GET") != 0 {
		t.Errorf("%+v, %d requests, %v", ahead, o.requests("GET"), err)
	}

	interrupt(t, o, dir, 3*testSegment)
	before, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := client.DownloadIf(t.Context(), o.release(), dir, refuse); !errors.Is(err, no) {
			t.Fatal(err)
		}
		// Of the segment that was begun, what is there is freed first.
		if ahead.Kept != 3*testSegment || ahead.Kept+ahead.Stale+ahead.Bytes() != ahead.Size {
			t.Errorf("%+v", ahead)
		}
		if after, err := os.ReadDir(dir); err != nil || len(after) != len(before) {
			t.Errorf("%v is %v, %v", before, after, err)
		}
	}
	if same, err := client.Ahead(t.Context(), o.release(), dir); err != nil || same != ahead {
		t.Errorf("%+v, not %+v, %v", same, ahead, err)
	}
	// The lock was given up each time.
	o.replace(random(2, 10), `"v2"`)
	other, err := client.Ahead(t.Context(), o.release(), dir)
	if err != nil || other.Kept != 0 || other.Stale < 3*testSegment || other.Bytes() != 0 {
		t.Errorf("of other bytes: %+v, %v", other, err)
	}
}

// TestAFileIsReadWhereItIs: a file:// release takes nothing.
func TestAFileIsReadWhereItIs(t *testing.T) {
	_, url := newMirror(t, random(1, 100), testName)
	rel := release.Release{Name: testName, URL: url + testName}
	client := testClient(t, nil)
	a, err := client.Ahead(t.Context(), rel, t.TempDir())
	if err != nil || !a.Local || a.Size != 100 || a.Bytes() != 0 {
		t.Errorf("%+v, %v", a, err)
	}
	no := errors.New("no room")
	if _, err := client.DownloadIf(t.Context(), rel, "", func(is Ahead) error {
		if is != a {
			t.Errorf("%+v, not %+v", is, a)
		}
		return no
	}); !errors.Is(err, no) {
		t.Error(err)
	}
}
