package bump

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/bump/pinfile"
	"github.com/rocm-nightly/rocm-nightly/internal/lockfile"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

const (
	lockFormat = "lock"     // of a rocm-nightly.lock
	lockKind   = "the lock" // the kind of expectation that a digest of it is
)

// pinsOf are the pins of a plan, by target.
func (p *plan) pinsOf() map[string]Pin {
	pins := map[string]Pin{}
	for _, w := range p.wants {
		for _, e := range w.from {
			pins[e.pin.Target] = e.pin
		}
	}
	return pins
}

// older says that a change would put an older version in the place of one that
// stands there; "" if none does. The locks among the files count for all pins, also
// for those that are not edited in them. A lock that knows other bytes under a
// pin's name is a *release.MismatchError.
func (m *maker) older(p *plan) (string, error) {
	pins := p.pinsOf()
	why := ""
	for _, e := range m.c.edits {
		pin := pins[e.Target]
		if why == "" && (e.To == pin.Version || baseOf(e.To) == nameOf(pin)) {
			why = olderThan(e.Path, e.From, pin)
		}
	}
	for _, w := range p.wants {
		if w.format() != lockFormat {
			continue
		}
		lock, err := lockfile.Parse(m.c.before[w.path].Text)
		if err != nil {
			return "", fmt.Errorf("read %s: %w", w.path, err)
		}
		for _, target := range slices.Sorted(maps.Keys(pins)) {
			pin := pins[target]
			if err := sameBytes(w.path, lock, pin); err != nil {
				return "", err
			}
			if stands, ok := lock.Find(pin.Channel, target); ok && why == "" {
				why = olderThan(w.path, stands.Version, pin)
			}
		}
	}
	return why, nil
}

func (w *want) format() string {
	if w.o.Format != "" {
		return w.o.Format
	}
	return pinfile.FormatOf(w.path)
}

// noHex is the digest of a rehearsal, which only the download will tell.
var noHex = strings.Repeat("0", 64)

// sameBytes holds a pin against what a lock knows under its name.
func sameBytes(path string, lock *lockfile.File, pin Pin) error {
	if pin.Hex == noHex {
		return nil
	}
	for _, stands := range lock.FindName(pin.Name) {
		got := release.Digest("sha256:" + pin.Hex)
		if stands.Channel == pin.Channel && stands.Digest != got {
			want := release.Expectation{Digest: stands.Digest, Source: path + " of the repository", Kind: lockKind}
			return fmt.Errorf("propose %s: %w", pin.Name, &release.MismatchError{Got: got, Want: want})
		}
	}
	return nil
}

// olderThan says that a pin is older than what stands in a file, a version or the
// address of a tarball; "" if it is not, or if nobody can tell.
func olderThan(path, stands string, pin Pin) string {
	was, err := release.ParseVersion(stands)
	if err != nil {
		n, err := release.ParseName(baseOf(stands))
		if err != nil {
			return ""
		}
		was = n.Version
	}
	is, err := release.ParseVersion(pin.Version)
	if err != nil || was.Compare(is) <= 0 {
		return ""
	}
	return fmt.Sprintf("%s has %s for %s, and %s is older", path, was, pin.Target, is)
}
