package bump

import (
	"context"

	"github.com/rocm-nightly/rocm-nightly/bump/body"
)

// ProofOf returns what the pin of a target rests on, and what it changes from the
// version old that stands there. What cannot be told is left out: a body says less
// then, and the pin is as good.
func (o Options) ProofOf(ctx context.Context, target string, pin Pin, old string) body.Proof {
	proof, ok := o.Proofs[target]
	if o.Proof != nil {
		full, err := o.Proof(ctx, target, old)
		switch {
		case err != nil && o.Log != nil:
			o.Log.Warn("what a pin rests on could not be told in full", "target", target, "error", err)
		case err == nil && full != nil:
			proof, ok = *full, true
		}
	}
	if !ok {
		proof.NoDiff = "nothing is recorded of the run that verified it"
	}
	proof.Target, proof.Pin = target, pin
	if proof.Old == nil && old != "" {
		proof.Old = &body.Old{Version: old}
	}
	return proof
}
