package release

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Release is one tarball on one of AMD's indexes.
type Release struct {
	Channel  string    // nightly, dev, rc, bkc, stable, asan
	Name     string    // file name, exactly as listed
	Family   string    // the slug in the name: gfx1151, gfx110X-all, multiarch
	Version  Version   // never the zero Version
	Platform string    // linux or windows
	Tests    bool      // the -tests sibling, which is not a ROCm
	URL      string    // absolute, escaped; where the bytes are
	MTime    time.Time // UTC, as the index states it
}

// Pin is a release together with what was observed of its bytes. AMD signs
// nothing, so every pin begins as trust on first use.
type Pin struct {
	Release
	Digest Digest // SHA-256 of the tarball
	Size   int64  // bytes
	ETag   string // as sent, strong or weak; "" if none
}

// Name is what a tarball's file name says.
type Name struct {
	Platform string
	Family   string
	Tests    bool
	Version  Version
}

// ErrName is what ParseName's errors match.
var ErrName = errors.New("not a name of AMD's grammar")

// nameRE is AMD's grammar, therock-dist-OS-FAMILY[-tests]-VERSION.tar.gz,
// anchored at both ends. A version starts right after a dash and with a
// digit, so that gfx1151-tests-10.2.0 is never a version "tests-10.2.0". A
// family has at most one suffix word (-all, -dgpu, -dcgpu).
var nameRE = regexp.MustCompile(`^therock-dist-(linux|windows)-` +
	`(multiarch|gfx[0-9a-f]{1,8}[xX]?(?:-[a-z]+)?)(-tests)?-(` + versionPattern + `)\.tar\.gz$`)

// variantRE finds suffix words that mark another build of a family, never a
// family of its own.
var variantRE = regexp.MustCompile(`-(?:tests?|asan|tsan|ubsan|debug|dbg)$`)

// maxNameLen bounds what ParseName reads; it is the limit of common file systems.
const maxNameLen = 255

// ParseName reads a tarball's file name. What is not of the grammar, AMD's
// own ADHOCBUILD leftovers included, is an error that matches ErrName.
func ParseName(s string) (Name, error) {
	if len(s) > maxNameLen {
		return Name{}, fmt.Errorf("parse name %.40q…: %w (%d bytes)", s, ErrName, len(s))
	}
	m := nameRE.FindStringSubmatch(s)
	if m == nil {
		return Name{}, fmt.Errorf("parse name %q: %w", s, ErrName)
	}
	n := Name{Platform: m[1], Family: m[2], Tests: m[3] != ""}
	if family, tests := strings.CutSuffix(n.Family, "-tests"); tests && !n.Tests {
		n.Family, n.Tests = family, true // the family's suffix word took what is the variant's
	}
	if variantRE.MatchString(n.Family) {
		return Name{}, fmt.Errorf("parse name %q: %w: %s is a variant, not a family", s, ErrName, n.Family)
	}
	var err error
	if n.Version, err = ParseVersion(m[4]); err != nil {
		return Name{}, fmt.Errorf("parse name %q: %w: %w", s, ErrName, err)
	}
	return n, nil
}

// String returns the file name that n was, or would be, parsed from.
func (n Name) String() string {
	tests := ""
	if n.Tests {
		tests = "-tests"
	}
	return fmt.Sprintf("therock-dist-%s-%s%s-%s.tar.gz", n.Platform, n.Family, tests, n.Version)
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
