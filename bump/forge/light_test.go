//go:build !heavy

package forge

// heavy adds what takes a busy machine long.
const heavy = false
