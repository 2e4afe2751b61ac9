package lockfile_test

import (
	"fmt"
	"log"
	"os"

	"github.com/rocm-nightly/rocm-nightly/internal/lockfile"
)

// A signed lock says which bytes to install.
func Example() {
	text, err := os.ReadFile("testdata/rocm-nightly.lock")
	if err != nil {
		log.Fatal(err)
	}
	signature, err := os.ReadFile("testdata/prehashed.minisig")
	if err != nil {
		log.Fatal(err)
	}
	key, err := lockfile.ParseKey("RWRapcem9fq6W2gvlT6I073kh1fxVCayxXLLB7kzFEOwMamGqUOpfX6a")
	if err != nil {
		log.Fatal(err)
	}
	if err := lockfile.Verify(key, text, signature); err != nil {
		log.Fatal(err) // says which key has signed
	}
	lock, err := lockfile.Parse(text)
	if err != nil {
		log.Fatal(err)
	}
	pin, ok := lock.Find("stable", "gfx1151")
	fmt.Println(ok, pin.Version, pin.Size)
	fmt.Println(pin.Digest)
	// Output:
	// true 10.0.0 1794376103
	// sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
}
