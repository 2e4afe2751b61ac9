package environ

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Schema is the version of the JSON form.
const Schema = 1

// FileName is where a prefix says what its environment is.
const FileName = "etc/env.json"

// maxFile bounds env.json, in bytes.
const maxFile = 1 << 20

// Environment is what a user who wants a ROCm for everything in a shell sets.
type Environment struct {
	Schema int        `json:"schema"`
	About  string     `json:"about"`           // one line for people: "ROCm 10.2.0a20260930 gfx1151"
	Prefix string     `json:"prefix"`          // absolute; what the values begin with
	Cache  string     `json:"cache,omitempty"` // keys the compiler's cache: version and digest
	Set    []Variable `json:"set"`             // set where the user has no value
	Lists  []Search   `json:"lists"`           // search paths that get one more entry
}

// Variable is one name and its value.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Search is one directory of a search path whose entries have colons between
// them.
type Search struct {
	Name  string `json:"name"`
	Dir   string `json:"dir"`
	First bool   `json:"first,omitempty"` // before what is there already; else after it
}

// Read reads what the prefix at dir says of its environment.
func Read(dir string) (*Environment, error) {
	name := filepath.Join(dir, FileName)
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the environment: %w (it is no prefix of this program, or of a version before this one: name another with --prefix, or run update)", err)
	}
	if err != nil {
		return nil, fmt.Errorf("read the environment: %w", err)
	}
	defer f.Close() // opened for reading
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("read the environment: %s is no regular file", name), err)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read the environment: %w", err)
	}
	e, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("read the environment %s: %w", name, err)
	}
	return e, nil
}

// Parse reads the JSON form and checks it.
func Parse(text []byte) (*Environment, error) {
	e := &Environment{}
	if len(text) > maxFile {
		return nil, fmt.Errorf("it has more than %d bytes", maxFile)
	}
	if err := json.Unmarshal(text, e); err != nil {
		return nil, err
	}
	if e.Schema != Schema {
		return nil, fmt.Errorf("it has schema %d, this version reads %d", e.Schema, Schema)
	}
	return e, e.Check()
}

// Check reports what could not be written in every shell.
func (e *Environment) Check() error {
	if !path.IsAbs(e.Prefix) {
		return fmt.Errorf("prefix %q is not an absolute path", e.Prefix)
	}
	for _, text := range []string{e.Prefix, e.About, e.Cache} {
		if err := CheckValue(text); err != nil {
			return fmt.Errorf("%q %w", text, err)
		}
	}
	for _, v := range e.Set {
		if v.Value == "" {
			return fmt.Errorf("variable %q cannot be set to nothing", v.Name)
		}
		if err := errors.Join(CheckName(v.Name), CheckValue(v.Value)); err != nil {
			return fmt.Errorf("variable %q = %q cannot be set: %w", v.Name, v.Value, err)
		}
	}
	for _, s := range e.Lists {
		if s.Dir == "" || strings.Contains(s.Dir, ":") {
			return fmt.Errorf("search path %q cannot get %q", s.Name, s.Dir)
		}
		if err := errors.Join(CheckName(s.Name), CheckValue(s.Dir)); err != nil {
			return fmt.Errorf("search path %q cannot get %q: %w", s.Name, s.Dir, err)
		}
	}
	return nil
}

// JSON is the form that Parse reads.
func (e *Environment) JSON() string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(e) // of strings, which cannot fail
	return b.String()
}

// At is the environment of the same prefix found at another place.
func (e *Environment) At(dir string) *Environment {
	moved := *e
	move := func(s string) string {
		if rest, ok := strings.CutPrefix(s, e.Prefix); ok && (rest == "" || rest[0] == '/' || e.Prefix == "/") {
			return path.Join(dir, rest)
		}
		return s
	}
	moved.Prefix, moved.Set, moved.Lists = dir, nil, nil
	for _, v := range e.Set {
		moved.Set = append(moved.Set, Variable{v.Name, move(v.Value)})
	}
	for _, s := range e.Lists {
		moved.Lists = append(moved.Lists, Search{s.Name, move(s.Dir), s.First})
	}
	return &moved
}
