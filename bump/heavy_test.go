//go:build heavy

package bump_test

const heavy = true
