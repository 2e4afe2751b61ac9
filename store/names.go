package store

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// ErrName is matched by errors about names that the store does not put on
// disk.
var ErrName = errors.New("not a name the store can use")

// maxName bounds a name, in bytes, so that every name derived from it stays
// under NAME_MAX (255).
const maxName = 200

// nameRE is every name on disk: a channel, a target, a version, a run. Names
// come from a remote index and from flags; none may leave its directory, hide,
// or look like an option.
var nameRE = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._+~-]*$`)

// revisionRE ends the name of a second generation of one version.
var revisionRE = regexp.MustCompile(`-r([0-9]{1,9})$`)

// checkName refuses what nameRE does not match; what says what s is.
func checkName(what, s string) error {
	if len(s) > maxName || !nameRE.MatchString(s) || strings.Contains(s, "..") {
		return fmt.Errorf("%s %.100q: %w (letters, digits and . _ + ~ - only, at most %d, starting with a letter or digit)", what, s, ErrName, maxName)
	}
	return nil
}

// checkChannel is checkName for a channel. It holds no dash: a slot's name is
// CHANNEL-TARGET, and targets do hold dashes.
func checkChannel(s string) error {
	if err := checkName("channel", s); err != nil {
		return err
	}
	if strings.Contains(s, "-") {
		return fmt.Errorf("channel %q: %w (a channel's name holds no dash)", s, ErrName)
	}
	return nil
}

// checkVersion is checkName for a version that becomes a generation's name.
func checkVersion(s string) error {
	if err := checkName("version", s); err != nil {
		return err
	}
	if revisionRE.MatchString(s) {
		return fmt.Errorf("version %q: %w (-rN at the end is the store's own)", s, ErrName)
	}
	return nil
}

// versionOf splits a generation's name into its version and its revision,
// which is 1 for the first of a version.
func versionOf(name string) (version string, revision int) {
	m := revisionRE.FindStringSubmatchIndex(name)
	if m == nil {
		return name, 1
	}
	n, err := strconv.Atoi(name[m[2]:m[3]])
	if err != nil {
		return name, 1
	}
	return name[:m[0]], n
}

// revisionName is the inverse of versionOf.
func revisionName(version string, revision int) string {
	if revision <= 1 {
		return version
	}
	return fmt.Sprintf("%s-r%d", version, revision)
}

// spoolName makes one path element of any string. A name of AMD's grammar is
// itself; every other byte becomes %XX, so that two names never meet.
func spoolName(s string) string {
	if checkName("name", s) == nil {
		return s
	}
	var b strings.Builder
	b.WriteByte('%') // marks the escaped form, and keeps it from being empty
	for i := range len(s) {
		c := s[i]
		if c == '.' || !nameRE.MatchString("x"+string(rune(c))) || c >= 0x80 {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	out := b.String()
	if len(out) > maxName {
		out = fmt.Sprintf("%s%%%x", out[:100], sha256.Sum256([]byte(s)))
	}
	return out
}
