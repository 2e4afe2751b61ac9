package cage

import "testing"

// A program can call itself what it likes; what is read of it stays right.
func TestParseStat(t *testing.T) {
	const rest = " S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 100 200 300"
	for name, ok := range map[string]bool{
		"42 (sh)" + rest: true, "42 (a) R 1 1 1 ( b)" + rest: true, "42 ()) ()" + rest: true, "42 (\n)" + rest: true,
		"": false, "42": false, "42 (sh) S 7": false, "x (sh)" + rest: false, ")": false, "42 (sh" + rest: false,
	} {
		p, got := parseStat([]byte(name))
		if got != ok || ok && p != (process{pid: 42, parent: 7, threads: 3, born: 100, state: 'S'}) {
			t.Errorf("%q: %+v, %t", name, p, got)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (a) R 1 (b) S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 100"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, ok := parseStat(b); !ok && p != (process{}) {
			t.Errorf("%+v", p)
		}
	})
}

// A machine that was full before is not the program's doing.
func TestExhausted(t *testing.T) {
	const gib = 1 << 30
	for _, test := range []struct {
		start, now int64
		want       bool
	}{
		{16 * gib, 8 * gib, false}, {16 * gib, gib / 4, true}, {gib / 4, gib / 5, false}, {gib, gib / 3, true}, {16 * gib, 0, false}, {0, gib, false},
	} {
		if got := exhausted(test.start, test.now); got != test.want {
			t.Errorf("from %d to %d: %t", test.start, test.now, got)
		}
	}
	if n := available(); n < 1<<20 {
		t.Errorf("%d bytes are available", n)
	}
}
