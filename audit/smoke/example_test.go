package smoke_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rocm-nightly/rocm-nightly/audit/smoke"
)

// A tree in which there is nothing to start passes nothing.
func ExampleRun() {
	dir, err := os.MkdirTemp("", "tree-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		fmt.Println(err)
		return
	}
	report, err := smoke.Run(context.Background(), dir, smoke.Options{Mode: smoke.CPU, Targets: []string{"gfx1151"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Checks[0].Name, report.Checks[0].Status)
	fmt.Println(report.Summary())
	// Output:
	// rocminfo not-there
	// smoke: 0 passed, 0 failed, 13 not there, 0 not run; nothing was tried
}
