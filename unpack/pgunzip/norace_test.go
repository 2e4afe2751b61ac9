//go:build !race

package pgunzip_test

// raced says that the race detector looks on: see race_test.go.
const raced = false
