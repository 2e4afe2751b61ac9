package feed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

func night(day int) Entry {
	v := fmt.Sprintf("10.2.0a%s", time.Date(2026, 9, day, 0, 0, 0, 0, time.UTC).Format("20060102"))
	return Entry{Version: v, Time: time.Date(2026, 9, day, 8, 0, 0, 0, time.UTC), Digest: fmt.Sprintf("%064x", day), Size: 13_000_000_000,
		URL: "https://rocm.nightlies.amd.com/tarball-multi-arch/therock-dist-linux-gfx1151-" + v + ".tar.gz"}
}

func encoded(t testing.TB, f Feed) string {
	t.Helper()
	var b bytes.Buffer
	if err := Encode(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The order of entries does not count, that of versions does.
func TestFeedIsInOrderOfVersions(t *testing.T) {
	f := Feed{Channel: "nightly", Family: "gfx1151"}
	for day := range 40 {
		f.Entries = append(f.Entries, night(day+1))
	}
	f.Entries = append(f.Entries,
		Entry{Version: "10.2.0", Digest: strings.Repeat("a", 64), URL: "https://rocm.example/a.tar.gz"},
		Entry{Version: "10.1.0", Digest: strings.Repeat("b", 64), URL: "https://rocm.example/b.tar.gz"},
		Entry{Version: "10.10.0rc1", Digest: strings.Repeat("c", 64), URL: "https://rocm.example/c.tar.gz", Withdrawn: true})
	want := encoded(t, f)
	rand.Shuffle(len(f.Entries), func(i, j int) { f.Entries[i], f.Entries[j] = f.Entries[j], f.Entries[i] })
	if got := encoded(t, f); got != want {
		t.Error("another order of entries gives another feed")
	}
	var doc document
	if err := json.Unmarshal([]byte(want), &doc); err != nil {
		t.Fatal(err)
	}
	n := len(doc.Releases)
	if n != 43 || doc.Releases[0].Version != "10.1.0" || doc.Releases[n-2].Version != "10.2.0" || doc.Releases[n-1].Version != "10.10.0rc1" {
		t.Errorf("%d releases, the last ones %+v", n, doc.Releases[n-2:])
	}
	if doc.Tags["latest"] != "10.2.0" || !doc.Releases[n-1].Deprecated || !doc.Releases[n-2].Stable || doc.Releases[1].Stable {
		t.Errorf("latest %q", doc.Tags["latest"])
	}
}

func TestFeedIsBounded(t *testing.T) {
	f := Feed{Channel: "nightly", Family: "gfx1151"}
	for day := range 3 * MaxReleases {
		f.Entries = append(f.Entries, night(day))
	}
	text := encoded(t, f)
	if n := strings.Count(text, `"version"`); n != MaxReleases+1 { // latest stands there twice
		t.Errorf("%d releases", n)
	}
	if last := f.Entries[len(f.Entries)-1].Version; !strings.Contains(text, `"latest": "`+last+`"`) {
		t.Error("the newest one is not there")
	}
}

// New bytes under a version that is known: the later entry counts.
func TestNewBytesTakeThePlace(t *testing.T) {
	a, b := night(1), night(1)
	b.Digest = strings.Repeat("f", 64)
	text := encoded(t, Feed{Entries: []Entry{a, b}})
	if strings.Contains(text, a.Digest) || !strings.Contains(text, b.Digest) {
		t.Error(text)
	}
}

func TestUnfitEntries(t *testing.T) {
	for name, spoil := range map[string]func(*Entry){
		"no version":   func(e *Entry) { e.Version = "" },
		"bad version":  func(e *Entry) { e.Version = "ten" },
		"no digest":    func(e *Entry) { e.Digest = "" },
		"half digest":  func(e *Entry) { e.Digest = e.Digest[:40] },
		"no address":   func(e *Entry) { e.URL = "" },
		"file":         func(e *Entry) { e.URL = "file:///etc/passwd" },
		"password":     func(e *Entry) { e.URL = "https://u:hunter2@rocm.example/a.tar.gz" },
		"signed":       func(e *Entry) { e.URL = "https://rocm.example/a.tar.gz?X-Signature=hunter2" },
		"bad log":      func(e *Entry) { e.Changelog = "javascript:alert(1)" },
		"unreadable":   func(e *Entry) { e.URL = "https://hunter2:x\x7f@rocm" },
		"bad fragment": func(e *Entry) { e.URL += "#hunter2" },
	} {
		e := night(1)
		spoil(&e)
		var b bytes.Buffer
		err := Encode(&b, Feed{Family: "gfx1151", Entries: []Entry{night(2), e}})
		if err == nil || b.Len() > 0 {
			t.Errorf("%s: %v, and %d bytes were written", name, err, b.Len())
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error tells a secret: %v", name, err)
		}
	}
	if err := Encode(failing{}, Feed{}); !errors.Is(err, errFull) {
		t.Errorf("a full disk: %v", err)
	}
}

var errFull = errors.New("full")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFull }

func TestFeedFollowsItsSchema(t *testing.T) {
	s, err := JSONSchema()
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []Feed{{}, {Channel: "nightly", Family: "gfx1151", Entries: []Entry{night(1), night(2)}}} {
		var v any
		if err := json.Unmarshal([]byte(encoded(t, f)), &v); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(v); err != nil {
			t.Error(err)
		}
	}
	d, _ := release.ParseDigest(night(1).Digest)
	if text := encoded(t, Feed{Entries: []Entry{night(1)}}); !strings.Contains(text, release.SRI(d)) || !strings.Contains(text, release.Nix32(d)) {
		t.Error("a form of the digest is missing")
	}
}
