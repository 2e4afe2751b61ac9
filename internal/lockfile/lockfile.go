package lockfile

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// Name is the usual name of the file.
const Name = "rocm-nightly.lock"

// SignatureSuffix is what minisign appends to a file's name for its signature's.
const SignatureSuffix = ".minisig"

// Schema is the version of the format that this package reads and writes.
const Schema = 1

// Bounds of a file.
const (
	MaxLen  = 4 << 20 // bytes
	MaxPins = 10_000
)

// ErrNewer is matched by errors about a file that a newer program wrote.
var ErrNewer = errors.New("written by a newer rocm-nightly (upgrade this one)")

// File is a lock file. What Parse returns is sorted by channel, then target.
type File struct {
	Schema int
	Pins   []Pin
}

// Pin is what one channel has for one target.
type Pin struct {
	Channel string // nightly, dev, …
	Target  string // gfx1151: as it is asked for
	Family  string // gfx110X-all: as the tarball is called that serves Target
	Version string // 10.2.0a20260930
	Name    string // file name of the tarball
	URL     string // https, http or file; ends in Name
	Digest  release.Digest
	Size    int64     // bytes
	MTime   time.Time // UTC, as the index said; zero if it did not
}

// FromPin returns the pin for target of what was observed. A password in the
// URL, or a fragment, stays out of it: a lock is there to be published.
func FromPin(target string, p release.Pin) Pin {
	at := p.URL
	if u, err := url.Parse(at); err == nil && (u.User != nil || u.Fragment != "") {
		u.User, u.Fragment, u.RawFragment = nil, "", ""
		at = u.String()
	}
	return Pin{
		Channel: p.Channel, Target: target, Family: p.Family, Version: p.Version.String(),
		Name: p.Name, URL: at, Digest: p.Digest, Size: p.Size, MTime: p.MTime,
	}
}

// Pin returns what p names, for those who install it. The ETag is not known:
// it is the host's, not the tarball's.
func (p Pin) Pin() (release.Pin, error) {
	n, err := release.ParseName(p.Name)
	if err != nil {
		return release.Pin{}, err
	}
	return release.Pin{Digest: p.Digest, Size: p.Size, Release: release.Release{
		Channel: p.Channel, Name: p.Name, Family: n.Family, Version: n.Version, Platform: n.Platform,
		Variant: n.Variant, Tests: n.Tests, Archive: n.Archive, URL: p.URL, MTime: p.MTime, Size: p.Size,
	}}, nil
}

// Find returns the pin of a channel for a target, exactly as both are written.
func (f *File) Find(channel, target string) (Pin, bool) {
	if f != nil {
		for _, p := range f.Pins {
			if p.Channel == channel && p.Target == target {
				return p, true
			}
		}
	}
	return Pin{}, false
}

// FindName returns the pins of the tarball called name: one tarball may serve
// several targets, and several channels may use one name for different bytes.
func (f *File) FindName(name string) []Pin {
	var pins []Pin
	if f != nil {
		for _, p := range f.Pins {
			if p.Name == name {
				pins = append(pins, p)
			}
		}
	}
	return pins
}

// Targets returns what is pinned, as CHANNEL-TARGET, in the order of the file.
func (f *File) Targets() []string {
	var names []string
	if f != nil {
		for _, p := range f.Pins {
			names = append(names, p.label())
		}
	}
	return names
}

// Merge returns old with the pins of newer in place of those of the same
// channel and target, and the others of both as they are: what one machine
// writes keeps what other machines need. Neither argument is changed; each may
// be nil.
func Merge(old, newer *File) *File {
	merged := &File{Schema: Schema}
	if newer != nil {
		merged.Pins = slices.Clone(newer.Pins)
	}
	if old != nil {
		for _, p := range old.Pins {
			if _, replaced := newer.Find(p.Channel, p.Target); !replaced {
				merged.Pins = append(merged.Pins, p)
			}
		}
	}
	slices.SortStableFunc(merged.Pins, compare)
	return merged
}

func compare(a, b Pin) int {
	return cmp.Or(cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Target, b.Target))
}

// label names p in messages.
func (p Pin) label() string { return fmt.Sprintf("%.60s-%.60s", p.Channel, p.Target) }
