package amd_test

import (
	"fmt"

	"github.com/rocm-nightly/rocm-nightly/internal/amd"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// The indexes that an ordinary run asks, and those for a night of the past.
func ExampleChannel_Ask() {
	data, _, err := amd.Load("", "") // amd.DistroFile, amd.AdminFile
	if err != nil {
		fmt.Println(err)
		return
	}
	nightly := data.Channels["nightly"]
	for _, ix := range nightly.Ask(release.Version{}, "", false) {
		fmt.Println(ix.URL)
	}
	old, _ := release.ParseVersion("7.12.0a20260121")
	fmt.Println(len(nightly.Ask(old, "", false)), "for", old)
	// Output:
	// https://nightly.repo.amd.com/rocm/core/tarball/
	// https://rocm.nightlies.amd.com/tarball-multi-arch/
	// 4 for 7.12.0a20260121
}
