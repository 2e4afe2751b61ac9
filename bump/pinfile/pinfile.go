package pinfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Options say how a file is read.
type Options struct {
	// Format is how the file is read, one of Formats; "" asks FormatOf.
	Format string
	// Pattern is a regular expression (RE2) with named groups, for the format
	// regex: a key is the name of a group.
	Pattern string
}

// Change is one value that an edit changes.
type Change struct {
	Key  string // as it stands in the set
	From string
	To   string
	Place
}

// Result is an edited file.
type Result struct {
	Text    []byte
	Changes []Change // those that differ, by offset
}

// Site is one value of a file, as its format tells.
type Site struct {
	Path       string // the longest key that names it
	Start, End int    // the bytes of the file that an edit replaces
	Value      string // decoded
	// Encode writes a new value in place of those bytes, in the style that
	// stands there; it refuses what the format cannot hold.
	Encode func(value string) ([]byte, error)
	// Problem says why the value cannot be edited, "" if it can: it is an
	// expression, it holds ${}, it is an alias.
	Problem string
}

// Near is a place that looks like a value and is none: a comment, a string, an
// argument's default, another spelling.
type Near struct {
	Offset int
	Path   string
	Note   string // what it is, with its line
}

// document is a parsed file.
type document interface {
	// find returns the values that key names, and, where there are none, what
	// looks like them.
	find(key string) ([]Site, []Near, error)
	// urls returns the addresses that the file composes, with what it says
	// itself put in.
	urls() []URL
}

// format is a way to read a file.
type format struct {
	name  string
	names []string // file names, or patterns of path.Match, that have this format
	parse func(src []byte, o Options) (document, error)
}

// MaxLen is how long a file may be that is edited, in bytes.
const MaxLen = maxSource

// Formats lists the formats by name.
func Formats() []string { return []string{"nix"} }

// FormatOf returns the format of a file by its name, "" if the name tells none.
func FormatOf(path string) string {
	if strings.HasSuffix(path, ".nix") {
		return "nix"
	}
	return ""
}

// Edit returns src, the file at path, with the values of set: keys to what the
// values shall be, unescaped. Errors are *MatchError, *ValueError,
// *HashKindError or *SyntaxError, and name the file. On an error there is no
// output.
func Edit(path string, src []byte, set map[string]string, o Options) (*Result, error) {
	if o.Format == "" {
		o.Format = FormatOf(path)
	}
	if o.Format != "nix" {
		return nil, fmt.Errorf("edit %s: format %.40q is not known (known: nix)", path, o.Format)
	}
	was, err := Current(src, set)
	if err != nil {
		return nil, InFile(path, err)
	}
	out, err := EditNix(src, set)
	if err != nil {
		return nil, InFile(path, err)
	}
	res := &Result{Text: out}
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if was[key] != set[key] {
			res.Changes = append(res.Changes, Change{Key: key, From: was[key], To: set[key]})
		}
	}
	return res, nil
}

// URLs returns the addresses that src, the file at path, composes.
func URLs(path string, src []byte, o Options) ([]URL, error) { return nil, nil }

// Rebase returns src with the address's host and directory, which is all before
// the last slash of its path, being those of dir. It is refused where src does
// not say them literally.
func (u URL) Rebase(src []byte, dir string) ([]byte, error) {
	return nil, fmt.Errorf("line %s: the address is not written out there", u.Place)
}

// Follow returns the files that have to change along with an edited one, by
// path: the .SRCINFO beside a PKGBUILD. read returns a file of the repository;
// its error matches fs.ErrNotExist where there is none.
func Follow(path string, edited []byte, o Options, read func(path string) ([]byte, error)) (map[string][]byte, error) {
	return nil, nil
}

// Guess is a pin that a file seems to hold.
type Guess struct {
	Path   string            // of the file
	Format string            // of the file
	Target string            // "" if nothing in the file tells
	Set    map[string]string // key to template
	Old    string            // the version that stands there
	Why    string            // what it was known by, one line
}

// GuessPins looks in src, the file at path, for pins of AMD's tarballs.
func GuessPins(path string, src []byte) []Guess { return nil }
