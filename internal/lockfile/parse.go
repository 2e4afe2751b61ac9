package lockfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// wireFile and wirePin are the file as it is written; the order of the fields
// is that of the keys.
type wireFile struct {
	Schema int       `json:"schema"`
	Pins   []wirePin `json:"pins"`
}

type wirePin struct {
	Channel string    `json:"channel"`
	Target  string    `json:"target"`
	Family  string    `json:"family"`
	Version string    `json:"version"`
	Name    string    `json:"name"`
	URL     string    `json:"url"`
	Digest  string    `json:"digest"`
	SRI     string    `json:"sri,omitempty"` // the same digest, for Nix; written, and optional to read
	Size    int64     `json:"size"`
	MTime   time.Time `json:"mtime,omitzero"`
}

// keys are the keys of each depth of nested objects and arrays; encoding/json
// alone would take "URL" for "url", and the last of two.
var keys = map[int][]string{
	1: {"schema", "pins"},
	3: {"channel", "target", "family", "version", "name", "url", "digest", "sri", "size", "mtime"},
}

// conflictRE finds what a merge leaves in a file that it could not join.
var conflictRE = regexp.MustCompile(`(?m)^(?:<<<<<<<|>>>>>>>) `)

// Parse reads a lock file. See the package comment for what it refuses.
func Parse(b []byte) (*File, error) {
	f, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("parse lock: %w", err)
	}
	return f, nil
}

func parse(b []byte) (*File, error) {
	if len(b) > MaxLen {
		return nil, fmt.Errorf("it is %d bytes long, more than %d", len(b), MaxLen)
	}
	if err := checkSchema(b); err != nil {
		return nil, err
	}
	if err := checkKeys(b); err != nil {
		return nil, err
	}
	var wire wireFile
	if err := json.Unmarshal(b, &wire); err != nil {
		return nil, err
	}
	if wire.Pins == nil {
		return nil, errors.New(`it has no "pins"`)
	}
	f := &File{Schema: Schema, Pins: make([]Pin, 0, min(len(wire.Pins), MaxPins))}
	for i, w := range wire.Pins {
		if i == MaxPins {
			return nil, fmt.Errorf("it has %d pins, more than %d", len(wire.Pins), MaxPins)
		}
		p, err := w.pin()
		if err != nil {
			return nil, fmt.Errorf("pin %d, %s: %w", i+1, p.label(), err)
		}
		f.Pins = append(f.Pins, p)
	}
	return f, f.arrange()
}

// checkSchema looks at the version of the format before anything else, so that
// what a newer program wrote is not called damage.
func checkSchema(b []byte) error {
	var head struct {
		Schema *int `json:"schema"`
	}
	err := json.Unmarshal(b, &head)
	switch {
	case err != nil && conflictRE.Match(b):
		return errors.New("it has the markers of a merge conflict: resolve it (or write the file anew with: lock)")
	case err != nil:
		return err
	case head.Schema == nil:
		return errors.New(`it has no "schema": not a rocm-nightly.lock`)
	case *head.Schema > Schema:
		return fmt.Errorf("schema %d: %w", *head.Schema, ErrNewer)
	case *head.Schema != Schema:
		return fmt.Errorf("schema %d: there is none", *head.Schema)
	}
	return nil
}

// checkKeys refuses a key that is not of the format or stands twice in one
// object.
func checkKeys(b []byte) error {
	type level struct {
		object bool
		key    bool // the next token is a key
		seen   map[string]bool
	}
	var stack []level
	dec := json.NewDecoder(bytes.NewReader(b))
	for {
		token, err := dec.Token()
		if err != nil {
			return err
		}
		top := len(stack) - 1
		delim, _ := token.(json.Delim)
		switch {
		case delim == '{' || delim == '[':
			if len(stack) == len(keys)+1 {
				return errors.New("it is nested too deeply")
			}
			if top >= 0 {
				stack[top].key = true // after this value
			}
			stack = append(stack, level{object: delim == '{', key: true, seen: map[string]bool{}})
		case delim == '}' || delim == ']':
			if stack = stack[:top]; top == 0 {
				return nil
			}
		case top < 0:
			return errors.New("it is not an object")
		case stack[top].object && stack[top].key:
			key, _ := token.(string)
			if !slices.Contains(keys[len(stack)], key) {
				return fmt.Errorf("unknown key %.60q", key)
			}
			if stack[top].seen[key] {
				return fmt.Errorf("key %q stands twice in one object", key)
			}
			stack[top].seen[key], stack[top].key = true, false
		default:
			stack[top].key = true
		}
	}
}

// pin checks w and returns what it says.
func (w wirePin) pin() (Pin, error) {
	p := Pin{
		Channel: w.Channel, Target: w.Target, Family: w.Family, Version: w.Version,
		Name: w.Name, URL: w.URL, Digest: release.Digest(w.Digest), Size: w.Size, MTime: w.MTime,
	}
	checked, err := p.check()
	if err != nil {
		return p, err
	}
	if w.SRI != "" {
		if d, err := release.ParseDigest(w.SRI); err != nil {
			return p, fmt.Errorf("sri: %w", err)
		} else if d != checked.Digest {
			return p, fmt.Errorf("digest and sri disagree: %s is %s", w.SRI, d)
		}
	}
	return checked, nil
}

// Encode writes a lock file: sorted, indented by two spaces, with a newline at
// its end. It refuses what Parse would refuse.
func Encode(f *File) ([]byte, error) {
	b, err := encode(f)
	if err != nil {
		return nil, fmt.Errorf("encode lock: %w", err)
	}
	return b, nil
}

func encode(f *File) ([]byte, error) {
	if f == nil {
		return nil, errors.New("there is none")
	}
	if f.Schema != 0 && f.Schema != Schema {
		return nil, fmt.Errorf("schema %d is not %d", f.Schema, Schema)
	}
	if len(f.Pins) > MaxPins {
		return nil, fmt.Errorf("it has %d pins, more than %d", len(f.Pins), MaxPins)
	}
	sorted := &File{Pins: make([]Pin, 0, len(f.Pins))}
	for _, p := range f.Pins {
		checked, err := p.check()
		if err != nil {
			return nil, fmt.Errorf("pin %s: %w", p.label(), err)
		}
		sorted.Pins = append(sorted.Pins, checked)
	}
	if err := sorted.arrange(); err != nil {
		return nil, err
	}
	wire := wireFile{Schema: Schema, Pins: make([]wirePin, 0, len(sorted.Pins))}
	for _, p := range sorted.Pins {
		wire.Pins = append(wire.Pins, wirePin{
			Channel: p.Channel, Target: p.Target, Family: p.Family, Version: p.Version, Name: p.Name, URL: p.URL,
			Digest: string(p.Digest), SRI: release.SRI(p.Digest), Size: p.Size, MTime: p.MTime,
		})
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(wire); err != nil {
		return nil, err
	}
	if buf.Len() > MaxLen {
		return nil, fmt.Errorf("it is %d bytes long, more than %d", buf.Len(), MaxLen)
	}
	return buf.Bytes(), nil
}

// arrange sorts the pins, and refuses two for one target.
func (f *File) arrange() error {
	slices.SortFunc(f.Pins, compare)
	for i := 1; i < len(f.Pins); i++ {
		if compare(f.Pins[i-1], f.Pins[i]) == 0 {
			return fmt.Errorf("%s is pinned twice", f.Pins[i].label())
		}
	}
	return nil
}
