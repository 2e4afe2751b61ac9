package lockfile

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"aead.dev/minisign"
)

// Bounds of what is read, in bytes; minisign's own files have under 500, but
// for a comment, which it limits to 8192.
const (
	maxKeyLen       = 4 << 10
	maxSignatureLen = 32 << 10
)

// Lengths of the decoded lines, in bytes: two of the algorithm, eight of the
// key's id, then the key or the signature; the trusted comment's
// signature has no head (https://jedisct1.github.io/minisign/, formats).
const (
	rawKeyLen              = 2 + 8 + 32
	rawSignatureLen        = 2 + 8 + 64
	rawCommentSignatureLen = 64
	rawSecretLen           = 158
)

const (
	untrustedPrefix = "untrusted comment: "
	trustedPrefix   = "trusted comment: "
)

// Key is a minisign public key. The zero Key verifies nothing.
type Key struct {
	public minisign.PublicKey
	valid  bool
}

// ID returns the key's id, as minisign prints it.
func (k Key) ID() string { return formatID(k.public.ID()) }

// String returns the key in the one line that minisign -P takes.
func (k Key) String() string { return k.public.String() }

// ParseKey reads a public key: the line of base64 that begins with RW, or the
// whole text of a .pub file. It never takes a path, and its errors do not
// repeat what was given: that may be a secret key.
func ParseKey(s string) (Key, error) {
	k, err := parseKey(s)
	if err != nil {
		return Key{}, fmt.Errorf("parse minisign key: %w", err)
	}
	return k, nil
}

func parseKey(s string) (Key, error) {
	if len(s) > maxKeyLen {
		return Key{}, fmt.Errorf("%d bytes, more than %d", len(s), maxKeyLen)
	}
	lines := strings.Split(strings.TrimSpace(s), "\n")
	if len(lines) > 1 && strings.HasPrefix(lines[0], "untrusted comment:") {
		lines = lines[1:]
	}
	line := strings.TrimSpace(lines[0])
	if len(lines) != 1 || line == "" {
		return Key{}, errors.New("want one line of base64, or a .pub file as minisign writes it")
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(line)
	switch {
	case err != nil:
		return Key{}, errors.New("it is not base64 (want the key itself, RW…, or the text of a .pub file; not a path)")
	case len(raw) == rawSecretLen:
		return Key{}, errors.New("this is the secret key (want the .pub file; and make a new pair if anybody has seen this one)")
	case len(raw) == rawSignatureLen:
		return Key{}, errors.New("this is a signature, not a key")
	case len(raw) != rawKeyLen:
		return Key{}, fmt.Errorf("it has %d bytes, want %d", len(raw), rawKeyLen)
	}
	k := Key{valid: true}
	if err := k.public.UnmarshalText([]byte(line)); err != nil {
		return Key{}, err
	}
	return k, nil
}

// SignatureError says why a signature does not count.
type SignatureError struct {
	Expected string // id of the key that was to sign
	Found    string // id of the key that did, "" if that cannot be read
	Reason   string
}

func (e *SignatureError) Error() string {
	if e.Found == "" || e.Found == e.Expected {
		return fmt.Sprintf("the signature of key %s does not count: %s", e.Expected, e.Reason)
	}
	return fmt.Sprintf("signed with key %s, not with %s: %s", e.Found, e.Expected, e.Reason)
}

// Verify reports whether signature, the text of a .minisig file, was made by
// key of exactly message, of either kind that minisign makes, and that its
// trusted comment is the signer's. An error is a *SignatureError.
func Verify(key Key, message, signature []byte) error {
	refuse := func(found, format string, args ...any) error {
		return &SignatureError{Expected: key.ID(), Found: found, Reason: fmt.Sprintf(format, args...)}
	}
	if !key.valid {
		return refuse("", "no key was given")
	}
	sig, err := parseSignature(signature)
	if err != nil {
		return refuse("", "%v", err)
	}
	found := formatID(sig.KeyID)
	if sig.KeyID != key.public.ID() {
		return refuse(found, "sign it with the key that is configured, or configure the one that signed")
	}
	// The library reads the same text again: what was looked at is what counts.
	text, err := sig.MarshalText()
	if err != nil {
		return refuse(found, "%v", err)
	}
	if !minisign.Verify(key.public, message, text) {
		return refuse(found, "the file or the trusted comment is not what was signed")
	}
	return nil
}

// parseSignature reads the four lines of a .minisig file, and only these, before
// the library, which is laxer, has a look.
func parseSignature(b []byte) (*minisign.Signature, error) {
	if len(b) > maxSignatureLen {
		return nil, fmt.Errorf("it is %d bytes long, more than %d", len(b), maxSignatureLen)
	}
	text := bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], untrustedPrefix) || !strings.HasPrefix(lines[2], trustedPrefix) {
		return nil, errors.New("it is not a .minisig file, or only a part of one")
	}
	if err := checkLine(lines[1], rawSignatureLen); err != nil {
		return nil, fmt.Errorf("its second line is damaged: %w", err)
	}
	if err := checkLine(lines[3], rawCommentSignatureLen); err != nil {
		return nil, fmt.Errorf("its last line is damaged: %w", err)
	}
	sig := &minisign.Signature{}
	if err := sig.UnmarshalText([]byte(strings.Join(lines, "\n") + "\n")); err != nil {
		return nil, err
	}
	return sig, nil
}

// checkLine refuses what is not the base64 of want bytes.
func checkLine(line string, want int) error {
	raw, err := base64.StdEncoding.Strict().DecodeString(line)
	if err == nil && len(raw) != want {
		err = fmt.Errorf("%d bytes, want %d", len(raw), want)
	}
	return err
}

// formatID writes a key's id as minisign does.
func formatID(id uint64) string { return fmt.Sprintf("%X", id) }
