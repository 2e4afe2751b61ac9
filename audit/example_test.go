package audit_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/rocm-nightly/rocm-nightly/audit"
)

// A tree that was copied with cp * has lost a link and gained a script that
// only its builder can run.
func ExampleRun() {
	dir, err := os.MkdirTemp("", "rocm")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for _, d := range []string{"bin", "lib/llvm/bin", ".info"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			log.Fatal(err)
		}
	}
	script := []byte("#!/opt/python/cp312-cp312/bin/python3.12\n")
	if err := os.WriteFile(filepath.Join(dir, "bin/rocprof"), script, 0o755); err != nil {
		log.Fatal(err)
	}

	r, err := audit.Run(context.Background(), dir, audit.Options{Scope: audit.ScopeTree})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range r.Refused(nil, audit.RefuseRegression) {
		fmt.Printf("%s: %s %s\n", f.Rule, f.Path, f.Detail)
	}
	// Output:
	// interpreter: bin/rocprof starts with /opt/python/cp312-cp312/bin/python3.12, which only the machine that built it has
	// root-shape: llvm is missing: compilers are looked for in it
}
