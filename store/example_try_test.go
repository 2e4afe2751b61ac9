package store_test

import (
	"context"
	"fmt"
	"os"

	"github.com/rocm-nightly/rocm-nightly/store"
)

// A generation is tried, fails its check after the switch, and is left again.
func ExampleSlot_Try() {
	root, err := os.MkdirTemp("", "rocm-nightly-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	ctx := context.Background()
	s, err := store.Open(root)
	if err != nil {
		fmt.Println(err)
		return
	}
	slot := s.Slot("nightly", "gfx1151")
	for _, version := range []string{"10.2.0a20260930", "10.2.0a20261001"} {
		if err := install(ctx, slot, version); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := slot.Try(ctx, "10.2.0a20261001", "update"); err != nil {
		fmt.Println(err)
		return
	}
	back, err := slot.Revert(ctx, "10.2.0a20261001", "what was checked", store.Refusal{Generation: "10.2.0a20261001", Reason: "no kernels"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("back to", back.Name)
	if waits, err := slot.Pending(); err == nil && waits == nil {
		fmt.Println("nothing waits")
	}
	// Output:
	// active: 10.2.0a20260930
	// active: 10.2.0a20261001
	// back to 10.2.0a20260930
	// nothing waits
}
