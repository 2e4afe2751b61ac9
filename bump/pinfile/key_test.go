package pinfile

import (
	"strings"
	"testing"
)

func TestKeysSelect(t *testing.T) {
	src := []byte(`{
  "version": "top",
  "a.b": {"version": "dotted"},
  "archives": [
    {"arch": "gfx1151", "version": "first", "deep": [["x", "y"]]},
    {"arch": "gfx 942]", "version": "second", "extra": "only"}
  ],
  "sets": {"one": {"id": "1", "v": "set one"}, "two": {"id": "2", "v": "set two"}},
  "7zip": "number",
  "a/b~c": "pointed",
  "": {"": "empty"}
}`)
	for _, tt := range []struct{ key, want, err string }{
		{".version", "top", ""},
		{`"a.b".version`, "dotted", ""},
		{"archives[0].version", "first", ""},
		{"archives[arch=gfx1151].version", "first", ""},
		{`archives[arch="gfx 942]"].version`, "second", ""},
		{`archives["arch"=gfx1151].version`, "first", ""},
		{"[1].version", "second", ""},
		{"archives.extra", "only", ""},
		{"archives[0].deep[0][1]", "y", ""},
		{"sets[id=2].v", "set two", ""},
		{"two[id=2].v", "set two", ""},
		{"one.v", "set one", ""},
		{"7zip", "number", ""},
		{"/version", "top", ""},
		{"/archives/1/version", "second", ""},
		{"/a~1b~0c", "pointed", ""},
		{"/a.b/version", "dotted", ""},
		{"//", "empty", ""},

		{"version", "", "4 bindings match, at 2:3 (version), 3:11 (\"a.b\".version), 5:25 (archives[0].version)"},
		{"version", "", "(name one by its path, e.g. .version)"},
		{"archives.version", "", "2 bindings match"},
		{"archives[2].version", "", "no binding archives[2].version; similar is version at line 2"},
		{"archives[arch=gfx].version", "", "no binding"},
		{"archives[0]", "", "archives[0] is an object, no value at line 5"},
		{"archives", "", "archives is a list, no value at line 4"},
		{"sets.VERSION", "", "similar is version at line 2"},
		{"/archives/version", "", "no binding"},
		{"/archives/01/version", "", "no binding"},
		{"archives[", "", "a [ is never closed"},
		{"archives[x]", "", "in [ ] stands a number, counted from 0, or name=value"},
		{"archives[-1].version", "", "in [ ] stands a number"},
		{`archives[a="b`, "", "a [ is never closed"},
		{`archives[a="b"x]`, "", "a ] must follow"},
		{"archives[0]x", "", "a dot must come before"},
		{"a b", "", "is not an attribute name"},
		{"", "", "is not an attribute name"},
		{strings.Repeat("a.", 200) + "a", "", "more than 100 components"},
		{strings.Repeat("/a", 200), "", "more than 100 components"},
		{strings.Repeat("a", 5000), "", "longer than"},
	} {
		t.Run(tt.key[:min(40, len(tt.key))], func(t *testing.T) {
			wantValue(t, "json", src, tt.key, tt.want, tt.err)
		})
	}
}

// wantValue reads what key names in src, or the part of an error.
func wantValue(t *testing.T, name string, src []byte, key, want, wantErr string) {
	t.Helper()
	f, ok := formatNamed(name)
	if !ok {
		t.Fatalf("there is no format %s", name)
	}
	got, err := f.current(src, []string{key}, Options{Pattern: fuzzPattern})
	switch {
	case wantErr == "" && err != nil:
		t.Error(err)
	case wantErr == "" && got[key] != want:
		t.Errorf("got %q, want %q", got[key], want)
	case wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr)):
		t.Errorf("got %v, want %q in it", err, wantErr)
	}
}

func TestFormatsAreKnownByName(t *testing.T) {
	for _, tt := range []struct{ path, want string }{
		{"flake.nix", "nix"}, {"a/b/pins.json", "json"}, {"a.jsonc", "json5"}, {"renovate.json5", "json5"},
		{".github/workflows/ci.yml", "yaml"}, {"x.yaml", "yaml"}, {"Cargo.toml", "toml"},
		{"rocm-nightly.lock", "lock"}, {"deep/rocm-nightly.lock", "lock"}, {"flake.lock", ""}, {"README.md", ""}, {"nix", ""}, {"", ""},
	} {
		if got := FormatOf(tt.path); got != tt.want {
			t.Errorf("%q is %q, want %q", tt.path, got, tt.want)
		}
	}
	for _, name := range Formats() {
		if _, ok := formatNamed(name); !ok {
			t.Errorf("%s is listed and not there", name)
		}
	}
	if _, err := Edit("README", nil, nil, Options{}); err == nil || !strings.Contains(err.Error(), "its name does not tell the format (set format to one of:") {
		t.Error(err)
	}
	if _, err := Edit("a.json", nil, nil, Options{Format: "ini"}); err == nil || !strings.Contains(err.Error(), `format "ini" is not known (known: `) {
		t.Error(err)
	}
}
