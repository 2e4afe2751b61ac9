package release

import (
	"bytes"
	_ "crypto/sha256" // registers the one algorithm that go-digest is used with
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	digest "github.com/opencontainers/go-digest"
)

// Digest is a SHA-256 in go-digest's form, sha256:<hex>.
type Digest = digest.Digest

// ErrDigest is what ParseDigest's errors match.
var ErrDigest = errors.New("not a SHA-256 digest")

const sha256Size = 32

// ParseDigest reads a SHA-256 in any form that people paste: sha256:<hex>,
// bare hex of either case, an SRI hash (sha256-<base64>), or Nix base-32
// (bare or after sha256:). Anything else, other algorithms included, is an
// error that matches ErrDigest.
func ParseDigest(s string) (Digest, error) {
	text := strings.TrimSpace(s)
	raw, err := decodeDigest(text)
	if err != nil {
		return "", fmt.Errorf("parse digest %.100q: %w: %w (want sha256:<hex>, hex, sha256-<base64> or Nix base-32)", s, ErrDigest, err)
	}
	return digest.NewDigestFromBytes(digest.SHA256, raw), nil
}

func decodeDigest(s string) ([]byte, error) {
	if b64, ok := strings.CutPrefix(s, "sha256-"); ok {
		raw, err := base64.StdEncoding.Strict().DecodeString(b64)
		if err == nil && len(raw) != sha256Size {
			err = fmt.Errorf("%d bytes, want %d", len(raw), sha256Size)
		}
		return raw, err
	}
	s = strings.TrimPrefix(s, "sha256:")
	switch len(s) {
	case hex.EncodedLen(sha256Size):
		return hex.DecodeString(strings.ToLower(s))
	case nix32Len:
		return decodeNix32(s)
	}
	return nil, fmt.Errorf("%d characters", len(s))
}

// SRI returns d as a Subresource Integrity hash, sha256-<base64>, the form of
// Nix's hash attributes. d must come from ParseDigest or a hash.
func SRI(d Digest) string {
	return "sha256-" + base64.StdEncoding.EncodeToString(rawDigest(d))
}

// Nix32 returns d in Nix's base-32, as nix-prefetch-url prints it.
func Nix32(d Digest) string { return encodeNix32(rawDigest(d)) }

// rawDigest never panics: a digest that did not come from ParseDigest has no
// bytes.
func rawDigest(d Digest) []byte {
	_, enc, _ := strings.Cut(string(d), ":")
	raw, err := hex.DecodeString(enc)
	if err != nil {
		return nil
	}
	return raw
}

// nix32Alphabet is the alphabet of Nix's base-32 (libutil/hash.cc): digits
// and letters without e, o, u and t.
const nix32Alphabet = "0123456789abcdfghijklmnpqrsvwxyz"

// nix32Len is the length of a SHA-256 in Nix base-32: ceil(256/5).
const nix32Len = 52

// encodeNix32 writes the bits of raw in groups of five, from the last group
// to the first, as Nix does.
func encodeNix32(raw []byte) string {
	if len(raw) == 0 {
		return ""
	}
	var b strings.Builder
	for n := (len(raw)*8 - 1) / 5; n >= 0; n-- {
		bit := n * 5
		i, shift := bit/8, bit%8
		c := uint16(raw[i]) >> shift
		if i+1 < len(raw) {
			c |= uint16(raw[i+1]) << (8 - shift)
		}
		b.WriteByte(nix32Alphabet[c&0x1f])
	}
	return b.String()
}

func decodeNix32(s string) ([]byte, error) {
	raw := make([]byte, sha256Size)
	for n := range len(s) {
		v := strings.IndexByte(nix32Alphabet, s[len(s)-1-n])
		if v < 0 {
			return nil, fmt.Errorf("character %q is not of Nix base-32", s[len(s)-1-n])
		}
		bit := n * 5
		i, shift := bit/8, bit%8
		raw[i] |= byte(v << shift)
		if carry := byte(v >> (8 - shift)); carry != 0 {
			if i+1 >= len(raw) {
				return nil, errors.New("bits beyond 256 are set")
			}
			raw[i+1] |= carry
		}
	}
	if !bytes.Equal([]byte(encodeNix32(raw)), []byte(s)) {
		return nil, errors.New("not in canonical form")
	}
	return raw, nil
}
