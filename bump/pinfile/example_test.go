package pinfile_test

import (
	"fmt"

	"github.com/rocm-nightly/rocm-nightly/bump/pinfile"
)

func ExampleEditNix() {
	src := []byte("{\n  # version = \"1\";\n  version = \"2\";\n}\n")
	out, err := pinfile.EditNix(src, map[string]string{"version": "3"})
	fmt.Printf("%s%v\n", out, err)
	// Output:
	// {
	//   # version = "1";
	//   version = "3";
	// }
	// <nil>
}
