// Package release holds the vocabulary that every other package speaks:
// what AMD publishes (Release), the order in which it does (Version), and
// what was observed of its bytes (Digest forms, Pin, VerifiedReader).
//
// It promises three things. A file name is parsed by one of two anchored
// grammars, the one in use and the one that is announced, or not at all:
// nothing is guessed, and what was parsed is written as it was read. Versions
// are ordered as PEP 440 orders them, but for development builds, whose local
// part is a commit and has no order and which publication time decides, and
// for the nights that AMD once spelled as release candidates, which are
// ordered as nights. And a VerifiedReader never lets its consumer see io.EOF
// on bytes that do not have the expected digest.
//
// The package has no state, opens no file and touches no network.
package release
