package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

// keyPrefix begins a secret of Standard Webhooks that both sides share.
const keyPrefix = "whsec_"

// Key signs webhooks as the Standard Webhooks specification says (version 1.0.0,
// https://github.com/standard-webhooks/standard-webhooks, "Signature scheme"): the
// HMAC-SHA256 (RFC 2104) of ID.TIMESTAMP.BODY, where TIMESTAMP is in seconds since
// 1970, in base64 after "v1,".
type Key struct{ secret secret.Secret }

// ParseKey reads a key: whsec_ and the base64 of 24 to 64 bytes. Its error does not
// repeat it.
func ParseKey(s secret.Secret) (Key, error) {
	text, ok := strings.CutPrefix(s.Reveal(), keyPrefix)
	raw, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(raw) < 24 || len(raw) > 64 {
		return Key{}, errors.New("the secret of a webhook is whsec_ and 24 to 64 bytes in base64 (make one: echo whsec_$(openssl rand -base64 32))")
	}
	return Key{secret.New(string(raw))}, nil
}

// Sign is the value of the header webhook-signature.
func (k Key) Sign(id string, at time.Time, body []byte) string {
	return "v1," + base64.StdEncoding.EncodeToString(k.sum(id, strconv.FormatInt(at.Unix(), 10), body))
}

func (k Key) sum(id, at string, body []byte) []byte {
	h := hmac.New(sha256.New, []byte(k.secret.Reveal()))
	fmt.Fprintf(h, "%s.%s.", id, at)
	h.Write(body)
	return h.Sum(nil)
}

// Verify is for receivers: it checks the headers of a webhook (webhook-id,
// webhook-timestamp, webhook-signature, which may list several) against its body, and
// that it is not older or newer than tolerance at now.
func (k Key) Verify(id, timestamp, signatures string, body []byte, now time.Time, tolerance time.Duration) error {
	at, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return errors.New("verify a webhook: its timestamp is no number")
	}
	if age := now.Sub(time.Unix(at, 0)).Abs(); age > tolerance {
		return fmt.Errorf("verify a webhook: it was sent %s from now, which is more than %s", age, tolerance)
	}
	want := k.sum(id, timestamp, body)
	for one := range strings.FieldsSeq(signatures) {
		text, ok := strings.CutPrefix(one, "v1,")
		have, err := base64.StdEncoding.DecodeString(text)
		if ok && err == nil && hmac.Equal(have, want) {
			return nil
		}
	}
	return errors.New("verify a webhook: none of its signatures is of this key")
}
