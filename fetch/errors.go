package fetch

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
)

// LayoutError says that an index is not what this program can read.
type LayoutError struct {
	URL    string
	Reason string
}

func (e *LayoutError) Error() string {
	if strings.HasPrefix(e.URL, "file:") {
		return fmt.Sprintf("no list of tarballs at %s: %s (is the mirror mounted, and this its directory?)", e.URL, e.Reason)
	}
	return fmt.Sprintf("the layout of the page changed at %s: %s (a newer rocm-nightly may know it; check the URL in a browser)", e.URL, e.Reason)
}

// StatusError is an HTTP status that is no answer.
type StatusError struct {
	URL        string
	Code       int
	RetryAfter time.Duration // what the server asked for; 0 if nothing
}

func (e *StatusError) Error() string {
	switch e.Code {
	case http.StatusForbidden, http.StatusNotFound, http.StatusGone:
		// AMD's hosts answer 403 for what does not exist, some of them 404.
		return fmt.Sprintf("%s is absent or moved (HTTP %d)", e.URL, e.Code)
	}
	if e.Code == http.StatusUnauthorized {
		return fmt.Sprintf("%s asks for credentials, or refuses those that it got (HTTP %d); headers_file of its index can hold them", e.URL, e.Code)
	}
	s := fmt.Sprintf("%s answered HTTP %d %s", e.URL, e.Code, http.StatusText(e.Code))
	if e.RetryAfter > 0 {
		s += fmt.Sprintf(" and asks to wait %s", e.RetryAfter.Round(time.Second))
	}
	return s
}

// Gone reports whether the status says that there is no such page or file.
func (e *StatusError) Gone() bool {
	return e.Code == http.StatusForbidden || e.Code == http.StatusNotFound || e.Code == http.StatusGone
}

// IsGone reports whether an error says that there is no such page or file,
// on a server (StatusError.Gone) or in a directory.
func IsGone(err error) bool {
	status, ok := errors.AsType[*StatusError](err)
	return ok && status.Gone() || errors.Is(err, fs.ErrNotExist)
}

func (e *StatusError) transient() bool {
	return e.Code >= 500 && e.Code != http.StatusNotImplemented ||
		e.Code == http.StatusTooManyRequests || e.Code == http.StatusRequestTimeout
}

// ChangedError says that the object behind a URL was replaced.
type ChangedError struct {
	URL  string
	What string // what differs: ETag, Last-Modified, size
	Was  string
	Is   string
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s was replaced on the server while it was downloaded (%s was %s, is %s)", e.URL, e.What, e.Was, e.Is)
}

// RangeError says that a server answered something else than the range of
// bytes that was asked for.
type RangeError struct {
	URL  string
	Want string
	Got  string
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("%s: asked for %s, the server sent %s (a proxy in between?)", e.URL, e.Want, e.Got)
}

// EncodingError says that a server, or something before it, re-coded the bytes.
type EncodingError struct {
	URL      string
	Encoding string
}

func (e *EncodingError) Error() string {
	return fmt.Sprintf("%s came with Content-Encoding %s though identity was asked for (a proxy in between?)", e.URL, e.Encoding)
}

// NotArchiveError says that what came in place of a tarball is none.
type NotArchiveError struct {
	URL         string
	ContentType string
	Start       string // the first bytes, made printable
}

func (e *NotArchiveError) Error() string {
	name, _, _ := strings.Cut(e.URL, "?")
	kind := map[string]string{gzipMagic: " gzip", zstdMagic: " zstd", xzMagic: "n xz", "": " tar"}[magic(name)]
	return fmt.Sprintf("%s is not a%s file (%s), it starts with %q", e.URL, kind, orNone(e.ContentType), e.Start)
}

// SizeError says that the size of an object is missing or impossible.
type SizeError struct {
	URL    string
	Reason string
}

func (e *SizeError) Error() string { return fmt.Sprintf("%s: %s", e.URL, e.Reason) }

// IdleError says that a server sent nothing for too long.
type IdleError struct{ After time.Duration }

func (e *IdleError) Error() string { return fmt.Sprintf("the server sent nothing for %s", e.After) }

// Timeout makes an IdleError a timeout in the sense of package net.
func (e *IdleError) Timeout() bool { return true }

// SlowError says that an index, or another small file, was not there in time
// although the server kept sending.
type SlowError struct {
	URL   string
	After time.Duration
}

func (e *SlowError) Error() string {
	return fmt.Sprintf("%s was not read within %s", e.URL, e.After)
}

// Timeout makes a SlowError a timeout in the sense of package net.
func (e *SlowError) Timeout() bool { return true }

// InsecureError says that an URL, or a redirect, is not allowed.
type InsecureError struct {
	URL    string
	Reason string
}

func (e *InsecureError) Error() string { return fmt.Sprintf("refuse %s: %s", e.URL, e.Reason) }

// errAgain marks a failure that a repeated request may mend although its type
// says otherwise.
var errAgain = errors.New("the transfer broke off")

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// redact returns a URL for people: without what may be a secret.
func redact(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(an unreadable URL)"
	}
	return redactURL(u)
}

func redactURL(u *url.URL) string {
	v := *u
	v.User, v.RawQuery, v.Fragment, v.RawFragment, v.ForceQuery = nil, "", "", "", false
	if v.Opaque != "" {
		v.Opaque = "…"
	}
	return v.String()
}

// redactError drops the URL that net/http writes into its errors: a redirect
// to a signed URL would put the signature into a log.
func redactError(err error) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		return ue.Err
	}
	return err
}

// snippetLen is how much of an unexpected answer an error shows, in bytes.
const snippetLen = 100

// printable makes the start of hostile bytes fit for a terminal.
func printable(b []byte) string {
	s := strings.ToValidUTF8(string(b[:min(len(b), snippetLen)]), "?")
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == '\t' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
