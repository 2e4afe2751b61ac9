package pinfile

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/lockfile"
)

// A pin of the lock is set as a whole, by its target; the other pins keep their
// bytes.
func TestLockIsEditedByTarget(t *testing.T) {
	src := fixture(t, "rocm-nightly.lock")
	name := "therock-dist-linux-gfx110X-all-10.2.0a20260930.tar.gz"
	set := map[string]string{
		"gfx1100.version": "10.2.0a20260930",
		"gfx1100.url":     "https://nightly.repo.amd.com/rocm/core/tarball/" + name,
		"gfx1100.digest":  "sha256:" + newHex,
		"gfx1100.size":    "17",
		"gfx1100.mtime":   "2026-09-30T00:00:00Z",
	}
	res, err := Edit("rocm-nightly.lock", src, set, Options{})
	if err != nil {
		t.Fatal(err)
	}
	lock, err := lockfile.Parse(res.Text)
	if err != nil {
		t.Fatal(err)
	}
	pin, ok := lock.Find("nightly", "gfx1100")
	if !ok || pin.Version != "10.2.0a20260930" || pin.Name != name || pin.Size != 17 || string(pin.Digest) != "sha256:"+newHex {
		t.Errorf("got %+v", pin)
	}
	if !bytes.Contains(res.Text, []byte(newSRI)) {
		t.Error("the digest's other form did not follow")
	}
	const stable = `"channel": "stable"`
	_, was, _ := bytes.Cut(src, []byte(stable))
	if _, is, _ := bytes.Cut(res.Text, []byte(stable)); !bytes.Equal(is, was) {
		t.Error("another pin changed")
	}
	if again, err := lockfile.Encode(lock); err != nil || !bytes.Equal(again, res.Text) {
		t.Errorf("not as the lock is written: %v\n%s", err, res.Text)
	}
}

func TestLockThatContradictsItselfIsRefused(t *testing.T) {
	src := fixture(t, "rocm-nightly.lock")
	for _, tt := range []struct{ name, key, value, err string }{
		{"version alone", "gfx1100.version", "10.2.0a20260930", `the version is "10.2.0a20260930", but the tarball is`},
		{"url of another host is fine", "nightly-gfx1100.url", "https://example.org/therock-dist-linux-gfx110X-all-10.1.0a20260827.tar.gz", ""},
		{"by pointer", "/pins/1/size", "5", ""},
		{"by field", "pins[target=gfx1151].size", "5", ""},
		{"size of nothing", "gfx1151.size", "0", "the size is 0"},
		{"other channel", "dev-gfx1100.size", "5", "no binding dev-gfx1100.size"},
		{"no such target", "gfx942.size", "5", "similar is pins[0].size"},
		{"hash of another kind", "gfx1151.digest", newSRI, `"sha256:{{.Hex}}"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Edit("rocm-nightly.lock", src, map[string]string{tt.key: tt.value}, Options{})
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("got %v, want %q in it", err, tt.err)
			}
		})
	}
	if _, err := Edit("rocm-nightly.lock", []byte(`{"schema": 1}`), map[string]string{"a": "1"}, Options{}); err == nil || !strings.Contains(err.Error(), `it has no "pins"`) {
		t.Error(err)
	}
}

func TestPatternsThatCannotBeUsed(t *testing.T) {
	for pattern, want := range map[string]string{
		"":                          "the format regex has no pattern",
		"(":                         "the syntax is RE2's",
		"version=(.*)":              "the pattern has no named group",
		strings.Repeat("a", 5<<10):  "longer than 4096 bytes",
		"(?P<version>)":             "matches more than 10000 times",
		"(?P<version>a(?P<size>b))": "names this value too",
	} {
		src := []byte("ab")
		if strings.Contains(want, "times") {
			src = bytes.Repeat(src, 10_000)
		}
		_, err := Edit("f", src, map[string]string{"version": "1", "size": "2"}, Options{Format: "regex", Pattern: pattern})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %q in it", pattern, err, want)
		}
	}
}
