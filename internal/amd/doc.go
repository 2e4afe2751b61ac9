// Package amd holds what AMD publishes and where, as one versioned data file:
// the indexes of each channel and the versions that they serve, the families
// of tarballs, the products that people own, what is known of each GPU target,
// and the builds that nobody should get.
//
// It promises that facts about AMD are corrected without a new program: the
// built-in file is replaced by a newer one of the distribution, and a file of
// the administrator is laid over either. It promises too that none of them is
// half believed: a file with an unknown key, a malformed version, a pattern
// that cannot match or a newer schema is an error that says where and what to
// do, never a silent default.
//
// The package opens the files that it is told to, and touches no network.
package amd
