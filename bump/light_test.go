//go:build !heavy

package bump_test

// heavy is whether a process dies at every request, not only at those that
// change something.
const heavy = false
