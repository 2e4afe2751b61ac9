// Package manifest describes what is in a prefix: manifest.json says what it
// was made from and how, files.jsonl lists every file of it, one JSON value a
// line, sorted by path.
//
// A manifest is a pure function of the tarball and its name, of what was known of
// its digest, of the repack options and the ruleset version: it holds no clock, no host name and no path of the
// machine that wrote it. files.jsonl is one too, but for the digests of the few
// files that name the final prefix, in etc/, nix-support/ and the compiler's
// configuration, and for the times of files that a store has hard-linked to
// equal ones of an older prefix.
// Readers refuse a schema that is newer than they are. docs/manifest.md describes
// each field.
package manifest
