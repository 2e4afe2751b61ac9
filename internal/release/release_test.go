package release

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	digest "github.com/opencontainers/go-digest"
)

func mustVersion(t *testing.T, s string) Version {
	t.Helper()
	v, err := ParseVersion(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestCompareOrdersDevByTime(t *testing.T) {
	older := Release{Version: mustVersion(t, "10.2.0.dev0+ffffffffffffffffffffffffffffffffffffffff"), MTime: time.Unix(1, 0)}
	newer := Release{Version: mustVersion(t, "10.2.0.dev0+0000000000000000000000000000000000000000"), MTime: time.Unix(2, 0)}
	if Compare(older, newer) >= 0 || Compare(newer, older) <= 0 {
		t.Error("development builds are not ordered by time")
	}
}

func TestDigestForms(t *testing.T) {
	// The four spellings of the digest of the empty string, as sha256sum and
	// nix-hash print them.
	const (
		hexForm = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
		sri     = "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
		nix32   = "0mdqa9w1p6cmli6976v4wi0sw9r4p5prkj7lzfd1877wk11c9c73"
	)
	want := digest.Digest("sha256:" + hexForm)
	for _, in := range []string{hexForm, strings.ToUpper(hexForm), "sha256:" + hexForm, sri, nix32, "sha256:" + nix32, " " + sri + "\n"} {
		got, err := ParseDigest(in)
		if err != nil || got != want {
			t.Errorf("%q: %s, %v", in, got, err)
		}
	}
	if SRI(want) != sri || Nix32(want) != nix32 {
		t.Errorf("SRI %s, Nix32 %s", SRI(want), Nix32(want))
	}
	for _, in := range []string{"", "sha256:", "sha512-" + sri[7:], "md5:" + hexForm, hexForm[1:], sri[:len(sri)-1], nix32[:51] + "e", "z" + nix32[1:], "sha256-" + hexForm} {
		if d, err := ParseDigest(in); !errors.Is(err, ErrDigest) {
			t.Errorf("%q parsed as %s, error %v", in, d, err)
		}
	}
	if SRI("nonsense") != "sha256-" || Nix32("") != "" {
		t.Error("a digest that is none has bytes")
	}
}

func TestVerifiedReaderTurnsEOFIntoMismatch(t *testing.T) {
	body := []byte("a tarball")
	sum := sha256.Sum256(body)
	right := digest.NewDigestFromBytes(digest.SHA256, sum[:])
	v := NewVerifiedReader(bytes.NewReader(body), Expectation{Digest: right, Source: "the test"})
	if got, err := io.ReadAll(v); err != nil || !bytes.Equal(got, body) || v.Size() != int64(len(body)) || v.Digest() != right {
		t.Fatalf("%q, %v", got, err)
	}
	wrong := NewVerifiedReader(bytes.NewReader(body), Expectation{Digest: right, Source: "a"}, Expectation{Digest: "sha256:00", Source: "the ledger"})
	_, err := io.ReadAll(wrong)
	var mismatch *MismatchError
	if !errors.As(err, &mismatch) || mismatch.Want.Source != "the ledger" {
		t.Fatalf("error %v", err)
	}
	if _, err := wrong.Read(make([]byte, 1)); !errors.As(err, &mismatch) {
		t.Error("the error does not last")
	}
}

func FuzzParseDigest(f *testing.F) {
	f.Add("sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=")
	f.Add("0mdqa9w1p6cmli6976v4wi0sw9r4p5prkj7lzfd1877wk11c9c73")
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDigest(s)
		if err != nil {
			return
		}
		for _, form := range []string{d.String(), SRI(d), Nix32(d), d.Encoded()} {
			if again, err := ParseDigest(form); err != nil || again != d {
				t.Fatalf("%q: form %q reads back as %s, %v", s, form, again, err)
			}
		}
	})
}
