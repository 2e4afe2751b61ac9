package pinfile

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
	At         int    // where the binding begins, for messages; 0 is Start
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

// Edit returns src, the file at path, with the values of set: keys to what the
// values shall be, unescaped. Errors are *MatchError, *ValueError,
// *HashKindError or *SyntaxError, and name the file, or say what is wrong with
// a key or with o. On an error there is no output.
//
// Each key names exactly one value that the file writes out. Nothing but the
// bytes of these values changes: the result is read again, and is refused when
// a key does not read back or anything else has moved. A value that stands there
// already keeps its spelling.
func Edit(path string, src []byte, set map[string]string, o Options) (*Result, error) {
	f, err := choose(path, o)
	if err != nil {
		return nil, err
	}
	res, err := f.edit(src, set, o)
	if err != nil {
		return nil, InFile(path, err)
	}
	return res, nil
}

// URLs returns the addresses that src, the file at path, composes, in the order
// of the file.
func URLs(path string, src []byte, o Options) ([]URL, error) {
	f, err := choose(path, o)
	if err != nil {
		return nil, err
	}
	doc, err := f.read(src, o)
	if err != nil {
		return nil, InFile(path, err)
	}
	return doc.urls(), nil
}
