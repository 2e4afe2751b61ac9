package pinfile

import (
	"bytes"
	"testing"
)

func seeds(f *testing.F) [][]byte {
	return [][]byte{
		fixture(f, "flake.nix"), fixture(f, "pins.nix"),
		[]byte(`{ version = "1"; srcHash = ""; }`),
		[]byte(`let version = "a${b + "c"}"; in ''x''${y}${z}''' ''\n''`),
		[]byte(`{ a = ./b/${c}/d; e = <f/g>; h = x:y; i = ~/j; k = 1.5e3; version = "$${"; }`),
		[]byte("{ version = \"\\\n\"; \"version\" . a = \"\"; }"),
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
		if _, _, err := scanNix(src); err != nil && err.Error() == "" {
			t.Fatal("an error without words")
		}
	})
}

// FuzzEditNix: an edit gives the value it was asked for, leaves every other
// byte, and has nothing to do the second time.
func FuzzEditNix(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s, "version", "10.2.0a20260930")
		f.Add(s, "gfx1151.version", "${x}\"\\\n")
	}
	f.Fuzz(func(t *testing.T, src []byte, key, value string) {
		set := map[string]string{key: value}
		out, err := EditNix(src, set)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error without words")
			}
			return
		}
		got, err := Current(out, set)
		if err != nil || got[key] != value {
			t.Fatalf("%q reads %q, %v", key, got[key], err)
		}
		found, err := findNix(src, set)
		if err != nil {
			t.Fatal(err)
		}
		head, tail := src[:found[0].off], src[found[0].end:]
		if !bytes.HasPrefix(out, head) || !bytes.HasSuffix(out, tail) || len(out) < len(head)+len(tail) {
			t.Fatalf("bytes beside the value changed: %q -> %q", src, out)
		}
		again, err := EditNix(out, set)
		if err != nil || !bytes.Equal(again, out) {
			t.Fatalf("twice: %q -> %q, %v", out, again, err)
		}
	})
}
