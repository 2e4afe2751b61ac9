package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestParsePatchelf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "value")
	if err := os.WriteFile(file, []byte("/from/a/file"), 0o644); err != nil {
		t.Fatal(err)
	}
	text := func(s string) *string { return &s }
	for _, c := range []struct {
		args string
		want patchelfFlags
	}{
		{"a", patchelfFlags{files: []string{"a"}}},
		{"a --print-rpath b", patchelfFlags{files: []string{"a", "b"}, printPath: true}},
		{"--set-rpath  a", patchelfFlags{files: []string{"a"}, setPath: text("")}}, // an empty value is one
		{"a --set-rpath --force-rpath", patchelfFlags{files: []string{"a"}, setPath: text("--force-rpath")}},
		{"--set-rpath 1 --set-rpath 2 a", patchelfFlags{files: []string{"a"}, setPath: text("2")}},
		{"--set-rpath @" + file + " a", patchelfFlags{files: []string{"a"}, setPath: text("/from/a/file")}},
		{"--replace-needed @x @y a", patchelfFlags{files: []string{"a"}, replaceNeeded: map[string]string{"@x": "@y"}}},
		{"--interpreter /l a", patchelfFlags{files: []string{"a"}, interp: "/l"}},
		{"--add-needed x --add-needed y a", patchelfFlags{files: []string{"a"}, addNeeded: []string{"x", "y"}}},
		{"--shrink-rpath --allowed-rpath-prefixes /a:/b: a", patchelfFlags{files: []string{"a"}, shrinkPath: true, prefixes: []string{"/a", "/b"}}},
		{"--page-size 65536 --no-sort --no-clobber-old-sections a", patchelfFlags{files: []string{"a"}}},
		{"--print-soname -- --print-rpath -", patchelfFlags{files: []string{"--print-rpath", "-"}, printSoname: true}},
		{"-", patchelfFlags{files: []string{"-"}}},
		{"--version --nonsense", patchelfFlags{versionAsk: true}},
	} {
		got, err := parsePatchelf(strings.Split(c.args, " "))
		if err != nil || !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%s: %+v (%v)", c.args, *got, err)
		}
	}
}

// Wrong usage that patchelf knows is told in its words, and is exit 1 as
// there; a flag that is not known is exit 2.
func TestParsePatchelfRefuses(t *testing.T) {
	for args, says := range map[string]string{
		"--print-rpath":                  "missing filename",
		"a --set-rpath":                  "missing argument",
		"a --replace-needed x":           "missing argument(s)",
		"a --page-size 0":                "invalid argument to --page-size",
		"a --page-size x":                "invalid argument to --page-size",
		"a --page-size 5000":             "invalid argument to --page-size",
		"a b --output c":                 "--output option only allowed with single input file",
		"a --set-rpath x --add-rpath y":  "--set-rpath option not allowed with --add-rpath",
		"a --set-rpath @/does/not/exist": "getting info about '/does/not/exist': No such file or directory",
	} {
		var bad *usageError
		if _, err := parsePatchelf(strings.Split(args, " ")); err == nil || err.Error() != says || errors.As(err, &bad) {
			t.Errorf("%s: %v", args, err)
		}
	}
	for args, says := range map[string]string{
		"a --rename-dynamic-symbols map": "--rename-dynamic-symbols: this flag of patchelf is not supported",
		"a --nonsense":                   "--nonsense",
		"a -x":                           "-x",
		"a --set-rpath=/x":               "the next argument",
		"a --json --output /dev/stdout":  "--json and --output would both write",
		"a --print":                      "unknown flag: --print ",
	} {
		var bad *usageError
		if _, err := parsePatchelf(strings.Split(args, " ")); !errors.As(err, &bad) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// Whoever asks for JSON gets it, whatever is wrong with the rest.
func TestPatchelfAlwaysJSON(t *testing.T) {
	for _, args := range []string{
		"--json", "--json --nonsense a", "--nonsense --json a", "--page-size 0 --json a", "--set-rpath @/does/not/exist a --json",
		"--json --set-rpath", "--json missing", "--version --json", "--json --version", "--json --help", "--json --output /dev/stdout a",
	} {
		s := ours(t.TempDir(), strings.Fields(args)...)
		var rep patchelfReport
		if err := json.Unmarshal([]byte(s.out), &rep); err != nil || rep.Schema != 1 || rep.Exit != s.code {
			t.Errorf("%s: %v: %+v", args, err, s)
		}
	}
}

func TestAddToPath(t *testing.T) {
	for _, c := range [][3]string{
		{"", "/a", "/a"}, {"/a", "/b", "/a:/b"}, {"/a", "/a", "/a"}, {"/a:/b", "/b:/c:/a", "/a:/b:/c"}, {"/a", "", "/a"},
		{"", "", ""}, {"", "/a::/b:/a", "/a:/b"}, {"/a/", "/a", "/a/:/a"},
	} {
		if got := addToPath(c[0], c[1]); got != c[2] {
			t.Errorf("%q and %q: %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

// Every flag is in the reference.
func TestPatchelfFlagsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/patchelf.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range patchelfFlagTable {
		for _, name := range strings.Fields(flag.names) {
			if !strings.Contains(string(doc), "`"+name) {
				t.Errorf("docs/patchelf.md says nothing of %s", name)
			}
		}
	}
	for _, name := range patchelfLacks {
		if !strings.Contains(string(doc), "`"+name) {
			t.Errorf("docs/patchelf.md says nothing of %s", name)
		}
	}
}
