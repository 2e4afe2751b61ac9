package pinfile

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

const (
	oldHex  = "0000000000000000000000000000000000000000000000000000000000000000"
	zeroSRI = "sha256-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
)

// swap returns src with old, which stands there once, replaced.
func swap(t *testing.T, src []byte, pairs ...string) []byte {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if n := bytes.Count(src, []byte(pairs[i])); n != 1 {
			t.Fatalf("%q stands there %d times", pairs[i], n)
		}
		src = bytes.Replace(src, []byte(pairs[i]), []byte(pairs[i+1]), 1)
	}
	return src
}

func TestEditChangesOnlyTheValues(t *testing.T) {
	for _, tt := range []struct {
		file  string
		set   map[string]string
		pairs []string // old and new bytes
	}{
		{"pins.nix", map[string]string{"gfx1151.version": newVersion, "gfx942.hash": "sha256:" + newHex},
			[]string{"  pins.gfx1151.version = \"10.2.0a20260928\"", "  pins.gfx1151.version = \"" + newVersion + "\"", "sha256:" + oldHex, "sha256:" + newHex}},
		{"pins.json", map[string]string{"gfx1151.version": newVersion, "gfx1151.sha256": newHex, "gfx1151.size": "17", "gfx1151.date": "2026-09-30"},
			[]string{`"version": "10.2.0a20260928"`, `"version": "` + newVersion + `"`, oldHex, newHex, "1794376103", "17", "2026-09-28", "2026-09-30"}},
		{"npins.json", map[string]string{"rocm-tarball.version": newVersion, "rocm-tarball.hash": newSRI},
			[]string{"10.2.0a20260928", newVersion, zeroSRI, newSRI}},
		{"pins.json5", map[string]string{"archives[arch=gfx1151].version": newVersion, "archives[arch=gfx1151].size": "18", "archives[1].version": `a'b"c`, "sum": "sha256:" + newHex},
			[]string{"10.2.0a20260928", newVersion, "size: 17", "size: 18", `it\'s`, `a'b\"c`, "sha256:" + oldHex, "sha256:" + newHex}},
		{"matrix.yaml", map[string]string{"include[arch=gfx1151].version": newVersion, "include[arch=gfx1151].sha256": newHex, "include[arch=gfx942].size": "4", "include[1].version": "1", "ROCM_CHANNEL": "10"},
			[]string{"version: 10.2.0a20260928", "version: " + newVersion, oldHex, newHex, "size: 3}", "size: 4}", `"10.2.0a20260927"`, `"1"`, "nightly   #", `"10"   #`}},
		{"pins.toml", map[string]string{"gfx1151.version": newVersion, "gfx1151.hash": newSRI, "archive[arch=gfx942].version": `a"b`, "archive[0].meta.size": "19", "archive[1].version": "1", "archive[1].meta.size": "20"},
			[]string{`"10.2.0a20260928"`, `"` + newVersion + `"`, zeroSRI, newSRI, "10.2.0a20260927", `a\"b`, "size = 17", "size = 19", "10.2.0a20260926", "1", "meta.size = 18", "meta.size = 20"}},
	} {
		t.Run(tt.file, func(t *testing.T) {
			for _, as := range []struct {
				name string
				make func([]byte) []byte
			}{
				{"as it is", func(b []byte) []byte { return b }},
				{"CR LF", func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")) }},
				{"byte order mark", func(b []byte) []byte { return append([]byte("\ufeff"), b...) }},
			} {
				if as.name == "byte order mark" && strings.HasSuffix(tt.file, ".nix") {
					continue // Nix takes none
				}
				src := as.make(fixture(t, tt.file))
				res, err := Edit(tt.file, src, tt.set, Options{})
				if err != nil {
					t.Fatalf("%s: %v", as.name, err)
				}
				if want := swap(t, src, tt.pairs...); !bytes.Equal(res.Text, want) {
					t.Errorf("%s: got:\n%s", as.name, res.Text)
				}
				if len(res.Changes) != len(tt.set) {
					t.Errorf("%s: changes: %+v", as.name, res.Changes)
				}
				for i, c := range res.Changes {
					if c.To != tt.set[c.Key] || c.Line == 0 || c.Path == "" || i > 0 && c.Line < res.Changes[i-1].Line {
						t.Errorf("%s: change %+v", as.name, c)
					}
				}
			}
		})
	}
}

func TestOneMatch(t *testing.T) {
	for _, tt := range []struct {
		name, format, src, key string
		want                   string // the value found, or
		err                    string // part of the error
	}{
		{"json", "json", `{"version": "1"}`, "version", "1", ""},
		{"escapes", "json", `{"version": "\u00e9\ud83d\ude00\/\n"}`, "version", "é😀/\n", ""},
		{"escaped name", "json", `{"v\u0065rsion": "1"}`, "version", "1", ""},
		{"scalar", "json", `"1"`, "/", "", "no binding"},
		{"twice in one object", "json", `{"version": "1", "version": "2"}`, "version", "", "2 bindings match, at 1:2 (version), 1:18 (version) (no path tells them apart"},
		{"null", "json", "{\n\"version\": null}", "version", "", "2:12: the value is null, no string (write it in quotes)"},
		{"fraction", "json", `{"version": 1.5}`, "version", "", "only strings and whole numbers are edited"},
		{"in a string", "json", `{"a": "\"version\": \"1\""}`, "version", "", "no binding version"},
		{"comment", "json", `{"a": 1} // b`, "a", "", "JSON has no comments (set format: json5)"},
		{"comma at the end", "json", `{"a": 1,}`, "a", "", "a name in quotes must stand here"},
		{"more", "json", `{} {}`, "a", "", "line 1:4: the file goes on after its value"},
		{"empty", "json", ``, "a", "", "a value is missing here"},
		{"open", "json", "{\n\"a\": [1", "a", "", "line 2:6: this is never closed"},
		{"open string", "json", `{"a": "1`, "a", "", "line 1:7: this string is never closed"},
		{"two lines", "json", "{\"a\": \"1\n\"}", "a", "", "a control character stands in the string that begins at 1:7"},
		{"no escape", "json", `{"a": "1\x"}`, "a", "", "line 1:9: this is no escape"},
		{"no value", "json", `{"a": yes}`, "a", "", "line 1:7: this is no value"},
		{"leading zero", "json", `{"a": 01}`, "a", "", "this is no value"},

		{"json5", "json5", "{// version: '0'\n version: '1', /* x */ a: [1,],}", "version", "1", ""},
		{"json5 escapes", "json5", "{a: '\\x41\\v\\\n\\0\\q'}", "a", "A\v\x00q", ""},
		{"json5 comment only", "json5", "{\n// version: '0'\n}", "version", "", "version is found only in a comment at line 2"},
		{"json5 hex", "json5", "{a: 0x1F}", "a", "", "only strings and whole numbers"},
		{"json5 name", "json5", "{$a_1: '1', ünï: '2'}", `"ünï"`, "2", ""},
		{"open comment", "json5", "{ /* a", "a", "", "this comment is never closed"},

		{"yaml", "yaml", "version: 1.2.3\n", "version", "1.2.3", ""},
		{"yaml quotes", "yaml", "a: \"\\x41\\u00e9\\t\"\nb: 'it''s'\n", "a", "Aé\t", ""},
		{"yaml single", "yaml", "a: \"\"\nb: 'it''s'\n", "b", "it's", ""},
		{"yaml unicode", "yaml", "\"é\": ü # ö\nversion: 'ä'\n", "version", "ä", ""},
		{"yaml unicode name", "yaml", "é: 'x'\nè: 'y'\n", `"è"`, "y", ""},
		{"yaml not UTF-8", "yaml", "# \xff\na: '\xfe'\nb: '1'\n", "b", "1", ""},
		{"yaml documents", "yaml", "a: '1'\n---\na: '2'\n", "[1].a", "2", ""},
		{"yaml documents, both", "yaml", "---\na: '1'\n---\na: '2'\n", "a", "", "2 bindings match, at 2:1 ([0].a), 4:1 ([1].a) (name one by its path, e.g. [0].a)"},
		{"yaml directive", "yaml", "%YAML 1.2\n---\na: '1'\n...\n", ".a", "1", ""},
		{"yaml directives of two", "yaml", "%YAML 1.2\n---\na: '1'\n...\n%YAML 1.2\n---\na: '2'\n", "[1].a", "2", ""},
		{"yaml twice", "yaml", "a: '1'\na: '2'\n", "a", "", "no path tells them apart"},
		{"yaml block", "yaml", "a: |\n  b: c\nb: '1'\n", "a", "", "the value is a block of lines"},
		{"yaml folded", "yaml", "a: b\n  c\n", "a", "", "the value goes over several lines"},
		{"yaml alias", "yaml", "a: &x '1'\nb: *x\n", "b", "", "2:4: the value is an alias"},
		{"yaml anchor", "yaml", "a: &x '1'\nb: *x\n", "a", "", "the value has an anchor"},
		{"yaml anchored object", "yaml", "a: &x {v: '1'}\nb: {<<: *x}\n", "v", "1", ""},
		{"yaml tag", "yaml", "a: !!str 1\nb: !x 'y'\n", "a", "", "the value has a tag"},
		{"yaml behind a tag", "yaml", "a: !!str 1\nb: 'y'\n", "b", "y", ""},
		{"yaml float", "yaml", "a: 10.2\n", "a", "", "no string to every reader of YAML"},
		{"yaml word", "yaml", "a: on\n", "a", "", "no string to every reader of YAML"},
		{"yaml null", "yaml", "a:\nb: 1\n", "a", "", "the value is null"},
		{"yaml comment only", "yaml", "# version: 1\na: b\n", "version", "", "version is found only in a comment at line 1"},
		{"yaml explicit key", "yaml", "? a\n: 'b'\n", "a", "b", ""},
		{"yaml tabs", "yaml", "a: b\n\tc: d\n", "a", "", "line "},
		{"yaml open", "yaml", "a: [b\n", "a", "", "line 1:4"},
		{"yaml list", "yaml", "- a\n- b\n", "[1]", "b", ""},
		{"yaml nested lists", "yaml", "- - a\n  - b\n", "[0][1]", "b", ""},
		{"yaml hash", "yaml", "a: b#c # d\n", "a", "b#c", ""},
		{"yaml colons", "yaml", "a: sha256:abc\nu: https://b/c:d\n", "a", "sha256:abc", ""},

		{"toml", "toml", "version = \"1\"\n", "version", "1", ""},
		{"toml dotted", "toml", "a.b.\"c.d\" = '1'\n", `b."c.d"`, "1", ""},
		{"toml inline", "toml", "a = {b = [{c = '1'}, {c = '2'}]}\n", "b[1].c", "2", ""},
		{"toml tables", "toml", "[[a]]\n[[a]]\n[[a.b]]\nc = '1'\n[a.d]\ne = '2'\n", "a[1].d.e", "2", ""},
		{"toml nested tables", "toml", "[[a]]\n[[a]]\n[[a.b]]\nc = '1'\n", ".a[1].b[0].c", "1", ""},
		{"toml escapes", "toml", `a = "\u00e9\t"`, "a", "é\t", ""},
		{"toml lines", "toml", "a = \"\"\"\nb\"\"\"\n", "a", "", "the value goes over several lines"},
		{"toml date", "toml", "a = 2026-09-30 # b\n", "a", "2026-09-30", ""},
		{"toml time", "toml", "a = 2026-09-30T01:02:03Z\n", "a", "", "the value is 2026-09-30T01:02:03Z, no string"},
		{"toml big", "toml", "a = 1_000\n", "a", "", "only strings and whole numbers"},
		{"toml comment only", "toml", "[a]\n# version = 1\nb = 1 # c\n", "version", "", "found only in a comment at line 2"},
		{"toml comment behind", "toml", "[a]\nb = 1 # version = 1\n", "version", "", "found only in a comment at line 2"},
		{"toml syntax", "toml", "a = 1\nb = = 2\n", "a", "", "line 2:"},
		{"toml not UTF-8", "toml", "# \xff\na = '1'\nb = '\xff'\n", "a", "1", ""},
		{"toml value not UTF-8", "toml", "b = '\xff'\n", "b", "", "the value is not UTF-8"},

		{"regex", "regex", "version := 10.2\nother\n", "version", "10.2", ""},
		{"regex twice", "regex", "version=1\nversion=2\n", "version", "", "2 bindings match"},
		{"regex none", "regex", "x\n", "hash", "", "no binding hash"},
		{"regex no group", "regex", "version=1\n", "size", "", "the pattern has no such group (it has: version, hash)"},
	} {
		t.Run(tt.name, func(t *testing.T) { wantValue(t, tt.format, []byte(tt.src), tt.key, tt.want, tt.err) })
	}
}

func TestNewValues(t *testing.T) {
	for _, tt := range []struct {
		name, format, src, key, value string
		want, err                     string
	}{
		{"json", "json", `{"a": "1"}`, "a", "\"\\\n\x01é", `{"a": "\"\\\n\u0001é"}`, ""},
		{"json not UTF-8", "json", `{"a": "1"}`, "a", "\xff", "", "not UTF-8"},
		{"a size stays a number", "json", `{"a": 1}`, "a", "20", `{"a": 20}`, ""},
		{"a word for a number", "json", `{"a": 1}`, "a", "x", "", "1:7: the value is a number, and the new one is not made of digits alone"},
		{"nothing for a number", "json", `{"a": 1}`, "a", "", "", "not made of digits"},
		{"zeros for a number", "json", `{"a": 1}`, "a", "007", "", "begins with 0"},
		{"many digits", "json", `{"a": 1}`, "a", strings.Repeat("9", 20), "", "more than 19 digits"},
		{"equal keeps spelling", "json", `{"a": "\u0031"}`, "a", "1", `{"a": "\u0031"}`, ""},
		{"json5 single", "json5", `{a: '1'}`, "a", `'"`, `{a: '\'"'}`, ""},

		{"plain", "yaml", "a: b\n", "a", "10.2.0a20260930", "a: 10.2.0a20260930\n", ""},
		{"like a number", "yaml", "a: b\n", "a", "10.2", "a: \"10.2\"\n", ""},
		{"like a time of day", "yaml", "a: b\n", "a", "12:30", "a: \"12:30\"\n", ""},
		{"like a date", "yaml", "a: b\n", "a", "2026-09-30", "a: \"2026-09-30\"\n", ""},
		{"a date stays one", "yaml", "a: 2026-09-28\n", "a", "2026-09-30", "a: 2026-09-30\n", ""},
		{"like a word", "yaml", "a: b\n", "a", "No", "a: \"No\"\n", ""},
		{"empty", "yaml", "a: b\n", "a", "", "a: \"\"\n", ""},
		{"like a comment", "yaml", "a: b\n", "a", "c #d", "a: \"c #d\"\n", ""},
		{"like an object", "yaml", "a: b\n", "a", "c: d", "a: \"c: d\"\n", ""},
		{"in brackets", "yaml", "a: {b: c}\n", "b", "d,e}", "a: {b: \"d,e}\"}\n", ""},
		{"lines", "yaml", "a: b\n", "a", "c\nd", "a: \"c\\nd\"\n", ""},
		{"single quotes", "yaml", "a: 'b'\n", "a", "it's", "a: 'it''s'\n", ""},
		{"single quotes, lines", "yaml", "a: 'b'\n", "a", "c\nd", "", "single quotes cannot"},
		{"double quotes", "yaml", "a: \"b\"\n", "a", "\"\\\x00\u0085é", "a: \"\\\"\\\\\\u0000\\u0085é\"\n", ""},
		{"hash in plain", "yaml", "a: " + zeroSRI + "\n", "a", newSRI, "a: " + newSRI + "\n", ""},
		{"placeholder of zeros", "yaml", "a: " + oldHex + " # b\n", "a", newHex, "a: " + newHex + " # b\n", ""},
		{"placeholder of zeros, base-32", "yaml", "{a: " + oldHex[:52] + "}\n", "a", newNix32, "{a: " + newNix32 + "}\n", ""},
		{"a hash like a number", "yaml", "a: " + oldHex + "\n", "a", oldHex[1:] + "1", "a: \"" + oldHex[1:] + "1\"\n", ""},
		{"yaml size", "yaml", "a: 1 # b\n", "a", "20", "a: 20 # b\n", ""},

		{"toml date", "toml", "a = 2026-09-30 # b\n", "a", "2026-10-01", "a = 2026-10-01 # b\n", ""},
		{"toml, no date for a date", "toml", "a = 2026-09-30\n", "a", "2026-02-30", "", "the value is a date"},
		{"toml basic", "toml", `a = "b"`, "a", "\"\\\x01", `a = "\"\\\u0001"`, ""},
		{"toml literal", "toml", `a = 'b'`, "a", `\`, `a = '\'`, ""},
		{"toml literal quote", "toml", `a = 'b'`, "a", `'`, "", "single quotes cannot"},

		{"regex", "regex", "version=1\n", "version", "2", "version=2\n", ""},
		{"regex no longer", "regex", "version=1\n", "version", `2"3`, "", "would read as"},
		{"regex control", "regex", "version=1\n", "version", "2\n3", "", "control character"},

		{"indented", "nix", "{ a = ''b''; }", "a", "c", "{ a = ''c''; }", ""},
		{"indented quotes", "nix", "{ a = ''b''; }", "a", "c''", "", "cannot be written in a '' string"},
		{"indented dollar", "nix", "{ a = ''b''; }", "a", "${c}", "", "cannot be written in a '' string"},
		{"indented space", "nix", "{ a = ''b''; }", "a", " c", "", "cannot be written in a '' string"},
		{"nix size", "nix", "{ gfx1151 = { size = 12; }; }", "gfx1151.size", "17", "{ gfx1151 = { size = 17; }; }", ""},
		{"nix, a word for a number", "nix", "{ size = 12; }", "size", "x", "", "1:10: the value is a number"},
		{"nix, a number beside the string", "nix", "{ version = 3; a.version = \"1\"; }", "version", "2", "{ version = 3; a.version = \"2\"; }", ""},
		{"nix sum", "nix", "{ size = 1 + 2; }", "size", "3", "", "not a string"},
		{"nix fraction", "nix", "{ size = 1.5; }", "size", "3", "", "not a string"},
		{"nix in a list", "nix", `{ a = [ "b" "c" ]; }`, "a[1]", "d", `{ a = [ "b" "d" ]; }`, ""},
		{"its own selector", "json", `[{"a": "1"}]`, "[a=1].a", "2", "", "the key does not name the value any more"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res, err := Edit("f", []byte(tt.src), map[string]string{tt.key: tt.value}, Options{Format: tt.format, Pattern: fuzzPattern})
			switch {
			case tt.err != "" && (err == nil || res != nil || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("got %v, want %q in it", err, tt.err)
			case tt.err == "" && err != nil:
				t.Error(err)
			case tt.err == "" && string(res.Text) != tt.want:
				t.Errorf("got %q, want %q", res.Text, tt.want)
			}
		})
	}
}

func TestHashKindsOfEveryShape(t *testing.T) {
	b64 := newSRI[len("sha256-"):]
	for _, tt := range []struct{ name, old, value, err string }{
		{"base-64", zeroSRI[7:], b64, ""},
		{"prefixed base-64", "sha256:" + zeroSRI[7:], "sha256:" + b64, ""},
		{"equals", "SHA256=" + oldHex, "SHA256=" + newHex, ""},
		{"hex in capitals", strings.Repeat("A", 64), newHex, ""},
		{"hex for base-64", zeroSRI[7:], newHex, `"{{slice .SRI 7}}"`},
		{"hex for prefixed base-64", "sha256:" + zeroSRI[7:], newHex, `"sha256:{{slice .SRI 7}}"`},
		{"sri for equals", "SHA256=" + oldHex, newSRI, `"SHA256={{.Hex}}"`},
		{"a word", "SKIP", newHex, "for a first hash write an empty string there, or one of zeros"},
		{"sha512", strings.Repeat("0", 128), newHex, "not SHA-256"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Edit("a.json", []byte(`{"hash": "`+tt.old+`"}`), map[string]string{"hash": tt.value}, Options{})
			var kind *HashKindError
			switch {
			case tt.err == "" && err != nil:
				t.Error(err)
			case tt.err != "" && (!errors.As(err, &kind) || kind.File != "a.json" || !strings.Contains(strings.ReplaceAll(err.Error(), `\"`, `"`), tt.err)):
				t.Errorf("got %v, want %q in it", err, tt.err)
			}
		})
	}
}
