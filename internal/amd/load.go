package amd

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/rocm-nightly/rocm-nightly/internal/trusted"
)

//go:embed amd.yaml
var builtin []byte

// builtinName stands for a file name in errors about the embedded file.
const builtinName = "built in"

// maxSize bounds a data file, in bytes; ours has some twenty thousand.
const maxSize = 1 << 17

// Builtin returns the data that is compiled in, a copy at each call.
func Builtin() *Data {
	f, err := parse(builtinName, builtin)
	if err != nil {
		return &Data{Schema: Schema} // cannot be: a test decodes and checks the file that is compiled in
	}
	return f.data
}

// Load returns the data that holds on this machine: what is compiled in, or
// the distribution's file where that has a newer version, with the
// administrator's file laid over it. files lists those that had a say, in
// order; an empty name or an absent file is none.
func Load(distro, admin string) (d *Data, files []string, err error) {
	d = Builtin()
	src, err := read(distro)
	if err != nil {
		return nil, nil, err
	}
	if src != nil {
		f, err := decode(distro, src, true)
		if err != nil {
			return nil, nil, err
		}
		if newer(f.data.Version, d.Version) {
			d, files = f.data, append(files, distro)
			d.Deny, d.Allow = allowed(d.Deny, d.Allow), nil
		}
	}
	src, err = read(admin)
	if err != nil || src == nil {
		return d, files, err
	}
	f, err := decode(admin, src, false)
	if err != nil {
		return nil, nil, err
	}
	if err := f.layOver(d); err != nil {
		return nil, nil, err
	}
	return d, append(files, admin), nil
}

// read returns the content of a file, or nil if there is none.
func read(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read AMD's data: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read AMD's data %s: it is not a regular file; move it away", name)
	}
	// What is avoided and where AMD is asked decides what root installs.
	src, err := trusted.Own().ReadFile(name, maxSize)
	if err != nil {
		return nil, fmt.Errorf("read AMD's data %s: %w; move it away, or put it right", name, err)
	}
	if src == nil {
		src = []byte{}
	}
	return src, nil
}

// layOver lays a checked file over d: maps merge by key, lists replace, deny
// adds what allow has left of it.
func (f *file) layOver(d *Data) error {
	if err := merge(d.Channels, f.data.Channels, f.body, "channels"); err != nil {
		return f.broken(yaml.FormatError(err, false, false))
	}
	if err := merge(d.Targets, f.data.Targets, f.body, "targets"); err != nil {
		return f.broken(yaml.FormatError(err, false, false))
	}
	maps.Copy(d.Families, f.data.Families)
	for name := range f.data.Products { // "rx 7900xt" says anew what "RX 7900 XT" said
		maps.DeleteFunc(d.Products, func(old, _ string) bool { return letters(old) == letters(name) })
	}
	maps.Copy(d.Products, f.data.Products)
	d.Deny = append(allowed(d.Deny, f.data.Allow), f.data.Deny...)
	return nil
}

// merge decodes each entry of a section over the entry of that name, so that
// one key of a channel or a target can be changed alone.
func merge[T any](into, from map[string]T, body ast.Node, section string) error {
	for name, entry := range from {
		if there, both := into[name]; both {
			if node := lookup(body, section, name); node != nil {
				if err := over(node, &there); err != nil {
					return err
				}
			}
			entry = there
		}
		into[name] = entry
	}
	return nil
}

// letters reduces a name to what two spellings of it have in common.
func letters(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '+' {
			return r
		}
		return -1
	}, strings.ToLower(name))
}

// allowed returns deny without the entries whose pattern is listed in allow;
// "*" there stands for all of them.
func allowed(deny []Deny, allow []string) []Deny {
	return slices.DeleteFunc(slices.Clone(deny), func(e Deny) bool {
		return slices.Contains(allow, e.Pattern) || slices.Contains(allow, "*")
	})
}
