package bump

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/bump/body"
	"github.com/rocm-nightly/rocm-nightly/bump/forge"
)

// TestHalfWithdrawnIsWithdrawn: one of two pins of an open request is gone from
// the index, and the next night is not complete yet.
func TestHalfWithdrawnIsWithdrawn(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.f.commitAs("main", "Ada <ada@example.org>", "another target", map[string]string{"b.nix": nixPin})
	other := s.repo.Files[0]
	other.Path, other.Target = "b.nix", "gfx1103"
	s.repo.Files = append(s.repo.Files, other)
	pins := night(n30)
	pins["gfx1103"] = pins["gfx1151"]
	o := Options{WorkDir: t.TempDir(), Env: os.Getenv, Now: func() time.Time { return s.now }, Proofs: map[string]body.Proof{}}
	o.Open = func(context.Context, forge.Config) (forge.Forge, error) { return s.f, nil }
	for target, pin := range pins {
		pin.Target, pin.Family, pin.Name = target, target, "therock-dist-linux-"+target+"-"+n30+".tar.gz"
		pin.URL = "https://nightly.repo.amd.com/rocm/core/tarball/" + pin.Name
		pins[target] = pin
		o.Proofs[target] = body.Proof{Target: target, Pin: pin}
	}
	first, err := Run(t.Context(), s.repo, pins, o)
	if err != nil {
		t.Fatal(err)
	}
	s.want(first, ActionOpened, "commit", "move", "open")
	gone := pins["gfx1103"].Name
	o.Published = func(name string) bool { return name != gone }
	delete(pins, "gfx1103")
	res, err := Run(t.Context(), s.repo, pins, o)
	if err != nil {
		t.Fatal(err)
	}
	s.want(res, ActionClosed, "comment", "edit", "remove")
}
