package pinfile

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// Guess is a pin that a file seems to hold.
type Guess struct {
	Path   string            // of the file
	Format string            // of the file
	Target string            // "" if nothing in the file tells
	Set    map[string]string // key to template
	Old    string            // the version that stands there
	Why    string            // what it was known by, one line
}

// Bounds of what is looked at and of what is found.
const (
	maxGuessed = 1 << 20 // bytes of a file: a pin stands in a small one
	maxFacts   = 5_000
	maxAnchors = 200
	maxGuesses = 100
)

// GuessPins looks in src, the file at path, for pins of AMD's tarballs: values
// that are a version of AMD's, with the hashes, addresses and the like that
// stand beside or below them. Where two hashes could belong to a version there
// is a Guess for each, which says so; of what no key tells apart there is none.
func GuessPins(path string, src []byte) []Guess {
	if len(src) > maxGuessed || !amdRE.Match(src) {
		return nil
	}
	format := FormatOf(path)
	all := factsOf(format, src)
	if len(all) > maxFacts {
		return nil
	}
	g := guesser{path: path, format: format, src: src, all: all}
	return g.guess()
}

var (
	// amdRE matches what every file that pins ROCm says somewhere.
	amdRE = regexp.MustCompile(`(?i)rocm|therock`)
	// tarballRE matches the beginning of a tarball's name, and the slug in it
	// where that is written out.
	tarballRE = regexp.MustCompile(`(?:therock-dist-linux|rocm-sdk)-(gfx[0-9A-Za-z]+(?:-[a-z]+)?|multiarch)?`)
	// gfxRE matches a target or a slug among other words.
	gfxRE   = regexp.MustCompile(`(?i)(?:^|[^a-z0-9])(gfx[0-9]{2,3}[0-9a-fx]{1,2}(?:[-_](?:all|dgpu|igpu|dcgpu|apu))?|multiarch)(?:$|[^a-z0-9])`)
	urlRE   = regexp.MustCompile(`(?i)ur[il]`)
	sizeRE  = regexp.MustCompile(`(?i)size|bytes|length`)
	dateRE  = regexp.MustCompile(`\A20[0-9]{2}-[01][0-9]-[0-3][0-9]\z`)
	digitRE = regexp.MustCompile(`\A[0-9]{4,15}\z`)
)

// guesser is one file that is looked at.
type guesser struct {
	path, format string
	src          []byte
	all          []fact
}

// anchor is a version that stands in a file, by itself or in an address.
type anchor struct {
	fact
	version string
	url     bool
}

// guess pairs what it finds with the nearest version.
func (g *guesser) guess() []Guess {
	anchors := g.anchors()
	if len(anchors) > maxAnchors {
		return nil // a list of all that there ever was
	}
	hashes, left := g.share(anchors)
	var out []Guess
	for i, a := range anchors {
		if len(hashes[i]) == 0 && (a.url || left || g.blank(a)) {
			continue // an address in a text, or a version whose hash would stay the old one
		}
		for _, set := range g.byTarget(a, hashes[i]) {
			if guess, ok := g.make(a, anchors, set); ok && len(out) < maxGuesses && guess.works(g.src) {
				out = append(out, guess)
			}
		}
	}
	return out
}

// share gives every hash to the versions that it can belong to; left says that
// some belong to none. A version that is alone in the file, and has none, gets
// those beside an address of its tarball.
func (g *guesser) share(anchors []anchor) (hashes [][]fact, left bool) {
	hashes = make([][]fact, len(anchors))
	var others []fact
	for _, f := range g.all {
		if f.computed || g.kind(f).template == "" {
			continue
		}
		of, sure := g.ofTarball(f, anchors)
		near := nearest(anchors, f)
		switch {
		case !of:
		case len(near) > 0:
			for _, i := range near {
				hashes[i] = append(hashes[i], f)
			}
		case sure:
			others = append(others, f)
		default:
			left = true
		}
	}
	if len(anchors) == 1 && len(hashes[0]) == 0 {
		hashes[0], others = others, nil
	}
	return hashes, left || len(others) > 0
}

// hashNameRE matches what people call a hash.
var hashNameRE = regexp.MustCompile(`(?i)hash|sha256|integrity|\Asri\z|digest|checksum`)

// kind is that of a hash. An empty one of Nix is filled with an SRI hash, which
// all of its fetchers take.
func (g *guesser) kind(f fact) hashKind {
	if f.value == "" && g.format == "nix" && hashNameRE.MatchString(f.name()) {
		return hashSRI
	}
	return kindOfHash(f.value)
}

// blank reports whether a hash stands with a that is empty, so that its shape
// does not tell the kind.
func (g *guesser) blank(a anchor) bool {
	return slices.ContainsFunc(g.all, func(f fact) bool {
		return f.value == "" && !f.computed && a.above(f) && g.kind(f) == hashNone && hashNameRE.MatchString(strings.Join(f.path[len(a.container()):], " "))
	})
}

// specimens are values as templates give them.
var specimens = map[string]string{
	"{{.Version}}": "99.0.0a20990101", "{{.URL}}": "https://localhost/t/therock-dist-linux-gfx1151-99.0.0a20990101.tar.gz",
	"{{.Name}}": "therock-dist-linux-gfx1151-99.0.0a20990101.tar.gz", "{{.Size}}": "12345", "{{.Date}}": "2099-01-01",
	"{{.SRI}}":   "sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=",
	"{{.Hex}}":   "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
	"{{.Nix32}}": "1b8m03r63zqhnjf7l5wnldhh7c134ap5vpj0850ymkq1iyzicy5s",
}

// works reports whether the file can be edited as the Guess says.
func (g Guess) works(src []byte) bool {
	set := make(map[string]string, len(g.Set))
	for key, template := range g.Set {
		for name, value := range specimens {
			template = strings.ReplaceAll(template, name, value)
		}
		set[key] = template
	}
	_, err := Edit(g.Path, src, set, Options{Format: g.Format})
	return err == nil
}

// anchors lists the versions. One that is in an address counts where none
// stands beside it, from which the address would be made or with which it has
// to change.
func (g *guesser) anchors() []anchor {
	var out, urls []anchor
	for _, f := range g.all {
		if f.computed {
			continue
		}
		if v, err := release.ParseVersion(f.value); err == nil && g.isROCm(f, v) {
			out = append(out, anchor{f, f.value, false})
		} else if v := tarballVersion(f.value); v != "" {
			urls = append(urls, anchor{f, v, true})
		}
	}
	for _, u := range urls {
		if len(nearest(out, u.fact)) == 0 {
			out = append(out, u)
		}
	}
	slices.SortStableFunc(out, func(a, b anchor) int { return cmp.Compare(a.at, b.at) })
	return out
}

// isROCm reports whether a version is one of AMD's: it names a day, as theirs
// do; of any other a name or an address has to say so.
func (g *guesser) isROCm(f fact, v release.Version) bool {
	if _, dated := v.Date(); dated {
		return true
	}
	if amdRE.MatchString(strings.Join(f.path, " ")) {
		return strings.Count(f.value, ".") >= 2
	}
	for _, other := range g.all {
		if f.above(other) && tarballRE.MatchString(other.value) {
			return strings.Count(f.value, ".") >= 2
		}
	}
	return false
}

// tarballVersion returns the version of a tarball whose address or file name is
// written out, "" of anything else.
func tarballVersion(s string) string {
	name := path.Base(strings.TrimSuffix(s, "/"))
	if n, err := release.ParseName(strings.ReplaceAll(name, "%2B", "+")); err == nil {
		return n.Version.String()
	}
	return ""
}

// ofTarball reports whether a hash is not that of another thing, as the
// addresses beside it say: in a PKGBUILD, the source at the same place in its
// list. It is sure where one of them is a tarball's.
func (g *guesser) ofTarball(f fact, anchors []anchor) (of, sure bool) {
	name, index, item := f.item()
	source := strings.Replace(name, "sha256sums", "source", 1)
	said := false
	for _, other := range g.all {
		switch {
		case g.format == "pkgbuild" && item:
			n, i, ok := other.item()
			if !ok || n != source || i != index {
				continue
			}
		case !strings.Contains(other.value, "://") || !urlRE.MatchString(other.name()) || !slices.Equal(other.container(), f.container()):
			continue
		}
		composed := func(a anchor) bool { return other.computed && strings.Contains(other.value, a.version) }
		if strings.Contains(other.value, "://") && (amdRE.MatchString(other.value) || slices.ContainsFunc(anchors, composed)) {
			return true, true
		}
		said = true
	}
	return !said && (g.format != "pkgbuild" || !item), false
}

// nearest returns the anchors that f can belong to: those in the innermost
// container around it, for the same target where both name one.
func nearest(anchors []anchor, f fact) []int {
	var out []int
	depth, same := -1, false
	for i, a := range anchors {
		if !a.above(f) {
			continue
		}
		ta, tf := a.target(), f.target()
		if ta != "" && tf != "" && ta != tf {
			continue
		}
		d, s := len(a.container()), ta == tf
		if d < depth || d == depth && same && !s {
			continue
		}
		if d > depth || s && !same {
			out = nil
		}
		out, depth, same = append(out, i), d, s
	}
	return out
}

// candidate is what a Guess sets beside its version.
type candidate struct {
	target string
	hashes []fact
	rivals int // hashes that could stand in the place of one of them
}

// byTarget tells hashes of several targets apart, and those of which only one
// can be meant.
func (g *guesser) byTarget(a anchor, hashes []fact) []candidate {
	if len(hashes) == 0 {
		return []candidate{{target: a.target()}}
	}
	groups := map[string][]fact{}
	var order []string
	for _, h := range hashes {
		t := cmp.Or(h.target(), a.target())
		if groups[t] == nil {
			order = append(order, t)
		}
		groups[t] = append(groups[t], h)
	}
	var out []candidate
	for _, t := range order {
		kinds := map[string][]fact{}
		for _, h := range groups[t] {
			k := g.kind(h).name
			kinds[k] = append(kinds[k], h)
		}
		if len(kinds) == len(groups[t]) {
			out = append(out, candidate{target: t, hashes: groups[t]})
			continue
		}
		for _, h := range groups[t] {
			out = append(out, candidate{t, []fact{h}, len(groups[t]) - 1})
		}
	}
	return out
}

// make writes a Guess down. It is refused where no key names a value.
func (g *guesser) make(a anchor, anchors []anchor, c candidate) (Guess, bool) {
	out := Guess{Path: g.path, Format: g.format, Old: a.version, Set: map[string]string{}}
	template := "{{.Version}}"
	if a.url {
		template = urlTemplate(a.value, a.version)
	}
	if !g.set(out.Set, a.fact, template) {
		return out, false
	}
	var beside []string
	for _, h := range c.hashes {
		k := g.kind(h)
		if !g.set(out.Set, h, k.template) {
			return out, false
		}
		beside = append(beside, fmt.Sprintf("%s at line %d", k.name, placeOf(g.src, h.at).Line))
	}
	for _, f := range g.all {
		if t := alongTemplate(f, a); t != "" && (f.target() == "" || f.target() == c.target) && len(nearest(anchors, f)) == 1 && f.beside(a, c.hashes) {
			g.set(out.Set, f, t)
		}
	}
	var from string
	out.Target, from = g.targetOf(a, c)
	out.Why = fmt.Sprintf("version %s at line %d", a.version, placeOf(g.src, a.at).Line)
	if len(beside) > 0 {
		out.Why += " with " + strings.Join(beside, " and ")
	}
	if from != "" {
		out.Why += ", " + from
	}
	if c.rivals > 0 {
		out.Why += fmt.Sprintf("; ambiguous: %d more hashes of that kind stand there", c.rivals)
	}
	return out, true
}

// set adds a value to a set, if a key names it and no other.
func (g *guesser) set(set map[string]string, f fact, template string) bool {
	key, ok := keyOf(f, g.all)
	if ok {
		set[key] = template
	}
	return ok
}

// urlTemplate is the template for a whole address or a file name. The name that
// a PKGBUILD gives the file, NAME::, stays before it.
func urlTemplate(value, version string) string {
	if !strings.Contains(value, "://") {
		return "{{.Name}}"
	}
	name, _, ok := strings.Cut(value, "::")
	if !ok || strings.ContainsAny(name, "/{}") {
		return "{{.URL}}"
	}
	return strings.ReplaceAll(name, version, "{{.Version}}") + "::{{.URL}}"
}

// alongTemplate is the template of a value that changes along with a version,
// "" of any other.
func alongTemplate(f fact, a anchor) string {
	switch last := f.name(); {
	case f.computed || f.at == a.at:
		return ""
	case tarballVersion(f.value) == a.version:
		return urlTemplate(f.value, a.version)
	case f.value == a.version && !a.url:
		return ""
	case digitRE.MatchString(f.value) && sizeRE.MatchString(last):
		return "{{.Size}}"
	case dateRE.MatchString(f.value) && strings.Contains(strings.ToLower(last), "date"):
		return "{{.Date}}"
	}
	return ""
}

// targetOf says what a pin is for, and how that is known.
func (g *guesser) targetOf(a anchor, c candidate) (target, from string) {
	if c.target != "" {
		return c.target, "for " + c.target + " by its name"
	}
	for _, scope := range []struct {
		in   func(fact) bool
		from string
	}{
		{func(f fact) bool { return slices.Equal(f.container(), a.container()) }, " by what stands beside it"},
		{func(f fact) bool { return a.above(f) }, " by what stands below it"},
		{func(fact) bool { return true }, ", which alone is named in the file"},
	} {
		found := map[string]bool{}
		for _, f := range g.all {
			if !scope.in(f) {
				continue
			}
			if t := targetIn(f.value); t != "" {
				found[t] = true
			}
		}
		if len(found) > 1 {
			return "", "its target is not known: several are named"
		}
		for t := range found {
			return t, "for " + t + scope.from
		}
	}
	return "", "its target is not known"
}

// targetIn finds a target or a slug in a value: the whole of it, or in the name
// of a tarball.
func targetIn(value string) string {
	if m := tarballRE.FindStringSubmatch(value); m != nil {
		return m[1]
	}
	if m := gfxRE.FindStringSubmatch(value); m != nil && m[1] == value {
		return value
	}
	return ""
}

// targetOfName returns the target in a name, as AMD writes it: GFX110X_ALL is
// gfx110X-all.
func targetOfName(name string) string {
	m := gfxRE.FindStringSubmatch(strings.ReplaceAll(name, "_", "-"))
	if m == nil {
		return ""
	}
	word, class, _ := strings.Cut(strings.ToLower(m[1]), "-")
	if word != "multiarch" {
		word = "gfx" + strings.ReplaceAll(word[3:], "x", "X")
	}
	if class != "" {
		word += "-" + class
	}
	return word
}
