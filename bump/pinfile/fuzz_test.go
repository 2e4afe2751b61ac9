package pinfile

import (
	"bytes"
	"slices"
	"testing"
)

func seeds(f *testing.F) [][]byte {
	return [][]byte{
		fixture(f, "flake.nix"), fixture(f, "pins.nix"),
		[]byte(`{ version = "1"; srcHash = ""; }`),
		[]byte(`let version = "a${b + "c"}"; in ''x''${y}${z}''' ''\n''`),
		[]byte(`{ a = ./b/${c}/d; e = <f/g>; h = x:y; i = ~/j; k = 1.5e3; version = "$${"; }`),
		[]byte("{ version = \"\\\n\"; \"version\" . a = \"\"; }"),
		[]byte("{ version = \"\\\r\"; }"),
	}
}

// FuzzNixLex: tokens cover the source without a gap, whatever it is.
func FuzzNixLex(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		toks, err := lexNix(src)
		if err != nil {
			return
		}
		pos := int32(0)
		for _, tok := range toks {
			if tok.off != pos || tok.end <= tok.off {
				t.Fatalf("token %+v at %d", tok, pos)
			}
			pos = tok.end
		}
		if int(pos) != len(src) {
			t.Fatalf("tokens end at %d of %d", pos, len(src))
		}
		if _, err := scanNix(src); err != nil && err.Error() == "" {
			t.Fatal("an error without words")
		}
	})
}

// fuzzPattern is for the format regex.
const fuzzPattern = `(?m)version[:= "]+(?P<version>[^"\n]*)|(?P<hash>sha256[^"\n ]*)`

// addSeeds adds sources of every kind for every format.
func addSeeds(f *testing.F, add func(format string, src []byte)) {
	for _, name := range Formats() {
		for _, s := range seeds(f) {
			add(name, s)
		}
		for _, file := range []string{"pins.json", "npins.json", "pins.json5", "matrix.yaml", "pins.toml", "rocm-nightly.lock"} {
			add(name, fixture(f, file))
		}
		for _, s := range []string{
			"version: 1\nsize: 2\n", "- {version: 'a', b: \"c\"}\n- &x y\n---\nversion: |\n  z\n", "\ufeffversion: \"\\u00e9\"\r\n", "a: !!str b\n? version\n: c\n",
			"version = 'a'\n[[b]]\nversion = \"\"\"c\"\"\"\n[[b]]\nd.version = 1\n", `{"version": "\u00e9\ud83d\ude00", "a": [1, {"version": null}]}`, `{version: 'a', /* b */ c: +.5e1,}`,
			"\"$A0\"", "\xff\xfe", "version=\"1\"\nVERSION=$version\n", "ARG version=1\n", "version='10.2'\n",
		} {
			add(name, []byte(s))
		}
	}
}

// FuzzEdit: an edit of any format is refused with words, or gives the value it
// was asked for, leaves every byte that is of no value, and has nothing to do
// the second time.
func FuzzEdit(f *testing.F) {
	addSeeds(f, func(format string, src []byte) {
		f.Add(format, src, "version", "10.2.0a20260930")
		f.Add(format, src, "pins.gfx1151.version", "${x}\"\\\n'")
		f.Add(format, src, "[arch=gfx1151].size", "12")
		f.Add(format, src, "\"|ve%si%sio\x00r\xdb\"", "\xff\x7f.2.0a20260930")
	})
	f.Fuzz(func(t *testing.T, name string, src []byte, key, value string) {
		format, ok := formatNamed(name)
		if !ok || len(src) > 64<<10 {
			return
		}
		o := Options{Format: name, Pattern: fuzzPattern}
		set := map[string]string{key: value}
		res, err := Edit("f", src, set, o)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error without words")
			}
			return
		}
		got, err := format.current(res.Text, []string{key}, o)
		if err != nil || got[key] != value {
			t.Fatalf("%q reads %q, %v in %q", key, got[key], err, res.Text)
		}
		untouched(t, format, src, res.Text, set, o)
		again, err := Edit("f", res.Text, set, o)
		if err != nil || !bytes.Equal(again.Text, res.Text) || len(again.Changes) != 0 {
			t.Fatalf("twice: %q -> %+v, %v", res.Text, again, err)
		}
	})
}

// untouched fails when bytes beside the values of set, and of what follows from
// it, differ.
func untouched(t *testing.T, format format, src, out []byte, set map[string]string, o Options) {
	t.Helper()
	doc, err := format.read(src, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, whole := doc.(rewriter); whole {
		return // it is written anew
	}
	set = withImplied(doc, set)
	keys := make([]string, 0, len(set))
	for key := range set {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	found, err := chooseAll(src, doc, keys)
	if err != nil {
		t.Fatal(err)
	}
	first, last := found[0], found[len(found)-1]
	head, tail := src[:first.Start], src[last.End:]
	if !bytes.HasPrefix(out, head) || !bytes.HasSuffix(out, tail) || len(out) < len(head)+len(tail) {
		t.Fatalf("bytes beside the value changed: %q -> %q", src, out)
	}
	pos := 0
	for i := 1; i < len(found); i++ {
		between := src[found[i-1].End:found[i].Start]
		at := bytes.Index(out[pos:], between)
		if at < 0 {
			t.Fatalf("bytes between the values changed: %q -> %q", src, out)
		}
		pos += at + len(between)
	}
}

// FuzzURLs: the pieces of an address make its text and say where they stand,
// and moving one leaves what is before it.
func FuzzURLs(f *testing.F) {
	addSeeds(f, func(format string, src []byte) { f.Add(format, src) })
	f.Fuzz(func(t *testing.T, name string, src []byte) {
		if _, ok := formatNamed(name); !ok || len(src) > 64<<10 {
			return
		}
		o := Options{Format: name, Pattern: fuzzPattern}
		urls, err := URLs("f", src, o)
		if err != nil {
			return
		}
		for i, u := range urls {
			text := ""
			for _, p := range u.Pieces {
				text += p.Text
				if p.End != 0 && string(src[p.Start:p.End]) != p.Text {
					t.Fatalf("%q does not stand at %d", p.Text, p.Start)
				}
			}
			if text != u.Text {
				t.Fatalf("the pieces make %q, not %q", text, u.Text)
			}
			if i > 10 {
				continue
			}
			const dir = "https://example.org/new"
			out, err := u.Rebase(src, dir)
			if err != nil || bytes.Equal(out, src) {
				continue
			}
			if at := bytes.Index(out, []byte(dir)); at < 0 || !bytes.HasPrefix(out, src[:min(at, len(src))]) {
				t.Fatalf("more than the address moved: %q -> %q", src, out)
			}
		}
	})
}
