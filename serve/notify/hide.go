package notify

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

// addressLike is whatever looks like an address in somebody's error: the services
// put their tokens into theirs.
var addressLike = regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://[^\s"'<>]+`)

// hider takes the secrets of a sink out of texts.
type hider struct{ secrets []secret.Secret }

// newHider knows the address of a sink, and all that a service may make of its parts:
// tokens are cut and put together again in other ways. Where the host is the server's
// name, and no part of a token, it stays legible.
func newHider(address, key string, hostIsSecret bool) hider {
	var parts []string
	add := func(text string) {
		parts = append(parts, text)
		parts = append(parts, strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })...)
	}
	parts = append(parts, address)
	if key != "" {
		add(key)
	}
	rest := address
	if u, err := url.Parse(address); err == nil {
		if u.User != nil {
			add(u.User.Username())
			pass, _ := u.User.Password()
			add(pass)
			add(u.User.Username() + ":" + pass)
		}
		add(u.Path)
		add(u.RawPath)
		add(u.Fragment)
		for _, values := range u.Query() {
			for _, v := range values {
				add(v)
			}
		}
		for piece := range strings.SplitSeq(u.Path, "/") {
			add(piece)
		}
		rest = ""
		if hostIsSecret {
			rest = u.Host
		}
	}
	add(rest)
	return hider{hidden(parts)}
}

// hidden makes secrets of those parts that can be one.
func hidden(parts []string) []secret.Secret {
	slices.Sort(parts)
	var all []secret.Secret
	for _, p := range slices.Compact(parts) {
		if p = strings.Trim(p, "/"); len(p) >= 4 {
			all = append(all, secret.New(p))
		}
	}
	return all
}

// text is a text without them.
func (h hider) text(s string) string {
	return secret.Scrub(addressLike.ReplaceAllString(s, "[address]"), h.secrets...)
}

// error is an error whose text has none of them; what it was made of cannot be had
// from it.
func (h hider) error(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(plain.Cut(h.text(withoutAddress(err).Error()), 400))
}
