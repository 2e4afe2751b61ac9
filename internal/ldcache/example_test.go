package ldcache_test

import (
	"fmt"
	"log"

	"github.com/rocm-nightly/rocm-nightly/internal/ldcache"
)

func ExampleParse() {
	c, err := ldcache.Parse(image([2]string{"libamdhip64.so.7", "/opt/rocm/lib/libamdhip64.so.7"}))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Lookup("libamdhip64.so.7", nil))
	// Output: [/opt/rocm/lib/libamdhip64.so.7]
}
