package web

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
)

// What is shown of one text, and of one that may have lines.
const (
	maxText  = 300
	maxLines = 12
	maxURL   = 2000
)

// text is s as one short line that holds nothing but text.
func text(s string) string { return plain.Cut(strings.TrimSpace(s), maxText) }

// word is s where one word is meant, which is not broken.
func word(s string) string { return plain.Cut(strings.TrimSpace(s), 24) }

// lines is s, an error, as its first lines.
func lines(s string) []string {
	var all []string
	for line := range strings.Lines(s) {
		if len(all) == maxLines {
			return append(all, "…")
		}
		if line = text(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// link is s if it is a web address, and "" if it is anything else: what a forge or
// an index says is not to be run by a click.
func link(s string) string {
	if len(s) > maxURL || !plain.Is(s) {
		return ""
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
		return ""
	}
	return u.String()
}

// place is an address as text, without who is let in there.
func place(s string) string {
	if at := strings.LastIndexByte(s, '@'); at >= 0 {
		if scheme, _, ok := strings.Cut(s, "://"); ok {
			s = scheme + "://" + s[at+1:]
		}
	}
	return text(s)
}

// size is n bytes for people, in the units of IEC 80000-13; -1 was not measured.
func size(n int64) string {
	if n < 0 {
		return "–"
	}
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n), ""
	for _, unit = range []string{"KiB", "MiB", "GiB", "TiB", "PiB"} {
		if v /= 1024; v < 1023.95 {
			break
		}
	}
	return fmt.Sprintf("%.1f %s", v, unit)
}

// seconds is a duration for people, to two units.
func seconds(s float64) string {
	switch {
	case s < 0 || s != s:
		return "–"
	case s < 9.95:
		return fmt.Sprintf("%.1f s", s)
	case s > 1e9:
		return "years"
	}
	d := time.Duration(s * float64(time.Second)).Round(time.Second)
	switch h, m, sec := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60; {
	case d < time.Minute:
		return fmt.Sprintf("%d s", sec)
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", m, sec)
	case h < 48:
		return fmt.Sprintf("%d h %02d min", h, m)
	default:
		return fmt.Sprintf("%d d %d h", h/24, h%24)
	}
}

// relative says how far t is from now. live.js says the same.
func relative(t, now time.Time) string {
	d := now.Sub(t)
	ago, in := " ago", ""
	if d < 0 {
		d, ago, in = -d, "", "in "
	}
	switch {
	case d < 45*time.Second && in == "":
		return "just now"
	case d < 45*time.Second:
		return "in a moment"
	case d < time.Hour:
		return fmt.Sprintf("%s%d min%s", in, max(1, int(d.Minutes()+.5)), ago)
	case d < 48*time.Hour:
		return fmt.Sprintf("%s%d h%s", in, int(d.Hours()+.5), ago)
	default:
		return fmt.Sprintf("%s%d d%s", in, int(d.Hours()/24+.5), ago)
	}
}

// when is a moment as the page shows it.
type when struct {
	Machine  string // RFC 3339, UTC
	Absolute string
	Relative string
}

// at is t as the page shows it at now; nil for none.
func at(t, now time.Time) *when {
	if t.IsZero() || t.Year() > 9999 || t.Year() < 0 {
		return nil
	}
	u := t.UTC()
	return &when{u.Format(time.RFC3339), u.Format("2006-01-02 15:04 UTC"), relative(t, now)}
}

// plural is n things.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
