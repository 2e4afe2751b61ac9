package body_test

import (
	"fmt"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/bump/body"
	"github.com/rocm-nightly/rocm-nightly/bump/pinfile"
)

func ExampleRender() {
	text := body.Render(body.Input{
		Flavor: body.GitHub,
		Name:   "my-flake",
		Pins:   []pinfile.Pin{{Target: "gfx1151", Family: "gfx1151", Version: "10.2.0a20260930", Date: "2026-09-30"}},
		Proofs: []body.Proof{{Target: "gfx1151", Old: &body.Old{Version: "10.2.0a20260929"}, Audit: &body.Audit{Scope: "host"}}},
	})
	lines := strings.Split(text, "\n")
	fmt.Println(lines[1])
	fmt.Println(lines[3])
	fmt.Println(body.Versions(text), len(body.Fingerprint(text)))
	// Output:
	// ROCm `10.2.0a20260929` → `10.2.0a20260930` (2026-09-30) for `gfx1151`.
	// **Nothing was found that speaks against merging this.** Every tarball was downloaded, verified, repacked and audited.
	// map[gfx1151:10.2.0a20260930] 64
}

func ExampleMessage() {
	fmt.Print(body.Message(body.Input{
		Name: "my-flake", Config: "config.yaml",
		Pins: []pinfile.Pin{{Target: "gfx1151", Version: "10.2.0a20260930", Date: "2026-09-30", Size: 13_000_000_000}},
	}))
	// Output:
	// - gfx1151
	//   to       10.2.0a20260930 (2026-09-30)
	//   size     13000000000 bytes
	//
	// Asked for by the bump my-flake of config.yaml.
}

func ExampleTicked() {
	text := body.Dashboard(body.GitHub, []body.Entry{
		{Group: "my-flake", State: "open", Version: "10.2.0a20260930", Boxes: []string{body.BoxRetry, body.BoxIgnore}},
	}, "2026-10-01 06:45 UTC", 0)
	text = strings.Replace(text, "[ ]", "[x]", 1) // as a person does
	fmt.Println(body.Ticked(text))
	// Output: [retry:my-flake]
}

func ExampleComment() {
	text := body.Comment("withdrawn", "Closed: AMD has withdrawn 10.2.0a20260930.")
	fmt.Print(text)
	fmt.Println(body.Marked(text))
	// Output:
	// <!-- rocm-nightly:comment withdrawn -->
	// Closed: AMD has withdrawn `10.2.0a20260930`.
	// withdrawn
}
