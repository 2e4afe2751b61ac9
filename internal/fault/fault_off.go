//go:build !faults

package fault

import "io"

// Enabled says whether points can be armed.
const Enabled = false

// Point is a step that can fail in a build for tests, and never here.
func Point(string) error { return nil }

// Do is do, a step that can fail in a build for tests.
func Do(_ string, do func() error) error { return do() }

// Call is a system call that can fail in a build for tests, and never here.
func Call(string) error { return nil }

// Write writes b to w. It can fail half-way in a build for tests.
func Write(_ string, w io.Writer, b []byte) (int, error) { return w.Write(b) }
