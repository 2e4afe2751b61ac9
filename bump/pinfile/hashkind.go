package pinfile

import (
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// hashKind is a way to write a hash.
type hashKind struct {
	name     string
	template string // gives one, "" if no field does
}

// The hash kinds of packaging repositories. The kind of what stands in a file
// is judged by its shape alone, so that a placeholder keeps its kind.
var (
	hashNone   = hashKind{name: "no hash"}
	hashSRI    = hashKind{"an SRI hash (sha256-…)", "{{.SRI}}"}
	hashHex    = hashKind{"a hash in hex", "{{.Hex}}"}
	hashNix32  = hashKind{"a hash in Nix base-32", "{{.Nix32}}"}
	hashPreHex = hashKind{"a hash in hex after sha256:", "sha256:{{.Hex}}"}
	hashPre32  = hashKind{"a hash in Nix base-32 after sha256:", "sha256:{{.Nix32}}"}
	hashPre    = hashKind{"a hash after sha256: of no known length", "sha256:{{.Hex}}"}
	hashOther  = hashKind{name: "a hash that is not SHA-256"}
)

// kindOfHash judges s by its shape.
func kindOfHash(s string) hashKind {
	if strings.HasPrefix(s, "sha256-") {
		return hashSRI
	}
	for _, other := range []string{"sha512-", "sha384-", "sha1-", "md5-", "sha512:", "sha1:", "md5:"} {
		if strings.HasPrefix(s, other) {
			return hashOther
		}
	}
	rest, prefixed := strings.CutPrefix(s, "sha256:")
	switch {
	case len(rest) == 64 && onlyOf(strings.ToLower(rest), "0123456789abcdef"):
		if prefixed {
			return hashPreHex
		}
		return hashHex
	case len(rest) == 52 && onlyOf(rest, "0123456789abcdfghijklmnpqrsvwxyz"):
		if prefixed {
			return hashPre32
		}
		return hashNix32
	case prefixed:
		return hashPre
	}
	return hashNone
}

func onlyOf(s, set string) bool { return strings.Trim(s, set) == "" }

// checkHash reports whether the new value may replace the old one, and if not
// what both are. A hash must be replaced by a real hash of the same kind; an
// empty value takes anything; what is no hash takes no hash.
func checkHash(old, value string) (have, want hashKind, ok bool) {
	want, have = kindOfHash(old), kindOfHash(value)
	if old == "" || want == hashNone && have == hashNone {
		return have, want, true
	}
	if have != hashNone && have != hashOther {
		if _, err := release.ParseDigest(value); err != nil {
			have = hashKind{name: "not a whole hash"}
		}
	}
	return have, want, have == want
}
