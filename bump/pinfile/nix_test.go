package pinfile

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
)

const (
	newVersion = "10.2.0a20260930"
	newSRI     = "sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="
	newHex     = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	newNix32   = "1b8m03r63zqhnjf7l5wnldhh7c134ap5vpj0850ymkq1iyzicy5s"
)

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	src, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func TestEditNixChangesOnlyTheValues(t *testing.T) {
	src := fixture(t, "flake.nix")
	out, err := editNix(src, map[string]string{"version": newVersion, "srcHash": newSRI})
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Replace(src, []byte(`"10.2.0a20260928"`), []byte(`"`+newVersion+`"`), 1)
	want = bytes.Replace(want, []byte("sha256-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="), []byte(newSRI), 1)
	if !bytes.Equal(out, want) {
		t.Errorf("got:\n%s", out)
	}
}

func TestEditNixByPath(t *testing.T) {
	src := fixture(t, "pins.nix")
	set := map[string]string{
		"gfx1151.version":           "1",
		"gfx1151.sha256":            newNix32,
		`"gfx110X-all".version`:     "2",
		`pins."gfx110X-all".sha256`: newHex,
		".pins.gfx942.version":      "3",
		"gfx942.hash":               "sha256:" + newHex,
		"channel":                   "dev",
	}
	out, err := editNix(src, set)
	if err != nil {
		t.Fatal(err)
	}
	got, err := currentNix(out, set)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range set {
		if got[key] != want {
			t.Errorf("%s = %q, want %q", key, got[key], want)
		}
	}
}

func TestEditNixOneMatch(t *testing.T) {
	for _, tt := range []struct {
		name, src, key string
		want           string // the value found, or
		err            string // part of the error
	}{
		{"plain", `{ version = "1"; }`, "version", "1", ""},
		{"let", `let version = "1"; in version`, "version", "1", ""},
		{"old let", `let { version = "1"; body = version; }`, "version", "1", ""},
		{"call", `f { a.b = g { version = "1"; }; }`, "a.b.version", "1", ""},
		{"after with", `{ a = with b; c; version = "1"; }`, "version", "1", ""},
		{"path through with", `{ a = with b; { version = "1"; }; version = "2"; }`, "a.version", "1", ""},
		{"path through assert", `{ a = assert b; let version = "1"; in version; version = "2"; }`, "a.version", "1", ""},
		{"whole path", `{ a.version = "1"; version = "2"; }`, ".version", "2", ""},
		{"reference beside", `{ version = "1"; p = { version = version; }; }`, "version", "1", ""},
		{"inherit beside", `let version = "1"; in { inherit version; }`, "version", "1", ""},
		{"quoted name", `{ "version" = "1"; }`, "version", "1", ""},
		{"dynamic beside", `{ ${a}.version = "2"; b.version = "1"; }`, "b.version", "1", ""},
		{"in interpolation", `{ a = "${let version = "1"; in version}"; }`, "version", "1", ""},
		{"comparison", `{ a = version == "2"; version = "1"; }`, "version", "1", ""},
		{"escapes", `{ version = "a\"\${b}\n"; }`, "version", "a\"${b}\n", ""},
		{"dollars", `{ version = "$${a}"; }`, "version", "$${a}", ""},
		{"dollar at the end", `{ version = "a$"; }`, "version", "a$", ""},
		{"no spaces", `{version="1";}`, "version", "1", ""},
		{"comment between", "{ version /* a */ = # b\n\"1\" /* c */; }", "version", "1", ""},
		{"path with interpolation", `{ a = ./b/${c}/version; version = "1"; }`, "version", "1", ""},
		{"uri with equals", `{ a = http://b/?version=2; version = "1"; }`, "version", "1", ""},

		{"none", `{ a = "1"; }`, "version", "", "no binding version"},
		{"only in a comment", "{\n# version = \"1\";\n}", "version", "", "found only in a comment at line 2"},
		{"only in a string", "{\na = ''version = \"1\";'';\n}", "version", "", "found only in a string at line 2"},
		{"default of an argument", `{ version ? "1" }: version`, "version", "", "default of an argument at line 1"},
		{"other case", "{\n\nsrchash = \"1\"; }", "srcHash", "", "similar is srchash at line 3"},
		{"other path", `{ a.version = "1"; }`, "b.version", "", "similar is a.version at line 1"},
		{"two", "{ a.version = \"1\";\n  b.version = \"2\"; }", "version", "", "2 bindings match, at 1:3 (a.version), 2:3 (b.version) (name one by its path, e.g. a.version)"},
		{"two, one whole", `{ version = "1"; b.version = "2"; }`, "version", "", "e.g. .version)"},
		{"two of one path", `[ { version = "1"; } { version = "2"; } ]`, "version", "", "at 1:5 ([0].version), 1:24 ([1].version) (name one by its path, e.g. [0].version)"},
		{"two, computed", `{ ${a}.version = "1"; ${b}.version = "2"; }`, "version", "", "no path tells them apart"},
		{"interpolated one counts", `{ a.version = "${x}"; version = "1"; }`, "version", "", "2 bindings match"},
		{"interpolated", "{\n  version = \"${x}\"; }", "version", "", "2:13: the string holds ${}"},
		{"indented", `{ version = ''1''; }`, "version", "1", ""},
		{"indented on two lines", "{ version = ''\n1''; }", "version", "", `1:13: the value is a '' string`},
		{"indented with escapes", `{ version = ''1'''2''; }`, "version", "", `1:13: the value is a '' string`},
		{"indented with spaces", `{ version = '' 1''; }`, "version", "", `1:13: the value is a '' string`},
		{"item", `[ { version = "1"; } { version = "2"; } ]`, "[1].version", "2", ""},
		{"item by field", `{ a = [ { n = "x"; v = "1"; } (f { n = "y"; v = "2"; }) rec { n = "z"; v = "3"; } ]; }`, "a[n=z].v", "3", ""},
		{"items are counted", `{ a = [ b.c "x" (f "y") g.${h} ./i/${j}/k l.m or n { v = "1"; } ]; }`, "a[6].v", "1", ""},
		{"string in a list", `{ a = [ "x" "y" ]; }`, "a[1]", "y", ""},
		{"one string in a list", `{ a = [ "x" ]; }`, "a", "", "1:7: the value is not a string"},
		{"set by field", `{ p.a = { n = "x"; v = "1"; }; p.b = { n = "y"; v = "2"; }; }`, "a[n=x].v", "1", ""},
		{"set by other field", `{ p.a = { n = "x"; v = "1"; }; }`, "a[n=y].v", "", "similar is p.a.v"},
		{"bytes of a call", `{ src = fetchurl { url = "u"; hash = "1"; }; }`, "src.hash", "1", ""},
		{"sum", `{ version = "1" + x; }`, "version", "", "1:13: the value is an expression that only begins"},
		{"number", `{ version = 1; }`, "version", "1", ""},
		{"fraction", `{ version = 1.5; }`, "version", "", "1:13: the value is not a string"},
		{"two references", `{ version = a; b.version = c; }`, "version", "", "version is not a string at line 1"},
		{"open string", "{\n version = \"1; }", "version", "", "line 2:12: this string is never closed"},
		{"open comment", `{ /* version = "1"; }`, "version", "", "this comment is never closed"},
		{"open bracket", `{ version = "1";`, "version", "", "line 1:1: this is never closed"},
		{"wrong bracket", `{ version = ("1"; }`, "version", "", "expected ) for what was opened at 1:13"},
		{"open let", `(let version = "1";)`, "version", "", "this let has no in"},
		{"bad key", `{ version = "1"; }`, "a b", "", "is not an attribute name"},
		{"empty key", `{ version = "1"; }`, "", "", "is not an attribute name"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := currentNix([]byte(tt.src), map[string]string{tt.key: ""})
			switch {
			case tt.err == "" && err != nil:
				t.Fatal(err)
			case tt.err == "" && got[tt.key] != tt.want:
				t.Errorf("got %q, want %q", got[tt.key], tt.want)
			case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("got %v, want %q in it", err, tt.err)
			}
		})
	}
}

func TestEditNixHashStaysOfItsKind(t *testing.T) {
	zeros := strings.Repeat("0", 64)
	for _, tt := range []struct{ name, old, value, err string }{
		{"sri", "sha256-AAAA", newSRI, ""},
		{"hex", zeros, newHex, ""},
		{"nix32", zeros[:52], newNix32, ""},
		{"prefixed hex", "sha256:" + zeros, "sha256:" + newHex, ""},
		{"prefixed nix32", "sha256:" + zeros[:52], "sha256:" + newNix32, ""},
		{"empty takes any", "", newHex, ""},
		{"version", "1", "2", ""},
		{"hex for sri", "sha256-AAAA", newHex, `(set hash: "{{.SRI}}")`},
		{"sri for hex", zeros, newSRI, `(set hash: "{{.Hex}}")`},
		{"hex for nix32", zeros[:52], newHex, `(set hash: "{{.Nix32}}")`},
		{"bare for prefixed", "sha256:" + zeros, newHex, `(set hash: "sha256:{{.Hex}}")`},
		{"version for hash", "sha256-AAAA", "10.2.0", "the value is an SRI hash (sha256-…) and the new one no hash"},
		{"hash for version", "10.2.0", newSRI, "check which attribute the key names"},
		{"cut sri", "sha256-AAAA", "sha256-BBBB", "not a whole hash"},
		{"sha512", "sha512-AAAA", newSRI, "not SHA-256"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			src := []byte(`{ hash = "` + tt.old + `"; }`)
			_, err := editNix(src, map[string]string{"hash": tt.value})
			var kind *HashKindError
			switch {
			case tt.err == "" && err != nil:
				t.Error(err)
			case tt.err != "" && (!errors.As(err, &kind) || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("got %v, want %q in it", err, tt.err)
			}
		})
	}
}

func TestEditNixIsAllOrNothing(t *testing.T) {
	out, err := editNix([]byte(`{ version = "1"; }`), map[string]string{"version": "2", "srcHash": newSRI})
	var match *MatchError
	if out != nil || !errors.As(err, &match) || match.Attr != "srcHash" {
		t.Errorf("got %q, %v", out, err)
	}
	_, err = editNix([]byte(`{ a.version = "1"; }`), map[string]string{"version": "2", "a.version": "2"})
	var value *ValueError
	if !errors.As(err, &value) {
		t.Errorf("two keys for one value: %v", err)
	}
	if _, err = editNix([]byte(`{ version = "1"; }`), map[string]string{"version": "a\x00"}); !errors.As(err, &value) {
		t.Errorf("NUL: %v", err)
	}
	if _, err = editNix(make([]byte, maxSource+1), nil); err == nil {
		t.Error("a file too large was read")
	}
}

func TestEditNixKeepsTheSpellingOfEqualValues(t *testing.T) {
	src := []byte(`{ version = "\1.\2"; }`)
	out, err := editNix(src, map[string]string{"version": "1.2"})
	if err != nil || !bytes.Equal(out, src) {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestEditNixEscapes(t *testing.T) {
	for _, value := range []string{`"; evil = "`, `\`, "${builtins.readFile /etc/passwd}", "$${a}", "$", "a\nb\tc\rd", "$\\{", "''", "é", "\xff"} {
		src := []byte(`{ version = "1"; }`)
		set := map[string]string{"version": value}
		out, err := editNix(src, set)
		if err != nil {
			t.Errorf("%q: %v", value, err)
			continue
		}
		if got, err := currentNix(out, set); err != nil || got["version"] != value {
			t.Errorf("%q: became %q, %v in %s", value, got["version"], err, out)
		}
	}
}

func TestDeepNestingIsRefused(t *testing.T) {
	for _, unit := range []string{"{", "[", "(", `"${`, "''${", "let ", "a/${"} {
		_, err := currentNix([]byte(strings.Repeat(unit, 100_000)), map[string]string{"version": ""})
		var syntax *SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("%q: %v", unit, err)
		}
	}
}

func TestLongRunsAreReadOnce(t *testing.T) {
	for _, unit := range []string{"a.", "a+", "a-a.", "a/", "<a", "a.b.c = a.b;\n", "[ a ]", "[{a=1;}]", "$", "'", "with a;", "~/a "} {
		src := bytes.Repeat([]byte(unit), (1<<18)/len(unit))
		_, _ = currentNix(src, map[string]string{"version": ""})
	}
}
