package priority_test

import (
	"fmt"

	"github.com/rocm-nightly/rocm-nightly/internal/priority"
)

func ExampleSet() {
	fmt.Println(priority.Set(priority.Normal), priority.Set("high"))
	// Output: <nil> set the priority: "high" is not one of normal, low and idle
}
