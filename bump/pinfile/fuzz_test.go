package pinfile

import "testing"

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
		if _, err := scanNix(src); err != nil && err.Error() == "" {
			t.Fatal("an error without words")
		}
	})
}
