package gfx

import (
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/amd"
)

// TestProductsAreIndexedWhenAsked: every start of the program makes a table, and
// a switch asks nobody for a product.
func TestProductsAreIndexedWhenAsked(t *testing.T) {
	table := New(amd.Builtin())
	for _, asked := range []string{Auto, "gfx1151", Multiarch} {
		table.Canonical(asked)
	}
	if table.products.exact != nil {
		t.Error("products are indexed though none was asked for")
	}
	if name, ok := table.Canonical("RX 7900 XTX"); !ok || name != "gfx1100" {
		t.Errorf("%s, %t", name, ok)
	}
}
