// Package release holds the vocabulary that every other package speaks:
// what AMD publishes (Release), the order in which it does (Version), and
// what was observed of its bytes (Digest forms, Pin, VerifiedReader).
//
// It promises three things. A file name is parsed by one anchored grammar or
// not at all: nothing is guessed. Versions are ordered as PEP 440 orders
// them, with development builds, whose local part is a commit and has no
// order, decided by publication time. And a VerifiedReader never lets its
// consumer see io.EOF on bytes that do not have the expected digest.
//
// The package has no state, opens no file and touches no network.
package release
