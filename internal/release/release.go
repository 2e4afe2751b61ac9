package release

import (
	"cmp"
	"time"
)

// Release is one tarball on one of AMD's indexes.
type Release struct {
	Channel  string    // nightly, dev, rc, bkc, stable, asan
	Name     string    // file name, exactly as listed
	Family   string    // the slug in the name: gfx1151, gfx110X-all, multiarch
	Version  Version   // never the zero Version
	Platform string    // linux or windows
	Variant  string    // "" is plain; see Name
	Tests    bool      // the -tests sibling, which is not a ROCm
	Archive  string    // "tar.gz", "tar.zst", …; "" is tar.gz
	URL      string    // absolute, escaped; where the bytes are
	MTime    time.Time // UTC, as the index states it
	Size     int64     // bytes, as the index states it; 0 if it does not
}

// ChannelASan is the channel whose tarballs are built with AddressSanitizer.
const ChannelASan = "asan"

// Unusable returns why a release cannot be installed here, as the end of a
// sentence about it, or "" if it can: a plain ROCm for Linux, in the one
// archive format that is unpacked. What is built with AddressSanitizer is
// plain in the channel of such builds, and only there.
func (r Release) Unusable() string {
	switch {
	case r.Platform != "linux":
		return "is for " + r.Platform
	case r.Tests:
		return "is the -tests sibling, not a ROCm"
	case r.Variant != "" && (r.Variant != VariantASan || r.Channel != ChannelASan):
		return "is the " + r.Variant + " variant"
	case r.Archive != "" && r.Archive != ArchiveTarGz:
		return "is a " + r.Archive + ", which update does not take"
	}
	return ""
}

// Pin is a release together with what was observed of its bytes. AMD signs
// nothing, so every pin begins as trust on first use.
type Pin struct {
	Release
	Digest Digest // SHA-256 of the tarball
	Size   int64  // bytes, counted; Release.Size is only what the index said
	ETag   string // as sent, strong or weak; "" if none
}

// Compare orders two releases by version, and where versions do not decide
// (development builds, or one version listed twice) by publication time,
// then by name so that the order is total.
func Compare(a, b Release) int {
	if c := a.Version.Compare(b.Version); c != 0 {
		return c
	}
	if c := a.MTime.Compare(b.MTime); c != 0 {
		return c
	}
	return cmp.Compare(a.Name, b.Name)
}
