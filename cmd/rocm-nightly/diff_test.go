package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What diff --json prints is what diff --schema says.
func TestDiffSchema(t *testing.T) {
	resolved := schemaOf(t, (*app).diffSchema)
	dirs := [2]string{t.TempDir(), t.TempDir()}
	for i, dir := range dirs {
		for name, text := range map[string]string{
			"bin/tool": "#!/bin/sh\n" + dir, "lib/llvm/bin/clang.cfg": dir, "share/x-" + string(rune('1'+i)): dir, ".kpack/blas_lib_gfx1100.kpack": dir,
			"share/therock/therock_manifest.json": `{"the_rock_commit": "` + strings.Repeat(string(rune('1'+i)), 40) + `", "flags": {"X": ` + string(rune('0'+i)) + `}, "submodules": [{"submodule_name": "m", "pin_sha": "` + string(rune('0'+i)) + `"}]}`,
		} {
			p := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	var out bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &out, getenv: func(string) string { return "" }}
	if err := a.diff(context.Background(), dirs[0], dirs[1], diffOptions{format: "json"}); err != nil {
		t.Fatal(err)
	}
	var instance map[string]any
	if err := json.Unmarshal(out.Bytes(), &instance); err != nil {
		t.Fatal(err)
	}
	if err := resolved.Validate(instance); err != nil {
		t.Errorf("%v in\n%s", err, out.Bytes())
	}
	for _, list := range []string{"risks", "changed", "renamed", "config"} {
		if l, _ := instance[list].([]any); len(l) == 0 {
			t.Errorf("the report has no %s to validate", list)
		}
	}
	for _, list := range []string{"libraries", "notes", "added", "programs_removed"} {
		if _, ok := instance[list].([]any); !ok {
			t.Errorf("%s is no list", list)
		}
	}
	instance["surprise"] = true
	if err := resolved.Validate(instance); err == nil {
		t.Error("the schema takes unknown fields")
	}
	delete(instance, "surprise")
	notes := instance["notes"]
	instance["notes"] = nil
	if err := resolved.Validate(instance); err == nil {
		t.Error("the schema takes null for a list")
	}
	instance["notes"] = notes
	delete(instance, "risks")
	if err := resolved.Validate(instance); err == nil {
		t.Error("the schema takes a report without risks")
	}
}
