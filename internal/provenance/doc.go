// Package provenance states how a prefix was made: an in-toto Statement v1 with
// SLSA's provenance v1 as its predicate, which the tools of that field read,
// sign and hold against a policy.
//
//	b, err := provenance.Statement(provenance.Build{…})
//
// A statement holds what was observed and nothing that is secret: URLs lose names,
// passwords and queries, and no path, host or user of the machine is in it. It is
// not signed; cosign, or whatever a site signs with, does that.
//
// Sources: in-toto attestation framework v1 (spec/v1/statement.md,
// resource_descriptor.md, digest_set.md), SLSA v1.0 (provenance/v1).
package provenance
