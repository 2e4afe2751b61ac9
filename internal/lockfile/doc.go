// Package lockfile reads and writes rocm-nightly.lock: which tarball, with
// which digest, a channel has for a target. Whoever installs by it gets these
// bytes and no others. It is meant to be committed, reviewed and signed.
//
//	{
//	  "schema": 1,
//	  "pins": [
//	    {
//	      "channel": "nightly",
//	      "target": "gfx1151",
//	      "family": "gfx1151",
//	      "version": "10.2.0a20260930",
//	      "name": "therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz",
//	      "url": "https://nightly.repo.amd.com/rocm/core/tarball/therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz",
//	      "digest": "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
//	      "sri": "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
//	      "size": 1794376103,
//	      "mtime": "2026-09-30T04:12:51Z"
//	    }
//	  ]
//	}
//
// It promises, each in a test of the same name:
//
//   - TheSameStateGivesTheSameBytes: Encode sorts, and writes no clock, host,
//     user or secret; what Parse reads, Encode writes back byte for byte when it
//     was Encode that wrote it.
//   - WhatIsAmbiguousIsRefused: a key that is unknown or given twice, a target
//     that is pinned twice, a name that says another version, a URL that leads to
//     another name, a digest in two forms that disagree: each is an error that
//     says which pin it is about. A file of a newer program is told by ErrNewer.
//   - OthersPinsAreKept: Merge replaces the pins that it has something new of,
//     and no others.
//   - OnlyTheKeysOwnSignatureCounts: Verify takes minisign's signatures, the
//     prehashed and the legacy kind, of exactly these bytes by exactly this key,
//     trusted comment included.
//
// It does not fetch and does not know whether a pin is the newest, or whether a
// signed file is: an old lock with a good signature is a good lock.
package lockfile
