package gfx_test

import (
	"fmt"
	"os"

	"github.com/rocm-nightly/rocm-nightly/internal/amd"
	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
)

// A name is resolved against the slugs that the index of the day has.
func ExampleTable_Resolve() {
	table := gfx.New(amd.Builtin())
	published := []string{"gfx110X-all", "gfx1151", "multiarch"}
	for _, asked := range []string{"RX 7900 XTX", "gfx110x", "strix halo"} {
		r, err := table.Resolve(asked, published)
		fmt.Println(asked, "->", r.Target, "in", r.Family, err)
	}
	near, _ := table.Nearest("gfx1150", published)
	fmt.Printf("gfx1150 is not served; %s is, with HSA_OVERRIDE_GFX_VERSION=%s\n", near.Target, near.Override)
	// Output:
	// RX 7900 XTX -> gfx1100 in gfx110X-all <nil>
	// gfx110x -> gfx110X-all in gfx110X-all <nil>
	// strix halo -> gfx1151 in gfx1151 <nil>
	// gfx1150 is not served; gfx1151 is, with HSA_OVERRIDE_GFX_VERSION=11.5.1
}

// A Ryzen desktop with a card: the GPU inside the processor is left out.
func ExampleTable_Detect() {
	m, err := gfx.New(amd.Builtin()).Detect(os.DirFS("testdata/kfd/ryzen-rx7900"))
	fmt.Println(m.Taken, err)
	for _, out := range m.LeftOut {
		fmt.Println("left out:", out.Reason)
	}
	// Output:
	// [gfx1100] <nil>
	// left out: gfx1036, the display GPU of desktop Ryzens (Raphael, Granite Ridge), has 2 compute units, enough to light a desktop: to include it add --arch gfx1036, or an install with target: gfx1036
}
