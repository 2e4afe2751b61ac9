package store

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// A record that is lost or damaged is made anew where the ledger has the digest of
// the parts, and of nothing else.
func TestALostRecordOfATarballIsRebuilt(t *testing.T) {
	record := func(k *Tarball) string { return filepath.Join(k.Dir, tarballName) }
	for name, tt := range map[string]struct {
		spoil func(k *Tarball) error
		ok    bool
	}{
		"lost":  {func(k *Tarball) error { return os.Remove(record(k)) }, true},
		"torn":  {func(k *Tarball) error { return os.WriteFile(record(k), []byte(`{"schema":1,`), 0o644) }, true},
		"newer": {func(k *Tarball) error { return os.WriteFile(record(k), []byte(`{"schema":99}`), 0o644) }, false},
		"no part": {func(k *Tarball) error {
			return errors.Join(os.Remove(record(k)), os.Remove(filepath.Join(k.Dir, "0001")))
		}, false},
		"a part that is too long": {func(k *Tarball) error {
			return errors.Join(os.Remove(record(k)), os.WriteFile(filepath.Join(k.Dir, "0003"), make([]byte, testPart), 0o644))
		}, false},
		"other bytes": {func(k *Tarball) error {
			b, err := os.ReadFile(filepath.Join(k.Dir, "0001"))
			return errors.Join(err, os.Remove(record(k)), os.WriteFile(filepath.Join(k.Dir, "0001"), flipped(b), 0o644))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			k := keepOne(t, s, 1, "nightly-gfx1151")
			other := k.Entry() // an older content of the name, that was never kept
			other.Digest = release.Digest("sha256:" + strings.Repeat("0", 64))
			must(t, s.AppendPin(other), s.AppendPin(k.Entry()))
			was, err := os.ReadFile(record(k))
			must(t, err, tt.spoil(k))
			torn, _ := os.ReadFile(record(k))
			var told []string
			s.Event = func(e Event) { told = append(told, e.Message) }
			must(t, s.RebuildTarballs(t.Context()))
			if !tt.ok {
				if now, _ := os.ReadFile(record(k)); string(now) != string(torn) || name != "newer" && !strings.Contains(strings.Join(told, " "), "cannot be rebuilt") {
					t.Errorf("%q, %q", now, told)
				}
				return
			}
			got := isKept(t, s, 1)
			if got.Digest != k.Digest || got.PartSize != k.PartSize || !slices.Equal(got.Parts, k.Parts) || len(was) == 0 {
				t.Errorf("%+v", got)
			}
			if beside, err := os.ReadFile(record(k) + ".broken"); name == "torn" && (err != nil || string(beside) != string(torn)) {
				t.Errorf("%q, %v", beside, err)
			}
			if len(told) != 1 || !strings.Contains(told[0], "made anew") {
				t.Errorf("%q", told)
			}
		})
	}
}
