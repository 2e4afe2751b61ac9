package lockfile

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// Bounds of the strings of a pin, in bytes.
const (
	maxWord = 200
	maxURL  = 4 << 10
)

// wordRE is a target; a channel holds no dash, for both are joined by one.
var (
	wordRE    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._+~-]*$`)
	channelRE = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._+~]*$`)
)

// check returns p with its digest and time in their usual form, or what is
// wrong with it: every part of a pin must agree with the tarball's name.
func (p Pin) check() (Pin, error) {
	if err := p.checkWords(); err != nil {
		return p, err
	}
	n, err := release.ParseName(p.Name)
	switch {
	case err != nil:
		return p, err
	case n.Family != p.Family:
		return p, fmt.Errorf("the family is %.60q, but the tarball is %s", p.Family, p.Name)
	case n.Version.String() != p.Version:
		return p, fmt.Errorf("the version is %.60q, but the tarball is %s", p.Version, p.Name)
	case p.Size <= 0:
		return p, fmt.Errorf("the size is %d", p.Size)
	}
	if err := checkURL(p.URL, p.Name); err != nil {
		return p, err
	}
	if p.Digest, err = release.ParseDigest(string(p.Digest)); err != nil {
		return p, err
	}
	if !p.MTime.IsZero() {
		if p.MTime = p.MTime.UTC().Round(0); p.MTime.Year() < 1 || p.MTime.Year() > 9999 {
			return p, fmt.Errorf("the mtime is in the year %d", p.MTime.Year())
		}
	}
	rel, err := p.Pin()
	if err != nil {
		return p, err
	}
	if why := rel.Unusable(); why != "" {
		return p, fmt.Errorf("%s %s", p.Name, why)
	}
	return p, nil
}

// checkWords checks the two that become a slot's name on disk.
func (p Pin) checkWords() error {
	if len(p.Channel) > maxWord || !channelRE.MatchString(p.Channel) || strings.Contains(p.Channel, "..") {
		return fmt.Errorf("the channel is %.60q", p.Channel)
	}
	if len(p.Target) > maxWord || !wordRE.MatchString(p.Target) || strings.Contains(p.Target, "..") {
		return fmt.Errorf("the target is %.60q", p.Target)
	}
	return nil
}

// checkURL refuses a URL that is not the absolute one of name. Its errors do
// not repeat it: it may hold a password.
func checkURL(s, name string) error {
	if len(s) > maxURL {
		return fmt.Errorf("the url is %d bytes long, more than %d", len(s), maxURL)
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return errors.New("the url has spaces or letters in it that must be escaped as %XX")
	}
	u, err := url.Parse(s)
	if err != nil {
		return errors.New("the url cannot be parsed")
	}
	switch u.Scheme {
	case "https", "http":
		if u.Hostname() == "" {
			return errors.New("the url has no host")
		}
	case "file":
		if u.Host != "" && u.Host != "localhost" {
			return fmt.Errorf("the url is a file of the host %.60q (write file:///path)", u.Host)
		}
	default:
		return fmt.Errorf("the url begins with %.20q (want https, http or file)", u.Scheme+":")
	}
	if u.User != nil {
		return errors.New("the url has a user or a password in it (leave it out: a lock is there to be published)")
	}
	if strings.Contains(s, "#") {
		return errors.New("the url has a fragment")
	}
	elems := strings.Split(u.EscapedPath(), "/")
	last, err := url.PathUnescape(elems[len(elems)-1])
	if err != nil || last != name || len(elems) < 2 {
		return fmt.Errorf("the url ends in %.200q, but the tarball is %s", last, name)
	}
	if slices.Contains(strings.Split(u.Path, "/"), "..") {
		return errors.New("the url has .. in it")
	}
	return nil
}
