package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/rocm-nightly/rocm-nightly/internal/demo"
)

// strict resolves a form so that fields that it does not have are refused.
func strict(t *testing.T, name string) *jsonschema.Resolved {
	t.Helper()
	s, err := forms()[name].schema()
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r
}

// Each field of each form is described in the documentation.
func TestEveryFieldIsDescribed(t *testing.T) {
	for name, f := range forms() {
		if f.text != nil {
			continue
		}
		s, err := f.schema()
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range f.explain(s) {
			t.Errorf("%s: docs/manifest.md or docs/status.md says nothing of the field under %s", name, u)
		}
	}
}

// What the verb prints is valid, explains and takes what later versions add.
func TestPrintedSchemas(t *testing.T) {
	for name := range forms() {
		s := schemaOf(t, func(a *app) error { return a.schema(name) })
		if name == "files" {
			line := map[string]any{"path": "a", "kind": "file", "mode": "0555", "new": 1.0}
			if err := s.Validate(line); err != nil {
				t.Error(err)
			}
			if line["mode"] = "rwx"; s.Validate(line) == nil {
				t.Error("took a mode in letters")
			}
			if s.Schema().Properties["path"].Description == "" || !strings.Contains(s.Schema().Schema, "2020-12") {
				t.Errorf("%+v", s.Schema())
			}
		}
	}
}

// values reads a file of one JSON value, or of one a line.
func values(t *testing.T, path string) []any {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []any
	for dec := json.NewDecoder(bytes.NewReader(b)); dec.More(); {
		var v any
		if err := dec.Decode(&v); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, v)
	}
	return all
}

// only is the one file of a pattern.
func only(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v, %v", pattern, found, err)
	}
	return found[0]
}

// Real records, and what verbs really print, are what the schemas say, field by
// field.
func TestSchemasFitWhatIsWritten(t *testing.T) {
	dir := t.TempDir()
	amd, root := filepath.Join(dir, "amd"), filepath.Join(dir, "root")
	if err := os.Mkdir(amd, 0o755); err != nil {
		t.Fatal(err)
	}
	url, stop, err := demo.Serve(context.Background(), amd)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	config := filepath.Join(dir, "config.yaml")
	text := "root: " + root + "\nchannels: {nightly: {indexes: [{url: \"" + url + "\"}]}}\ninstalls: [{target: gfx1151, link: " + filepath.Join(dir, "rocm") + "}]\npolicy: {settle: 0s}\nrepack: {omit: [docs]}\nkeep_tarballs: 2\nhealth: {smoke: off, sandbox: off, command: [\"true\"]}\n"
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	printed := func(form string, code int, args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, getenv: func(string) string { return "" }, environ: func() []string { return nil }, uid: os.Getuid()}
		if got := a.run(t.Context(), append([]string{"--config", config}, args...)); got != code {
			t.Fatalf("%v: exit %d: %s%s", args, got, &out, &errs)
		}
		var v any
		if err := json.Unmarshal(out.Bytes(), &v); err != nil {
			t.Fatalf("%v: %v in %s", args, err, &out)
		}
		if err := strict(t, form).Validate(v); err != nil {
			t.Errorf("%v: %v in %s", args, err, &out)
		}
	}
	for i, version := range []string{"10.2.0a20260929", "10.2.0a20260930"} {
		if _, err := demo.Night(t.Context(), amd, demo.NightOptions{Version: version, Date: time.Now().AddDate(0, 0, i-3)}); err != nil {
			t.Fatal(err)
		}
		printed("update", 0, "update", "--dry-run", "--json")
		printed("update", 0, "update", "--json")
	}
	printed("activate", 0, "activate", "--json")
	printed("switch", 0, "rollback", "--json")
	printed("hold", 0, "hold", "--until", "3d", "--reason", "why", "--json")
	printed("hold", 0, "unhold", "--json")
	printed("verify", 0, "verify", "--json")
	printed("lease", 0, "lease", "--version", "10.2.0a20260930", "--pid", strconv.Itoa(os.Getpid()), "--json")
	printed("lease-list", 0, "lease", "--list", "--json")
	lease := values(t, only(t, filepath.Join(root, "leases/*")))[0]
	if err := strict(t, "lease-record").Validate(lease); err != nil {
		t.Errorf("lease: %v in %v", err, lease)
	}
	printed("failure", 1, "remove", "10.2.0a20260930", "--json")
	printed("prune", 0, "prune", "--last", "1", "--dry-run", "--json")
	printed("lease-release", 0, "lease", "--release", "--pid", strconv.Itoa(os.Getpid()), "--json")
	other := filepath.Join(dir, "other")
	if err := os.Symlink("elsewhere", other); err != nil {
		t.Fatal(err)
	}
	printed("link", 0, "link", "--take-over", other, "--json")
	printed("tarball", 0, "tarball", dir, "--json")
	printed("tarball-list", 0, "tarball", "--verify", "--json")
	printed("status", 0, "status", "--history", "--json")
	printed("failure", 1, "use", "10.2.0a19990101", "--json")
	damaged := only(t, filepath.Join(root, "slots/*/current/lib/libfoo.so.1.0.0"))
	if err := errors.Join(os.Chmod(damaged, 0o700), os.Remove(damaged)); err != nil {
		t.Fatal(err)
	}
	printed("verify", 1, "verify", "--json")
	printed("verify", 0, "verify", "--repair", "--json")
	tarball := filepath.Join(amd, "therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz")
	printed("repack", 0, "repack", tarball, "--prefix", filepath.Join(dir, "prefix"), "--provenance", filepath.Join(dir, "p.json"), "--json")
	slot := filepath.Join(root, "slots/nightly-gfx1151")
	for file, form := range map[string]string{
		"current/manifest.json": "manifest", "current/files.jsonl": "files", "current/omitted.jsonl": "omitted", "runs/10.2.0a20260930.json": "run",
		"runs/10.2.0a20260929.json": "run", "state.json": "state", "checks.json": "checks", "../../ledger.jsonl": "ledger",
		"../../links.json": "links",
	} {
		all := values(t, filepath.Join(slot, file))
		if len(all) == 0 {
			t.Errorf("%s is empty", file)
		}
		r := strict(t, form)
		for _, v := range all {
			if err := r.Validate(v); err != nil {
				t.Errorf("%s: %v in %v", file, err, v)
			}
		}
	}
	for _, v := range values(t, filepath.Join(filepath.Dir(only(t, filepath.Join(root, "tarballs/*/*20260930*/0000"))), "tarball.json")) {
		if err := strict(t, "kept-tarball").Validate(v); err != nil {
			t.Errorf("tarball.json: %v in %v", err, v)
		}
	}
	printed("unlink", 0, "unlink", other, "--json")
	printed("remove", 0, "remove", "10.2.0a20260930", "--json")
	printed("uninstall", 0, "uninstall", "--dry-run", "--json")
	printed("uninstall", 0, "uninstall", "--json")
	holder := map[string]any{"schema": 1.0, "pid": 7.0, "what": "update", "host": "h", "since": "2026-09-30T06:30:00Z", "boot_id": "x"}
	if err := strict(t, "lock").Validate(holder); err != nil {
		t.Error(err)
	}
	// What is stored of older programs, too.
	for file, form := range map[string]string{"state.json": "state", "checks.json": "checks", "ledger.jsonl": "ledger"} {
		for _, v := range values(t, filepath.Join("../../store/testdata/schema1", file)) {
			if err := schemaOf(t, func(a *app) error { return a.schema(form) }).Validate(v); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	if names := slices.Sorted(maps.Keys(forms())); len(names) < 14 {
		t.Errorf("only %v", names)
	}
}
