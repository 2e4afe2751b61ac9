package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// The last line about a name counts; builds for tests are left out, and so are
// tarballs of this machine's own directories and what a mirror's address holds of
// secrets.
func TestFeedOf(t *testing.T) {
	l := store.OpenLedger(filepath.Join(t.TempDir(), "ledger.jsonl"))
	old := time.Now().Add(-200 * 24 * time.Hour)
	for i, e := range []store.LedgerEntry{
		{Name: "therock-dist-linux-gfx1151-10.1.0a20260101.tar.gz", MTime: old},
		{Name: "therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz", MTime: time.Now(), URL: "https://me:secret@mirror.example/therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz"},
		{Name: "therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz", MTime: time.Now(), URL: "https://me:secret@mirror.example/therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz"},
		{Name: "therock-dist-linux-gfx110X-all-10.2.0a20260930.tar.gz", MTime: time.Now()},
		{Name: "therock-dist-linux-gfx1151-10.2.0a20260929.tar.gz", MTime: time.Now(), URL: "file:///srv/therock-dist-linux-gfx1151-10.2.0a20260929.tar.gz"},
	} {
		n, err := release.ParseName(e.Name)
		if err != nil {
			t.Fatal(err)
		}
		e.Channel, e.Family, e.Version, e.Size = "nightly", n.Family, n.Version.String(), int64(i+1)
		if e.URL == "" {
			e.URL = "https://a.example/" + e.Name
		}
		e.Digest = release.Digest("sha256:" + strings.Repeat(string(rune('0'+i)), 64))
		if err := l.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	gone := func(at time.Time) bool { return time.Since(at) > 120*24*time.Hour }
	f, err := feedOf(t.Context(), l, "nightly", "gfx1151", gone)
	if err != nil || len(f.Entries) != 2 {
		t.Fatalf("%+v, %v", f, err)
	}
	if a, b := f.Entries[0], f.Entries[1]; !a.Withdrawn || b.Withdrawn || b.Size != 3 || strings.Contains(b.URL, "secret") {
		t.Errorf("%+v", f.Entries)
	}
	if _, err := feedOf(t.Context(), l, "nightly", "", gone); err == nil || !strings.Contains(err.Error(), "gfx110X-all, gfx1151") {
		t.Error(err)
	}
}
