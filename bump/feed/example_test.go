package feed_test

import (
	"os"
	"time"

	"github.com/rocm-nightly/rocm-nightly/bump/feed"
)

func ExampleEncode() {
	err := feed.Encode(os.Stdout, feed.Feed{Channel: "nightly", Family: "gfx1151", Entries: []feed.Entry{{
		Version: "10.2.0a20260930",
		Time:    time.Date(2026, 9, 30, 8, 12, 0, 0, time.UTC),
		Digest:  "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
		URL:     "https://rocm.nightlies.amd.com/tarball-multi-arch/therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz",
		Size:    13_000_000_000,
	}}})
	if err != nil {
		panic(err)
	}
	// Output:
	// {
	//   "schema": 1,
	//   "channel": "nightly",
	//   "family": "gfx1151",
	//   "sourceUrl": "https://github.com/ROCm/TheRock",
	//   "tags": {
	//     "latest": "10.2.0a20260930"
	//   },
	//   "latest": {
	//     "version": "10.2.0a20260930",
	//     "releaseTimestamp": "2026-09-30T08:12:00Z",
	//     "digest": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
	//     "sri": "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
	//     "nix32": "0mdqa9w1p6cmli6976v4wi0sw9r4p5prkj7lzfd1877wk11c9c73",
	//     "url": "https://rocm.nightlies.amd.com/tarball-multi-arch/therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz",
	//     "name": "therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz",
	//     "size": 13000000000,
	//     "isStable": false,
	//     "sourceUrl": "https://github.com/ROCm/TheRock"
	//   },
	//   "releases": [
	//     {
	//       "version": "10.2.0a20260930",
	//       "releaseTimestamp": "2026-09-30T08:12:00Z",
	//       "digest": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
	//       "sri": "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
	//       "nix32": "0mdqa9w1p6cmli6976v4wi0sw9r4p5prkj7lzfd1877wk11c9c73",
	//       "url": "https://rocm.nightlies.amd.com/tarball-multi-arch/therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz",
	//       "name": "therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz",
	//       "size": 13000000000,
	//       "isStable": false,
	//       "sourceUrl": "https://github.com/ROCm/TheRock"
	//     }
	//   ]
	// }
}
