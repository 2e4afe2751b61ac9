package diskspace_test

import (
	"fmt"

	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
)

// A tarball of which only the size is known, and a disk that it may not fit on.
func ExampleGuess() {
	need := diskspace.Guess("therock-dist-linux-gfx1151-10.0.0.tar.gz", 1_794_376_103)
	disk := diskspace.Space{Mount: "/srv", Bytes: 4 << 30, Inodes: diskspace.Unknown}
	fmt.Println(need)
	fmt.Println(disk)
	fmt.Println("fits:", disk.Fit(need))
	// Output:
	// about 8.4 GiB and 30000 inodes
	// 4.0 GiB are free at /srv
	// fits: perhaps
}
