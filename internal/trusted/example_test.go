package trusted_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/rocm-nightly/rocm-nightly/internal/trusted"
)

func ExampleRule_ReadFile() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, []byte("keep: {last: 5}\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	text, err := trusted.Own().ReadFile(file, 1<<20)
	fmt.Printf("%s%v\n", text, err)
	if err := os.Chmod(file, 0o666); err != nil {
		fmt.Println(err)
		return
	}
	_, err = trusted.Own().ReadFile(file, 1<<20)
	fmt.Println(err != nil)
	// Output:
	// keep: {last: 5}
	// <nil>
	// true
}
