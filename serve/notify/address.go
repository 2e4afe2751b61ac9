package notify

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// CheckAddress says what is wrong with the address of a sink, which it never repeats.
// insecure takes a connection to another machine that others can read.
func CheckAddress(kind, address string, insecure bool) error {
	switch kind {
	case Webhook:
		return checkWebhook(address, insecure)
	case Shoutrrr:
		_, _, err := parseService(address, insecure)
		return err
	}
	return fmt.Errorf("%.40q is no kind of sink: there is webhook and shoutrrr", kind)
}

func checkWebhook(address string, insecure bool) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Hostname() == "" {
		return errors.New("the address of a webhook is of the form https://host/path")
	}
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return errors.New("the address of a webhook begins with https:// (for slack://, smtp:// and their like, kind is shoutrrr)")
	case u.Scheme == "http" && !insecure && !loopback(u.Hostname()):
		return errors.New("http:// to another machine can be read and changed on the way: use https://, or insecure: true")
	}
	return nil
}

// HasSecret reports whether an address holds what should be in a file: a name or a
// password, or the token that is part of the address of most services. Only those of
// webhooks, and of topics and mail that nobody signs in to, are none.
func HasSecret(kind, address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.User != nil {
		return true
	}
	if kind == Webhook {
		return u.RawQuery != ""
	}
	sv, ok := serviceTable()[u.Scheme]
	return !ok || !sv.open
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// yes is how shoutrrr reads a switch.
func yes(value string) bool {
	switch strings.ToLower(value) {
	case "true", "1", "yes", "y", "":
		return true
	}
	return false
}
