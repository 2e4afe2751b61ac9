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
	hashBase64 = hashKind{"a hash in base-64", `{{slice .SRI 7}}`}
	hashPreHex = hashKind{"a hash in hex after sha256:", "sha256:{{.Hex}}"}
	hashPre32  = hashKind{"a hash in Nix base-32 after sha256:", "sha256:{{.Nix32}}"}
	hashPre64  = hashKind{"a hash in base-64 after sha256:", `sha256:{{slice .SRI 7}}`}
	hashEqHex  = hashKind{"a hash in hex after SHA256=", "SHA256={{.Hex}}"}
	hashPre    = hashKind{"a hash after sha256: of no known length", "sha256:{{.Hex}}"}
	hashOther  = hashKind{name: "a hash that is not SHA-256"}
)

const (
	hexDigitSet   = "0123456789abcdef"
	nix32DigitSet = "0123456789abcdfghijklmnpqrsvwxyz"
	base64Set     = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
)

// kindOfHash judges s by its shape.
func kindOfHash(s string) hashKind {
	if strings.HasPrefix(s, "sha256-") {
		return hashSRI
	}
	for _, other := range []string{"sha512-", "sha384-", "sha1-", "md5-", "blake3-", "sha512:", "sha384:", "sha1:", "md5:", "blake3:", "SHA512=", "SHA1=", "MD5="} {
		if strings.HasPrefix(s, other) {
			return hashOther
		}
	}
	if hex, ok := strings.CutPrefix(s, "SHA256="); ok && isHex(hex) {
		return hashEqHex
	}
	rest, prefixed := strings.CutPrefix(s, "sha256:")
	bare, after := hashNone, hashPre
	switch {
	case isHex(rest):
		bare, after = hashHex, hashPreHex
	case len(rest) == 52 && onlyOf(rest, nix32DigitSet):
		bare, after = hashNix32, hashPre32
	case isBase64(rest):
		bare, after = hashBase64, hashPre64
	case len(rest) == 128 && onlyOf(strings.ToLower(rest), hexDigitSet):
		bare = hashOther // SHA-512, BLAKE2b
	}
	if prefixed {
		return after
	}
	return bare
}

func isHex(s string) bool {
	return len(s) == 64 && onlyOf(strings.ToLower(s), hexDigitSet)
}

// isBase64 takes 32 bytes in base-64: 43 digits and one =.
func isBase64(s string) bool {
	return len(s) == 44 && s[43] == '=' && onlyOf(s[:43], base64Set)
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
	if have != hashNone && have != hashOther && !isDigest(value, have) {
		have = hashKind{name: "not a whole hash"}
	}
	return have, want, have == want
}

// isDigest reports whether value, of that kind, is a whole digest.
func isDigest(value string, kind hashKind) bool {
	switch kind {
	case hashBase64, hashPre64:
		value = "sha256-" + strings.TrimPrefix(value, "sha256:")
	case hashEqHex:
		value = strings.TrimPrefix(value, "SHA256=")
	}
	_, err := release.ParseDigest(value)
	return err == nil
}
