package bump

import (
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/bump/pinfile"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// URLError says that a file would fetch something else than what was verified,
// or that nothing tells what it would fetch.
type URLError struct {
	File         string
	Line, Column int    // of the address; 0 if there is none
	Target       string // whose pin it is
	Fetches      string // what the file would fetch; "" if nothing tells
	Want         string // what was verified
	Hint         string // what to write or to do
}

func (e *URLError) Error() string {
	where := e.File
	if e.Line > 0 {
		where = fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Column)
	}
	if e.Fetches == "" {
		return fmt.Sprintf("check %s: nothing tells what it fetches for %s, and %s was verified (%s)", where, e.Target, e.Want, e.Hint)
	}
	return fmt.Sprintf("check %s: it would fetch %s for %s, and %s was verified (%s)", where, oneLine(e.Fetches), e.Target, e.Want, e.Hint)
}

// maxAddresses bounds how often addresses of one file are edited.
const maxAddresses = 64

// tarballRE is what AMD's tarballs are named like.
var tarballRE = regexp.MustCompile(`^(?:therock-dist|therock|rocm|amdrocm)[-_.][A-Za-z0-9._+~-]*\.tar\.(?:gz|xz|zst|bz2)$`)

// guard sees to it that edited files fetch what the pins name.
type guard struct {
	migrate bool
	pins    map[string]entry // by target, the first that asked
	proven  map[string]bool  // targets whose address was found
	along   []carried        // addresses that a new version has changed
}

// carried is an address that an edit gave a new version.
type carried struct {
	file string
	pinfile.URL
	entry // whose version it is
}

// moved is an address that was edited.
type moved struct {
	Edit
	line int
}

func newGuard(migrate bool) *guard {
	return &guard{migrate: migrate, pins: map[string]entry{}, proven: map[string]bool{}}
}

// look reads the addresses of w's file, which was before, as edited. With
// migrate, those whose host or directory alone are wrong are put right in the
// text that it returns.
func (g *guard) look(w *want, before, text []byte) ([]byte, []moved, error) {
	for _, e := range w.from {
		if _, there := g.pins[e.pin.Target]; !there {
			g.pins[e.pin.Target] = e
		}
		if err := g.told(w, e); err != nil {
			return nil, nil, err
		}
	}
	var all []moved
	for range maxAddresses {
		u, pin, err := g.wrong(w, w.path, text, w.o)
		if err == nil && u == nil {
			err = g.carry(w, before, text)
		}
		if err != nil || u == nil {
			return text, all, err
		}
		next, err := u.Rebase(text, pin.URL[:strings.LastIndexByte(pin.URL, '/')])
		if err != nil {
			return nil, nil, g.refuse(w.path, *u, pin, err.Error())
		}
		if string(next) == string(text) {
			return nil, nil, g.refuse(w.path, *u, pin, "write "+pin.URL+" there")
		}
		all = append(all, moved{Edit{w.path, "url", pin.Target, u.Text, pin.URL}, u.Line})
		text = next
	}
	return nil, nil, fmt.Errorf("check %s: it holds more than %d addresses of tarballs", w.path, maxAddresses)
}

// carry notes the addresses of tarballs that have got a new version with the
// edit: in a file with one version for several targets each of them needs its
// new hash.
func (g *guard) carry(w *want, before, text []byte) error {
	urls, err := pinfile.URLs(w.path, text, w.o)
	if err != nil {
		return err
	}
	was, err := pinfile.URLs(w.path, before, w.o)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, u := range was {
		there[u.Text] = true
	}
	for _, u := range urls {
		n, err := release.ParseName(baseOf(u.Text))
		if err != nil || there[u.Text] {
			continue
		}
		for _, e := range w.from {
			if e.pin.Version == n.Version.String() {
				g.along = append(g.along, carried{w.path, u, e})
				break
			}
		}
	}
	return nil
}

// uncarried refuses an address that has got a new version and is of no pin.
func (g *guard) uncarried() error {
	names := map[string]bool{}
	for _, e := range g.pins {
		names[nameOf(e.pin)] = true
	}
	for _, c := range g.along {
		if e := c.entry; !names[baseOf(c.Text)] && e.pin.URL != "" {
			return g.refuse(c.file, c.URL, e.pin, "the new version is in this address too, of which nothing is verified: write an entry for its target, or give "+e.pin.Target+" a version of its own")
		}
	}
	return nil
}

// told takes what the config says that the repository fetches.
func (g *guard) told(w *want, e entry) error {
	if e.pin.URL == "" {
		g.proven[e.pin.Target] = true
		return nil
	}
	if w.o.Format == "lock" || w.o.Format == "" && pinfile.FormatOf(w.path) == "lock" {
		g.proven[e.pin.Target] = true
	}
	for key, pin := range w.pins {
		if pin.Target == e.pin.Target && strings.Contains(w.set[key], e.pin.URL) {
			g.proven[e.pin.Target] = true
		}
	}
	if e.file.Fetches == "" {
		return nil
	}
	got, err := expand(w.path, "fetches", e.file.Fetches, e.pin)
	if err != nil {
		return err
	}
	if !sameURL(got, e.pin.URL) {
		return &URLError{File: w.path, Target: e.pin.Target, Fetches: got, Want: e.pin.URL,
			Hint: "change the repository so that it fetches that, and then fetches: in the config"}
	}
	g.proven[e.pin.Target] = true
	return nil
}

// wrong returns the first address of a file that names a pin's tarball
// elsewhere than where it was verified; nil if there is none.
func (g *guard) wrong(w *want, file string, text []byte, o pinfile.Options) (*pinfile.URL, Pin, error) {
	urls, err := pinfile.URLs(file, text, o)
	if err != nil {
		return nil, Pin{}, err
	}
	right := map[string]bool{} // lists of mirrors that have a verified address
	for _, e := range w.from {
		for i := range urls {
			if e.pin.URL != "" && sameURL(urls[i].Text, e.pin.URL) {
				g.proven[e.pin.Target] = true
				right[mirrorsOf(urls[i])+" "+e.pin.Target] = true
			}
		}
	}
	for _, e := range w.from {
		if e.pin.URL == "" {
			continue
		}
		for i := range urls {
			u := &urls[i]
			list := mirrorsOf(*u)
			switch {
			case sameURL(u.Text, e.pin.URL), list != "" && right[list+" "+e.pin.Target]:
			case !w.strays(*u, e.pin):
			case g.migrate:
				return u, e.pin, nil
			default:
				return nil, Pin{}, g.refuse(file, *u, e.pin, adviceFor(*u, e.pin))
			}
		}
	}
	return nil, Pin{}, g.otherNames(w, file, urls)
}

// namedRE is how a composed name of a tarball of AMD's begins.
var namedRE = regexp.MustCompile(`^(?:therock-dist|therock|rocm|amdrocm)[-_.]`)

// strays reports whether an address is that of pin's tarball, by its file name,
// and of no pin by its host and directory. Names in it that the file does not
// tell may stand for anything.
func (w *want) strays(u pinfile.URL, pin Pin) bool {
	base := baseOf(u.Text)
	text, some := holesOf(u)
	if !some {
		return base == nameOf(pin)
	}
	base = baseOf(text)
	about := strings.Contains(base, pin.Version) || pin.Family != "" && strings.Contains(base, pin.Family) || namedRE.MatchString(base)
	return about && couldBe(base, nameOf(pin)) &&
		!slices.ContainsFunc(w.from, func(e entry) bool { return couldBe(text, e.pin.URL) })
}

// hole stands in an address for what the file does not tell. No address has it.
const hole = "\x00"

// holeRE finds what a program puts a value in the place of, where the format's
// reader has left it as it is: $ENV{A}, %s, {} and {0}.
var holeRE = regexp.MustCompile(`\$[A-Za-z]*\{[^{}]*\}|%s|\{[A-Za-z0-9_]*\}`)

// holesOf returns an address with a hole for each thing that is not told, and
// whether it has any.
func holesOf(u pinfile.URL) (string, bool) {
	text := u.Text
	for _, name := range u.Unknown {
		text = strings.ReplaceAll(text, "${"+name+"}", hole)
	}
	text = holeRE.ReplaceAllString(text, hole)
	return text, strings.Contains(text, hole)
}

// couldBe reports whether text is want for some values of its holes.
func couldBe(text, want string) bool {
	parts := strings.Split(text, hole)
	for i, part := range parts {
		switch {
		case i == len(parts)-1 && i > 0:
			return strings.HasSuffix(want, part)
		case i == 0 && !strings.HasPrefix(want, part), !strings.Contains(want, part):
			return false
		case i == 0:
			want = want[len(part):]
		default:
			want = want[strings.Index(want, part)+len(part):]
		}
	}
	return want == ""
}

// itemRE is the place in a list at the end of a path.
var itemRE = regexp.MustCompile(`\[[0-9]+\]\z`)

// mirrorsOf names the list that an address is in, "" if it is in none: of the
// addresses there, whoever fetches takes the first that answers.
func mirrorsOf(u pinfile.URL) string {
	if list := itemRE.ReplaceAllString(u.Path, ""); list != u.Path {
		return list
	}
	return ""
}

// adviceFor says what to do about an address: to write another, or to let it be
// moved, where host and directory are what is wrong.
func adviceFor(u pinfile.URL, pin Pin) string {
	dir := func(text string) string { return text[:strings.LastIndexByte(text, '/')+1] }
	if dir(u.Text) == dir(pin.URL) {
		return "write " + pin.URL + " there"
	}
	return "write " + pin.URL + " there, or let it be done: --migrate"
}

// otherNames refuses an address that looks as though it were a pin's and names
// another tarball.
func (g *guard) otherNames(w *want, file string, urls []pinfile.URL) error {
	var names []string
	for _, e := range w.from {
		names = append(names, nameOf(e.pin))
	}
	for _, e := range w.from {
		if g.proven[e.pin.Target] {
			continue
		}
		for _, u := range urls {
			base := baseOf(u.Text)
			if slices.Contains(names, base) || !tarballRE.MatchString(base) {
				continue
			}
			alone := len(w.from) == 1 && !otherFamily(base, e.pin)
			about := strings.Contains(base, e.pin.Version) || e.pin.Family != "" && strings.Contains(base, e.pin.Family)
			if about || alone {
				return g.refuse(file, u, e.pin, "its name is another one: set what makes the name too, or write "+e.pin.URL+" there, or say in its entry what is fetched: fetches: "+fetchesLine(e.pin))
			}
		}
	}
	return nil
}

// otherFamily reports whether a name is that of a tarball for other GPUs, which
// the file may fetch too.
func otherFamily(base string, pin pinfile.Pin) bool {
	n, err := release.ParseName(base)
	return err == nil && pin.Family != "" && n.Family != pin.Family
}

// followed checks a file that was made from an edited one.
func (g *guard) followed(w *want, file string, text []byte) error {
	u, pin, err := g.wrong(w, file, text, pinfile.Options{})
	if err == nil && u != nil {
		return g.refuse(file, *u, pin, "the file that it is made from fetches something else")
	}
	return err
}

func (g *guard) refuse(file string, u pinfile.URL, pin Pin, hint string) error {
	return &URLError{File: file, Line: u.Line, Column: u.Column, Target: pin.Target, Fetches: u.Text, Want: pin.URL, Hint: hint}
}

// verdict refuses targets of which nothing told what is fetched.
func (g *guard) verdict() error {
	for _, target := range slices.Sorted(maps.Keys(g.pins)) {
		if e := g.pins[target]; !g.proven[target] {
			return &URLError{File: e.file.Path, Target: target, Want: e.pin.URL, Hint: "write fetches: " + fetchesLine(e.pin) + " in its entry, if that is what the repository makes of these values"}
		}
	}
	return g.uncarried()
}

// fetchesLine is pin's address with templates for what changes in it.
func fetchesLine(pin Pin) string {
	text := pin.URL
	if pin.Version != "" {
		text = strings.ReplaceAll(text, pin.Version, "{{.Version}}")
	}
	if dir, base := path.Split(text); pin.Family != "" {
		text = dir + strings.ReplaceAll(base, pin.Family, "{{.Family}}")
	}
	return fmt.Sprintf("%q", text)
}

func nameOf(pin Pin) string {
	if pin.Name != "" && baseOf(pin.URL) == pin.Name {
		return pin.Name
	}
	return baseOf(pin.URL)
}

// baseOf is the last part of an address's path.
func baseOf(text string) string {
	text, _, _ = strings.Cut(text, "#")
	text, _, _ = strings.Cut(text, "?")
	base := text[strings.LastIndexByte(text, '/')+1:]
	if plain, err := url.PathUnescape(base); err == nil {
		return plain
	}
	return base
}

// sameURL compares addresses as a server would.
func sameURL(a, b string) bool {
	if a == b {
		return true
	}
	x, err := url.Parse(a)
	if err != nil {
		return false
	}
	y, err := url.Parse(b)
	return err == nil && x.Scheme == y.Scheme && strings.EqualFold(x.Host, y.Host) && x.Path == y.Path &&
		x.RawQuery == y.RawQuery && x.User == nil && y.User == nil
}
