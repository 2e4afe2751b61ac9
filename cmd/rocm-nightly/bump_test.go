package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/bump"
	"github.com/rocm-nightly/rocm-nightly/bump/body"
	"github.com/rocm-nightly/rocm-nightly/bump/pinfile"
	"github.com/rocm-nightly/rocm-nightly/internal/amd"
	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// Every key of the config's bump reaches the bump.
func TestUpdateBumpLosesNothing(t *testing.T) {
	d := config.Duration(time.Hour)
	b := config.Bump{
		Name: "a", Forge: "github", URL: "https://github.com/a/b", API: "https://x/", Base: "main", Branch: "b", Channel: "stable",
		TokenFile: "/t", App: &config.App{ID: 1, Installation: 2, KeyFile: "/k"}, SSHKeyCredential: "k", KnownHostsFile: "/h", TokenEnv: "T",
		Mode: "pull", Fork: "never", Require: "all", Group: "lockstep", MaxWait: d, MinAge: d, Windows: []config.Window{{Cron: "0 6 * * *", Length: d}},
		Limits: &config.Limits{Open: 1, PullsPerHour: 2, CommitsPerHour: 3}, Author: &config.Author{Name: "n", Email: "e@x"}, Signoff: true,
		Title: "t", Message: "m", Labels: []string{"l"}, Reviewers: []string{"r"}, Teams: []string{"t"}, Assignees: []string{"a"}, Draft: true,
		AutoMerge: "24h", MergeMethod: "squash", Reopen: "always", Dashboard: "d", Check: [][]string{{"true"}}, CheckTimeout: d,
		Files: []config.Pins{{Path: "p", Format: "regex", Pattern: "x", Target: "gfx1151", Set: map[string]string{"a": "b"}, Fetches: "f"}},
	}
	got := updateBump(b)
	for v, i := reflect.ValueOf(got.Repo), 0; i < v.NumField(); i++ {
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() && name != "TokenEnv" && name != "Config" { // Token has it; see bumpKey
			t.Errorf("%s is lost", name)
		}
	}
	for v, i := reflect.ValueOf(got.Files[0]), 0; i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("files: %s is lost", v.Type().Field(i).Name)
		}
	}
	if got.Channel != "stable" || got.App.Key.File != "/k" || got.Token.File != "/t" || got.SSHKey.Credential != "k" {
		t.Errorf("%+v", got)
	}
}

// A request says which config asked for it, and nothing of where that lies.
func TestBumpKey(t *testing.T) {
	if got := bumpKey([]string{"/home/jo/.config/rocm-nightly/config.yaml"}, "/srv", 1); got != "config.yaml, bump[1]" {
		t.Error(got)
	}
	if got := bumpKey([]string{"/etc/rocm-nightly/config.yaml", "/etc/rocm-nightly/config.d/bumps.yaml"}, "/srv", 0); got != "config.yaml, bumps.yaml, bump[0]" {
		t.Error(got)
	}
}

// config check tries everything of a bump that is a text for somebody else.
func TestBumpProblems(t *testing.T) {
	good := func() config.Bump {
		return config.Bump{Name: "a", URL: "/srv/r.git", Title: "{{.New}} {{range .Pins}}{{.Family}}{{end}}", Labels: []string{"x-{{.Name}}"},
			Windows: []config.Window{{Cron: "CRON_TZ=UTC 0 6 * * *", Length: config.Duration(time.Hour)}},
			Files:   []config.Pins{{Path: "f.nix", Target: "gfx1151", Fetches: "{{.URL}}", Set: map[string]string{"v": "{{.Version}}"}}}}
	}
	if p := bumpProblems(good()); len(p) != 0 {
		t.Fatalf("%q: %v", p[0].key, p[0].err)
	}
	for key, change := range map[string]func(*config.Bump){
		"url":               func(b *config.Bump) { b.URL = "gopher://x/" },
		"title":             func(b *config.Bump) { b.Title = "{{.Newest}}" },
		"message":           func(b *config.Bump) { b.Message = "{{if}}" },
		"labels[0]":         func(b *config.Bump) { b.Labels[0] = "{{" },
		"windows[0].cron":   func(b *config.Bump) { b.Windows[0].Cron = "CRON_TZ=UTC" },
		"files[0].format":   func(b *config.Bump) { b.Files[0].Path = "pins.unknown" },
		"files[0].fetches":  func(b *config.Bump) { b.Files[0].Fetches = "{{.Host}}" },
		"files[0].set.v":    func(b *config.Bump) { b.Files[0].Set["v"] = "{{.Ver}}" },
		"":                  func(b *config.Bump) { b.Fork = "a b" }, // what a run would find, has no key of its own
		"files[0].set.none": func(b *config.Bump) { b.Files[0].Set["none"] = "" },
	} {
		b := good()
		change(&b)
		p := bumpProblems(b)
		if len(p) != 1 || p[0].key != key {
			t.Errorf("%s: %v", key, p)
		}
	}
}

func guess(path, target string, set map[string]string) pinfile.Guess {
	return pinfile.Guess{Path: path, Format: "nix", Target: target, Set: set, Why: "a name of AMD's"}
}

// A checkout is looked through but for what is git's, and links are not followed.
func TestFindPins(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.nix", "sub/b.nix", ".git/c.nix", "node_modules/d.nix"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a.nix", filepath.Join(dir, "e.nix")); err != nil {
		t.Fatal(err)
	}
	found, err := findPins(t.Context(), dir, func(path string, src []byte) []pinfile.Guess {
		return []pinfile.Guess{guess(path, "gfx1151", nil)}
	})
	if err != nil || len(found) != 2 || found[0].Path != "a.nix" || found[1].Path != "sub/b.nix" {
		t.Errorf("%v, %v", found, err)
	}
	if _, err := findPins(t.Context(), dir, func(path string, src []byte) []pinfile.Guess {
		return make([]pinfile.Guess, maxGuesses+1)
	}); err == nil {
		t.Error("a checkout without end was taken")
	}
}

// What is ambiguous is refused with the candidates; the rest is a config.
func TestInferPins(t *testing.T) {
	canonical := func(s string) string { name, _ := gfx.New(amd.Builtin()).Canonical(s); return name }
	v := map[string]string{"version": "{{.Version}}"}
	files, err := inferPins([]pinfile.Guess{guess("f.nix", "gfx1151", v), guess("f.nix", "gfx1100", map[string]string{"b.version": "{{.Version}}"})}, nil, canonical)
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	files, err = inferPins([]pinfile.Guess{guess("f.nix", "", v)}, []string{"gfx1151"}, canonical)
	if err != nil || files[0].Target != "gfx1151" {
		t.Fatalf("%v, %v", files, err)
	}
	// One version for two targets, each with its hash; and what follows a PKGBUILD.
	shared := func(target string) pinfile.Guess {
		return guess("f.nix", target, map[string]string{"version": "{{.Version}}", target + ".hash": "{{.SRI}}"})
	}
	build, made := guess("a/PKGBUILD", "gfx1151", v), guess("a/.SRCINFO", "gfx1151", v)
	build.Format, made.Format = "pkgbuild", "srcinfo"
	files, err = inferPins([]pinfile.Guess{made, build, shared("gfx1151"), shared("gfx1100")}, nil, canonical)
	if err != nil || len(files) != 3 || files[0].Path != "a/PKGBUILD" {
		t.Fatalf("%v, %v", files, err)
	}
	older := guess("f.nix", "gfx1151", map[string]string{"old.version": "{{.Version}}"})
	older.Old = "1"
	for want, found := range map[string][]pinfile.Guess{
		"meant by several versions":     {guess("f.nix", "gfx1151", v), older},
		"no pin of one":                 nil,
		"nothing tells which target":    {guess("f.nix", "", v)},
		"may be one of several things":  {guess("f.nix", "gfx1151", v), guess("f.nix", "gfx1100", v)},
		"f.nix: target ?, a name":       {guess("f.nix", "", v)},
		"f.nix: target gfx1100, a name": {guess("f.nix", "gfx1151", v), guess("f.nix", "gfx1100", v)},
		"version: {{.Version}}":         {guess("f.nix", "gfx1151", v), guess("f.nix", "gfx1151", map[string]string{"version": "{{.Date}}"})},
	} {
		if _, err := inferPins(found, nil, canonical); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// The config that is printed can be used as it is.
func TestInferredText(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "..my flake")
	if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	for conf, want := range map[string]string{
		"[core]\n\turl = x\n[remote \"origin\"]\n\turl = https://git.example.org/me/flake.git\n": "https://git.example.org/me/flake.git",
		"[remote \"origin\"]\n\turl = https://me:secret@git.example.org/f.git\n":                 noOrigin,
		"": noOrigin,
	} {
		if err := os.WriteFile(filepath.Join(dir, ".git/config"), []byte(conf), 0o644); err != nil {
			t.Fatal(err)
		}
		b := config.Bump{Name: inferredName(dir), URL: originOf(dir), Files: []config.Pins{{Path: "f.nix", Target: "gfx1151", Set: map[string]string{"version": "{{.Version}}"}}}}
		text, err := inferredText(b)
		if err != nil {
			t.Fatal(err)
		}
		c := config.Default()
		if err := config.Decode(c, "x", []byte(text)); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if err := c.Validate(); err != nil || c.Bump[0].URL != want || c.Bump[0].Name != "myflake" {
			t.Errorf("%v\n%s", err, text)
		}
	}
}

// A request says which config asked for it, and not where somebody lives.
func TestConfigNames(t *testing.T) {
	for _, c := range []struct {
		read []string
		want string
	}{
		{nil, ""},
		{[]string{"/srv/repo/.github/rocm-nightly.yaml"}, ".github/rocm-nightly.yaml"},
		{[]string{".github/rocm-nightly.yaml"}, ".github/rocm-nightly.yaml"},
		{[]string{"/home/alice/.config/rocm-nightly/config.yaml"}, "config.yaml"},
		{[]string{"../alice/config.yaml"}, "config.yaml"},
		{[]string{"/etc/rocm-nightly/config.yaml", "/etc/rocm-nightly/config.d/bump.yaml"}, "config.yaml, bump.yaml"},
	} {
		if got := configNames(c.read, "/srv/repo"); got != c.want {
			t.Errorf("%q is named %q, want %q", c.read, got, c.want)
		}
	}
}

// The outputs of a step are those of the request that something was done to.
func TestOutputsOfAStep(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out")
	a := &app{getenv: func(string) string { return file }}
	err := a.githubOutput([]*update.Bumped{
		{Name: "a", Event: update.EventUpToDate, Action: bump.ActionNone, Number: 1},
		{Name: "b", Event: update.EventUpdated, Action: bump.ActionOpened, Number: 7, URL: "https://x/7", Message: "m", Edits: []update.Edited{
			{Key: "version", To: "10.2.0a20260930"}, {Key: "hash", To: "sha256-x"},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\ncreated\n", "\n7\n", "\n10.2.0a20260930\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	// New bytes, or an address that has moved, under the version that stands there.
	summary := body.Render(body.Input{Flavor: body.GitHub, Pins: []bump.Pin{{Target: "gfx1151", Version: "10.2.0a20260930"}}})
	got := outcomesOf([]*update.Bumped{{Name: "a", Summary: summary, Edits: []update.Edited{{Key: "hash", To: "sha256-x"}}}})
	if got[0].Version != "10.2.0a20260930" {
		t.Errorf("version %q", got[0].Version)
	}
}
