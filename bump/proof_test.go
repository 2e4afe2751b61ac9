package bump

import (
	"context"
	"errors"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/bump/body"
)

// What a pin rests on is told as far as it is known: in full where it can be asked
// for, else as it was given, else not at all.
func TestProofOf(t *testing.T) {
	known := map[string]body.Proof{"gfx1151": {Recipe: "known"}}
	asked := func(p *body.Proof, err error) func(context.Context, string, string) (*body.Proof, error) {
		return func(context.Context, string, string) (*body.Proof, error) { return p, err }
	}
	for name, c := range map[string]struct {
		o      Options
		recipe string
	}{
		"nothing":   {Options{}, ""},
		"given":     {Options{Proofs: known}, "known"},
		"in full":   {Options{Proofs: known, Proof: asked(&body.Proof{Recipe: "full"}, nil)}, "full"},
		"not known": {Options{Proofs: known, Proof: asked(nil, nil)}, "known"},
		"an error":  {Options{Proofs: known, Proof: asked(nil, errors.New("broken"))}, "known"},
	} {
		p := c.o.ProofOf(t.Context(), "gfx1151", Pin{Version: "2"}, "1")
		if p.Recipe != c.recipe || p.Target != "gfx1151" || p.Pin.Version != "2" || p.Old == nil || p.Old.Version != "1" || c.recipe == "" && p.NoDiff == "" {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if p := (Options{}).ProofOf(t.Context(), "gfx1151", Pin{}, ""); p.Old != nil {
		t.Errorf("%+v", p)
	}
}
