//go:build !heavy

package bump_test

// Of all troubles at all requests a few are tried, of every scene and kind.
const (
	hubAllTroubles = false
	hubEvery       = 97
)
