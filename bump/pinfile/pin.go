package pinfile

import (
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// Pin is what templates see: one verified tarball, for one target.
type Pin struct {
	Version string // AMD's version, e.g. 10.2.0a20260930
	URL     string // where the verified bytes came from
	SRI     string // sha256-<base64>, the form of Nix's hash attributes
	Hex     string // 64 lower-case hex digits
	Nix32   string // 52 digits of Nix base-32, as nix-prefetch-url prints
	Size    int64  // of the tarball, in bytes
	Date    string // of publication, YYYY-MM-DD in UTC; "" if unknown
	Family  string // the slug in the file name, e.g. gfx110X-all
	Target  string // the target that was asked for, e.g. gfx1103
	Channel string // e.g. nightly
	Name    string // the file name of the tarball
}

// FromPin returns p as templates see it, for target.
func FromPin(p release.Pin, target string) Pin {
	_, hex, _ := strings.Cut(string(p.Digest), ":")
	out := Pin{
		Version: p.Version.String(),
		URL:     p.URL,
		SRI:     release.SRI(p.Digest),
		Hex:     hex,
		Nix32:   release.Nix32(p.Digest),
		Size:    p.Size,
		Family:  p.Family,
		Target:  target,
		Channel: p.Channel,
		Name:    p.Name,
	}
	if !p.MTime.IsZero() {
		out.Date = p.MTime.UTC().Format(time.DateOnly)
	}
	return out
}
