package release

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"io"

	digest "github.com/opencontainers/go-digest"
)

// Expectation is a digest that bytes must have, and who says so.
type Expectation struct {
	Digest Digest
	Source string // shown in the error: "--digest", "the ledger", "the lock at …"
	Kind   string // Source without a place on this machine or a network: "the lock"; "" if Source has none
}

// Vouch is what may be kept in a prefix of who vouched for it: no place.
func (e Expectation) Vouch() string {
	if e.Kind != "" {
		return e.Kind
	}
	return e.Source
}

// MismatchError says that bytes did not have the digest that was expected.
type MismatchError struct {
	Got  Digest
	Want Expectation
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("digest mismatch: the bytes are %s, but %s says %s", e.Got, e.Want.Source, e.Want.Digest)
}

// VerifiedReader hashes what is read through it. On the last byte it compares
// the digest with every expectation, and returns a *MismatchError in place of
// io.EOF when one disagrees: a consumer that reads to the end cannot miss it.
type VerifiedReader struct {
	r     io.Reader
	h     hash.Hash
	n     int64
	wants []Expectation
	err   error
}

// NewVerifiedReader returns a reader over r that verifies wants at the end.
// With no expectation it only measures.
func NewVerifiedReader(r io.Reader, wants ...Expectation) *VerifiedReader {
	return &VerifiedReader{r: r, h: sha256.New(), wants: wants}
}

// Read implements io.Reader.
func (v *VerifiedReader) Read(p []byte) (int, error) {
	if v.err != nil {
		return 0, v.err
	}
	n, err := v.r.Read(p)
	v.h.Write(p[:n])
	v.n += int64(n)
	if err == io.EOF {
		err = v.verify()
	}
	v.err = err
	return n, err
}

func (v *VerifiedReader) verify() error {
	got := v.Digest()
	for _, w := range v.wants {
		if w.Digest != got {
			return &MismatchError{Got: got, Want: w}
		}
	}
	return io.EOF
}

// Digest returns the digest of the bytes read so far; it is that of the whole
// only after Read has returned io.EOF.
func (v *VerifiedReader) Digest() Digest {
	return digest.NewDigestFromBytes(digest.SHA256, v.h.Sum(nil))
}

// Size returns how many bytes have been read so far.
func (v *VerifiedReader) Size() int64 { return v.n }
