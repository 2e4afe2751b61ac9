package schema

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ErrNewer is matched by errors about records that a newer program wrote.
var ErrNewer = errors.New("written by a newer rocm-nightly")

// ErrNone is matched by errors about what has no schema.
var ErrNone = errors.New("no schema")

// Step takes the fields of a record from one schema to the next. It need not
// set "schema".
type Step func(fields map[string]json.RawMessage) error

// Format is one kind of record.
type Format struct {
	Name  string // of the file, for errors
	Else  string // what a user can do about a newer one but upgrade, such as "move it away: it is made anew"; "" if nothing
	Steps []Step // Steps[0] takes schema 1 to 2; none: 1 is all that there ever was
}

// Now is the schema that this program writes.
func (f Format) Now() int { return len(f.Steps) + 1 }

// Read returns the record b in the schema of this program. An error matches
// ErrNewer, or else says that b is no such record.
func (f Format) Read(b []byte) ([]byte, error) {
	n, err := f.schemaOf(b)
	if err != nil || n == f.Now() {
		return b, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		return nil, err
	}
	for ; n < f.Now(); n++ {
		if err := f.Steps[n-1](fields); err != nil {
			return nil, fmt.Errorf("take %s from schema %d to %d: %w", f.Name, n, n+1, err)
		}
	}
	fields["schema"] = json.RawMessage(fmt.Sprint(f.Now()))
	return json.Marshal(fields)
}

// schemaOf reads the one field that every form has.
func (f Format) schemaOf(b []byte) (int, error) {
	var head struct {
		Schema int `json:"schema"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return 0, err
	}
	switch {
	case head.Schema < 1:
		return 0, ErrNone
	case head.Schema > f.Now():
		return 0, f.Newer(head.Schema)
	}
	return head.Schema, nil
}

// Newer is the error about a record of schema n, which is newer than Now.
func (f Format) Newer(n int) error {
	hint := "upgrade"
	if f.Else != "" {
		hint += ", or " + f.Else
	}
	return fmt.Errorf("schema %d: %w (%s)", n, ErrNewer, hint)
}
