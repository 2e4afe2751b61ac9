//go:build !heavy

package web

// heavy looks at every state in every theme and size.
const heavy = false
