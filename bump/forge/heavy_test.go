//go:build heavy

package forge

const heavy = true
