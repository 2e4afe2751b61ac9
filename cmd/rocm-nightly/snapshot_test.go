package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/update"
)

// What the daemon shows is the config's installs, told from disk; a look fills in
// what is newest, and who may not write the store looks all the same.
func TestSnapshotAfterALook(t *testing.T) {
	index := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `<script>const files = [{"name":"therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz","mtime":1790000000}];</script>`)
	}))
	t.Cleanup(index.Close)
	dir := t.TempDir()
	root, file := filepath.Join(dir, "root"), filepath.Join(dir, "config.yaml")
	text := "root: " + root + "\nchannels:\n  nightly:\n    indexes: [{url: " + index.URL + "/}]\ninstalls: [{target: gfx1151}, {target: RX 7900 XTX}]\npolicy: {settle: 0s, stale_after: 0s}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	a := &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: &log, configFile: file, logFormat: "text",
		getenv: func(name string) string { return map[string]string{"XDG_CACHE_HOME": dir}[name] }}
	cfg, err := a.config()
	if err != nil {
		t.Fatal(err)
	}
	s, err := a.snapshot(t.Context(), cfg, true)
	if err != nil || len(s.Slots) != 2 || s.Slots[0].Newest != nil || s.Slots[1].Slot != "nightly-gfx1100" || s.Program.Go == "" {
		t.Fatalf("%+v, %v", s, err)
	}
	l, err := a.look(t.Context(), cfg)
	if err != nil || len(l.Installs) != 2 || !l.Installs[0].Admits || l.Installs[1].Error == "" || l.Exit != update.ExitFailed {
		t.Fatalf("%+v, %v, %s", l, err, log.String())
	}
	s, err = a.snapshot(t.Context(), cfg, false)
	if err != nil || s.Slots[0].Newest == nil || s.Slots[0].Newest.State != update.StateNewer || s.Slots[1].Error == "" || len(s.Indexes) != 1 || s.Indexes[0].Checked.IsZero() {
		t.Errorf("%+v, %v", s, err)
	}
}
