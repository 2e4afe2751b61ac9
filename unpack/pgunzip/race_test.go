//go:build race

package pgunzip_test

// raced says that the race detector looks on, at a tenth of the speed: tests try
// less of what is the same with and without it.
const raced = true
