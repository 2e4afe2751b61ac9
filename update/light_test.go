//go:build !heavy

package update

// heavy is whether every step of a sweep is taken.
const heavy = false
