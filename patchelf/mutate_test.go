package patchelf

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"testing"
)

// TestDamagedHeaders damages the headers and tables of real files, where
// random bytes seldom hit, and holds every plan that results to its promises.
func TestDamagedHeaders(t *testing.T) {
	rounds := 60
	if os.Getenv("PATCHELF_LONG") != "" {
		rounds = 1000
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	var plans, refusals, malformed int
	for _, v := range variants() {
		whole, err := os.ReadFile(v.make(t))
		if err != nil {
			t.Fatal(err)
		}
		g, err := Parse(byteFile(whole), int64(len(whole)))
		if err != nil {
			t.Fatal(err)
		}
		for range rounds {
			b := damage(rnd, g, bytes.Clone(whole))
			e := Edit{RunPath: ptr(longPath[:rnd.IntN(len(longPath))]), Tag: Tag(rnd.IntN(3))}
			if rnd.IntN(3) == 0 {
				e.Interp = "/interp"[:1+rnd.IntN(7)]
			}
			h, err := Parse(byteFile(b), int64(len(b)))
			var format *FormatError
			if errors.As(err, &format) || errors.Is(err, ErrNotELF) {
				malformed++
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			p, err := h.Plan(e)
			var refused *RefusedError
			if errors.As(err, &refused) || errors.As(err, &format) {
				refusals++
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			plans++
			checkPlan(t, h, p, e, b)
		}
	}
	t.Logf("%d plans, %d refusals, %d malformed", plans, refusals, malformed)
	if plans == 0 || refusals == 0 || malformed == 0 {
		t.Error("the damage is one-sided")
	}
}

// damage changes one to three words of the headers or tables of g.
func damage(rnd *rand.Rand, g *File, b []byte) []byte {
	spots := []struct{ at, n uint64 }{
		{16, 48}, {g.phoff, uint64(g.phnum * 56)}, {g.dynOff, g.dynLen}, {g.shoff, uint64(g.shnum * 64)}, {g.strOff, g.strSize},
	}
	for _, d := range g.dyns {
		if off, _, ok := fileOffset(g.phdrs, d.val); ok {
			spots = append(spots, struct{ at, n uint64 }{off, 64})
		}
	}
	for range 1 + rnd.IntN(3) {
		s := spots[rnd.IntN(len(spots))]
		at := s.at + rnd.Uint64N(s.n)&^3
		if at+8 > uint64(len(b)) {
			continue
		}
		switch rnd.IntN(5) {
		case 0:
			b[at+rnd.Uint64N(8)] ^= 1 << rnd.IntN(8)
		case 1:
			g.put(b[at:], rnd.Uint64())
		case 2:
			g.put(b[at:], rnd.Uint64N(uint64(len(b))))
		case 3:
			g.put(b[at:], g.get(b[at:])+uint64(rnd.IntN(9))-4)
		case 4:
			g.put(b[at:], ^uint64(0)-rnd.Uint64N(16))
		}
	}
	return b
}
