package diff_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rocm-nightly/rocm-nightly/audit/diff"
)

// A directory takes the place of another: what may break?
func ExampleCompare() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"old/bin/hipcc", "old/bin/hipify", "new/bin/hipcc"} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			fmt.Println(err)
			return
		}
		if err := os.WriteFile(p, []byte("#!/bin/sh\n"), 0o755); err != nil {
			fmt.Println(err)
			return
		}
	}
	r, err := diff.Compare(context.Background(), diff.Source{Dir: filepath.Join(dir, "old")}, diff.Source{Dir: filepath.Join(dir, "new")}, diff.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, risk := range r.Risks {
		fmt.Println(risk.Kind+":", risk.Subject, risk.Detail)
	}
	// Output: programs: bin/hipify is gone
}
