//go:build !faults

package e2e

// buildTags are those of the program under test.
const buildTags = ""
