//go:build !heavy

package patchelf

import "testing"

// heavy says that all of the matrix is wanted, not a part of it.
const heavy = false

func (x *subject) strippers(*testing.T) {}
func (x *subject) debugger(*testing.T)  {}
