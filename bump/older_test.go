package bump

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// A pin never takes the place of a newer one, unless somebody asked for that.
func TestPinsDoNotGoBack(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.want(s.run(n29), ActionOpened, "commit", "move", "open")
	s.f.commitAs("main", "Ada <ada@example.org>", "by hand", map[string]string{"pin.nix": strings.Replace(nixPin, "10.2.0a20260928", n31, 1)})
	dry := s.run(n30, func(_ *Repo, o *Options) { o.DryRun, o.Depth = true, DepthLookup })
	if dry.Changed || len(dry.Edits) != 0 || !strings.Contains(dry.Message, "pin.nix has "+n31+" for gfx1151, ") {
		t.Errorf("%+v", dry)
	}
	s.want(s.run(n30), ActionClosed, "comment", "edit", "remove")
	s.want(s.run(n30), ActionIgnored)
	s.want(s.run(n30, func(_ *Repo, o *Options) { o.Older = true }), ActionOpened, "commit", "move", "open")
}

func TestPinsDoNotGoBackOverGit(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	before := u.tip("main")
	for _, mode := range []string{"pull", "push"} {
		repo := u.repo()
		repo.Mode = mode
		res, err := Run(t.Context(), repo, night("10.1.0a20260101"), u.options())
		if err != nil || res.Pushed || res.Changed || !strings.Contains(res.Message, "is older") {
			t.Errorf("%s: %+v, %v", mode, res, err)
		}
	}
	if u.tip("main") != before || u.git(u.bare, "branch", "--list", "rocm-nightly/*") != "" {
		t.Error("something was pushed")
	}
}

func TestCheckoutDoesNotGoBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "pin.nix")
	if err := os.WriteFile(path, []byte(nixPin), 0o644); err != nil {
		t.Fatal(err)
	}
	files := []File{{Path: "pin.nix", Target: "gfx1151", Set: map[string]string{"version": "{{.Version}}"}, Fetches: fetches}}
	res, err := Write(dir, Repo{Files: files}, night("10.1.0a20260101"), Options{})
	if err != nil || res.Changed || readText(t, path) != nixPin || !strings.Contains(res.Message, "is older") {
		t.Errorf("%+v, %v", res, err)
	}
	if res, err = Write(dir, Repo{Files: files}, night("10.1.0a20260101"), Options{Older: true}); err != nil || !res.Changed {
		t.Errorf("%+v, %v", res, err)
	}
}

// lockOf is a rocm-nightly.lock with one pin.
func lockOf(t *testing.T, target string, pin Pin) string {
	t.Helper()
	text, err := json.MarshalIndent(map[string]any{"schema": 1, "pins": []map[string]any{{
		"channel": pin.Channel, "target": target, "family": pin.Family, "version": pin.Version, "name": pin.Name,
		"url": pin.URL, "digest": "sha256:" + pin.Hex, "sri": pin.SRI, "size": pin.Size,
	}}}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

// The lock of a repository holds for all pins that are proposed to it: they do not
// go below it, and a name that it knows has the bytes that it knows.
func TestTheLockOfTheRepositoryHolds(t *testing.T) {
	t.Parallel()
	set := map[string]string{"gfx1151.version": "{{.Version}}", "gfx1151.url": "{{.URL}}", "gfx1151.digest": "sha256:{{.Hex}}", "gfx1151.size": "{{.Size}}"}
	stand := func(pin Pin) *stand {
		s := newStand(t)
		s.f.commitAs("main", "Ada <ada@example.org>", "lock", map[string]string{"rocm-nightly.lock": lockOf(t, "gfx1151", pin)})
		s.repo.Files = append(s.repo.Files, File{Path: "rocm-nightly.lock", Target: "gfx1151", Set: set})
		return s
	}
	other := night(n30)["gfx1151"]
	other.Hex = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	other.SRI = "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
	_, err := stand(other).try(n30)
	mismatch, ok := errors.AsType[*release.MismatchError](err)
	if !ok || mismatch.Want.Vouch() != "the lock" {
		t.Errorf("other bytes: %v", err)
	}
	s := stand(night(n31)["gfx1151"])
	if res := s.run(n30); res.Changed || res.Pushed || !strings.Contains(res.Message, "rocm-nightly.lock has "+n31) {
		t.Errorf("older than the lock: %+v", res)
	}
	if res := stand(night(n30)["gfx1151"]).run(n30); res.Action != ActionOpened || len(res.Edits) != 1 {
		t.Errorf("the same bytes: %+v", res)
	}
	if res := stand(night(n29)["gfx1151"]).run(n30); res.Action != ActionOpened {
		t.Errorf("newer than the lock: %+v", res)
	}
}
