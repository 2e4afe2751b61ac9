package secret

import "log/slog"

// Secret is a token or a key. The text is behind a function, since printing a
// struct with an unexported Secret in it calls no method.
type Secret struct{ reveal func() string }

// New returns a Secret of text.
func New(text string) Secret { return Secret{func() string { return text }} }

// Reveal returns the text.
func (s Secret) Reveal() string {
	if s.reveal == nil {
		return ""
	}
	return s.reveal()
}

// Empty reports whether there is no text.
func (s Secret) Empty() bool { return s.Reveal() == "" }

const redacted = "[redacted]"

// String returns a word in place of the text.
func (s Secret) String() string { return redacted }

// GoString returns a word in place of the text.
func (s Secret) GoString() string { return redacted }

// MarshalText returns a word in place of the text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue returns a word in place of the text.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// Source says where a secret is. At most one of its fields is set.
type Source struct {
	Env        string // name of an environment variable
	File       string // whole path
	Credential string // name below $CREDENTIALS_DIRECTORY, as systemd's LoadCredential gives it
}

// Empty reports whether no place is named.
func (s Source) Empty() bool { return s == Source{} }
