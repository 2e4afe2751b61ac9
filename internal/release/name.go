package release

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The variants that AMD's names tell. Two of them in one name are joined by a
// dash, as in "asan-tests".
const (
	VariantTests = "tests" // what was split off a ROCm for its tests
	VariantASan  = "asan"  // built with AddressSanitizer
	VariantTSan  = "tsan"  // built with ThreadSanitizer
	VariantLite  = "lite"  // the smaller one of the announced names
)

// The archive formats that AMD publishes, or has announced.
const (
	ArchiveTarGz  = "tar.gz"
	ArchiveTarZst = "tar.zst"
	ArchiveTarXz  = "tar.xz"
	ArchiveZip    = "zip"
)

// multiarch is the family that holds every target.
const multiarch = "multiarch"

// Name is what a tarball's file name says. The zero values of what is not
// set here are those of the names that AMD uses now.
type Name struct {
	Platform string // linux or windows
	Family   string // gfx1151, gfx110X-all, multiarch
	Variant  string // "" is plain; one of the Variant constants, or several of them
	Tests    bool   // Variant holds "tests"
	Version  Version
	Archive  string // one of the Archive constants; "" is tar.gz

	sdk      bool // of the announced grammar, rocm-sdk-…
	implied  bool // sdk: no family is written; it is multiarch
	osFirst  bool // sdk: the platform stands before the version
	lateLite bool // sdk: "lite" stands behind the family
}

// ErrName is what ParseName's errors match.
var ErrName = errors.New("not a name of AMD's grammar")

// maxNameLen bounds what ParseName reads; it is the limit of common file systems.
const maxNameLen = 255

// ParseName reads a tarball's file name, by one of two grammars, both of them
// anchored at both ends:
//
//	therock-dist-OS-FAMILY[-VARIANT]-VERSION.tar.gz
//	rocm-sdk[-lite][-FAMILY][-VARIANT]-VERSION-OS.EXT
//
// The second one is announced, not in use (TheRock's RFC0013); lite may stand
// behind FAMILY and OS before VERSION, as neither is settled. What is not of
// a grammar, AMD's own ADHOCBUILD leftovers included, is an error that
// matches ErrName.
func ParseName(s string) (Name, error) {
	if len(s) > maxNameLen {
		return Name{}, fmt.Errorf("parse name %.40q…: %w (%d bytes)", s, ErrName, len(s))
	}
	var n Name
	var err error
	if rest, dist := strings.CutPrefix(s, "therock-dist-"); dist {
		n, err = parseDist(rest)
	} else if rest, sdk := strings.CutPrefix(s, "rocm-sdk-"); sdk {
		n, err = parseSDK(rest)
	} else {
		err = ErrName
	}
	if err != nil {
		return Name{}, fmt.Errorf("parse name %q: %w", s, err)
	}
	return n, nil
}

// parseDist reads OS-FAMILY[-VARIANT]-VERSION.tar.gz. A version has no dash,
// so it is what stands behind the last one: gfx1151-tests-10.2.0 is never
// taken for a version "tests-10.2.0".
func parseDist(s string) (Name, error) {
	stem, ok := strings.CutSuffix(s, "."+ArchiveTarGz)
	words := strings.Split(stem, "-")
	if !ok || len(words) < 3 || !isPlatform(words[0]) {
		return Name{}, ErrName
	}
	last := len(words) - 1
	n := Name{Platform: words[0], Archive: ArchiveTarGz}
	middle := words[1:last]
	if n.Family, middle = cutFamily(middle); n.Family == "" || !n.setVariant(middle) {
		return Name{}, ErrName
	}
	return n.withVersion(words[last])
}

// parseSDK reads [lite-][FAMILY-][lite-][VARIANT-]VERSION-OS.EXT, or the same
// with OS before VERSION.
func parseSDK(s string) (Name, error) {
	n := Name{sdk: true}
	for _, ext := range [...]string{ArchiveTarGz, ArchiveTarZst, ArchiveTarXz, ArchiveZip} {
		if stem, ok := strings.CutSuffix(s, "."+ext); ok {
			s, n.Archive = stem, ext
			break
		}
	}
	words := strings.Split(s, "-")
	if n.Archive == "" || len(words) < 2 {
		return Name{}, ErrName
	}
	last := len(words) - 1
	version := words[last-1]
	if n.Platform = words[last]; !isPlatform(n.Platform) {
		n.osFirst, n.Platform, version = true, words[last-1], words[last]
	}
	if !isPlatform(n.Platform) || !n.setSDKWords(words[:last-1]) {
		return Name{}, ErrName
	}
	return n.withVersion(version)
}

// setSDKWords takes [lite] [FAMILY] [lite] [VARIANT].
func (n *Name) setSDKWords(words []string) bool {
	words, early := cutWord(words, VariantLite)
	if n.Family, words = cutFamily(words); n.Family == "" {
		n.Family, n.implied = multiarch, true
	}
	if !early && !n.implied {
		words, n.lateLite = cutWord(words, VariantLite)
	}
	if !n.setVariant(words) {
		return false
	}
	if early || n.lateLite {
		n.Variant = strings.TrimSuffix(VariantLite+"-"+n.Variant, "-")
	}
	return true
}

func cutWord(words []string, word string) (rest []string, found bool) {
	if len(words) > 0 && words[0] == word {
		return words[1:], true
	}
	return words, false
}

// setVariant takes the words behind a family, each at most once.
func (n *Name) setVariant(words []string) bool {
	for i, w := range words {
		if w != VariantTests && w != VariantASan && w != VariantTSan || slices.Contains(words[:i], w) {
			return false
		}
	}
	n.Variant, n.Tests = strings.Join(words, "-"), slices.Contains(words, VariantTests)
	return true
}

func (n Name) withVersion(s string) (Name, error) {
	v, err := ParseVersion(s)
	if err != nil {
		return Name{}, fmt.Errorf("%w: %w", ErrName, err)
	}
	n.Version = v
	return n, nil
}

func isPlatform(s string) bool { return s == "linux" || s == "windows" }

// cutFamily takes the slug at the start of words: multiarch, or gfx and hex
// digits, of which the last may be X for any, with at most one word for the
// class of GPU behind. It returns "" if there is none.
func cutFamily(words []string) (family string, rest []string) {
	switch {
	case len(words) == 0:
		return "", words
	case words[0] == multiarch:
		return multiarch, words[1:]
	case !isGFX(words[0]):
		return "", words
	case len(words) > 1 && isClass(words[1]):
		return words[0] + "-" + words[1], words[2:]
	}
	return words[0], words[1:]
}

func isGFX(s string) bool {
	digits, ok := strings.CutPrefix(s, "gfx")
	if n := len(digits); n > 1 && (digits[n-1] == 'X' || digits[n-1] == 'x') {
		digits = digits[:n-1]
	}
	return ok && len(digits) >= 1 && len(digits) <= 8 && strings.Trim(digits, "0123456789abcdef") == ""
}

// isClass knows all, and the words that end with gpu or apu: dgpu and dcgpu
// are in use, igpu is in AMD's build. Any other word may be a variant that
// is not known here, and is not taken for a family.
func isClass(s string) bool {
	if s == "all" {
		return true
	}
	head, ok := strings.CutSuffix(s, "pu")
	if !ok || len(head) < 1 || len(head) > 4 {
		return false
	}
	last := head[len(head)-1]
	return (last == 'g' || last == 'a') && strings.Trim(head, "abcdefghijklmnopqrstuvwxyz") == ""
}

// String returns the file name that n was, or would be, parsed from.
func (n Name) String() string {
	variant := n.Variant
	if variant == "" && n.Tests {
		variant = VariantTests
	}
	if !n.sdk {
		if variant != "" {
			variant = "-" + variant
		}
		return "therock-dist-" + n.Platform + "-" + n.Family + variant + "-" + n.Version.String() + "." + n.archive()
	}
	words := []string{"rocm-sdk"}
	after, lite := cutWord(strings.Split(variant, "-"), VariantLite)
	if lite && !n.lateLite {
		words = append(words, VariantLite)
	}
	if !n.implied {
		words = append(words, n.Family)
	}
	if lite && n.lateLite {
		words = append(words, VariantLite)
	}
	if variant != "" {
		words = append(words, after...)
	}
	if n.osFirst {
		words = append(words, n.Platform, n.Version.String())
	} else {
		words = append(words, n.Version.String(), n.Platform)
	}
	return strings.Join(words, "-") + "." + n.archive()
}

func (n Name) archive() string {
	if n.Archive == "" {
		return ArchiveTarGz
	}
	return n.Archive
}
