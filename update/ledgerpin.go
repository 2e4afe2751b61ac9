package update

import (
	"slices"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// pinOf returns what the ledger says of the tarball that a generation was made
// of, nil if it says nothing.
func (r *run) pinOf(g *store.Generation) (*release.Pin, error) {
	m, err := g.Manifest()
	if err != nil {
		return nil, err
	}
	return r.ledgerPin(m.Channel, m.Name, release.Digest(m.Digest)), nil
}

// ledgerPin finds the last pin of a tarball with this digest in the ledger.
func (r *run) ledgerPin(channel, name string, digest release.Digest) *release.Pin {
	entries, err := r.pins(channel, name)
	if err != nil {
		return nil
	}
	for _, e := range slices.Backward(entries) {
		if pin, err := e.Pin(); err == nil && e.Digest == digest {
			return &pin
		}
	}
	return nil
}
