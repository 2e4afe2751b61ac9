package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/rocm-nightly/rocm-nightly/internal/amd"
	"github.com/rocm-nightly/rocm-nightly/internal/trusted"
)

// Places says where Load looks. All of it is the caller's to give, so that nothing
// here depends on the environment.
type Places struct {
	Explicit string   // --config or $ROCM_NIGHTLY_CONFIG: must exist, and is read alone
	Search   []string // files; the first that exists is taken, or that has a config.d beside it
	Environ  []string // NAME=value of the process: see Variables

	DistroData string // a newer amd.yaml than the one built in; "" or absent: none
	AdminData  string // an amd.yaml that is laid over it; "" or absent: none
	NamedData  bool   // AdminData is from $ROCM_NIGHTLY_DATA: must exist
}

// DefaultPlaces returns the places of this process: the user's configuration
// (not for root), then /etc/rocm-nightly/config.yaml; each with its config.d. The
// working directory is never looked at.
func DefaultPlaces(explicit string, getenv func(string) string, uid int) Places {
	if explicit == "" {
		explicit = getenv("ROCM_NIGHTLY_CONFIG")
	}
	p := Places{Explicit: explicit, DistroData: amd.DistroFile, AdminData: amd.AdminFile}
	if own := getenv("ROCM_NIGHTLY_DATA"); own != "" {
		p.AdminData, p.NamedData = own, true
	}
	if explicit != "" {
		return p
	}
	if uid != 0 {
		dir := getenv("XDG_CONFIG_HOME")
		if !filepath.IsAbs(dir) && getenv("HOME") != "" {
			dir = filepath.Join(getenv("HOME"), ".config")
		}
		if filepath.IsAbs(dir) {
			p.Search = append(p.Search, filepath.Join(dir, "rocm-nightly", "config.yaml"))
		}
	}
	p.Search = append(p.Search, "/etc/rocm-nightly/config.yaml")
	return p
}

// Load reads the configuration: what is built in, then the files, then the
// environment, each over the one before. files lists what was read, in order; it is
// empty when there is none. What is wrong with the config is an *Error, with
// everything that is; files and directories that somebody else could write are
// refused with a *trusted.Error (package trusted has the rule).
func Load(p Places) (c *Config, files []string, err error) {
	rule := trusted.Own()
	if p.NamedData {
		if _, err := os.Stat(p.AdminData); err != nil {
			return nil, nil, fmt.Errorf("read AMD's data, of $ROCM_NIGHTLY_DATA: %w", err)
		}
	}
	data, known, err := amd.Load(p.DistroData, p.AdminData)
	if err != nil {
		return nil, nil, err
	}
	c = defaultOf(data)
	own, err := p.find()
	if err != nil {
		return nil, nil, err
	}
	files = append(known, own...)
	layers, wrong, err := p.read(rule, own)
	if err != nil {
		return nil, files, err
	}
	for i, l := range layers {
		wrong = append(wrong, at(i, l.check()...)...)
	}
	if len(wrong) > 0 {
		return nil, files, inOrder(wrong)
	}
	if err := c.apply(layers...); err != nil {
		return nil, files, err
	}
	c.layers = layers
	if err := c.located(c.Validate()); err != nil {
		return nil, files, err
	}
	if err := c.guarded(rule); err != nil {
		return nil, files, err
	}
	return c, files, nil
}

// at says of which layer complaints are.
func at(layer int, wrong ...*Complaint) []*Complaint {
	for _, c := range wrong {
		c.layer = layer
	}
	return wrong
}

// read makes layers of the files, and of the environment.
func (p Places) read(rule trusted.Rule, files []string) (layers []layer, wrong []*Complaint, err error) {
	for _, name := range files {
		src, err := rule.ReadFile(name, maxFile)
		if err != nil {
			return nil, nil, fmt.Errorf("read config: %w", err)
		}
		l, c := layer{file: name}.parse(src)
		if c != nil {
			wrong = append(wrong, at(len(layers), c)...)
		}
		layers = append(layers, l)
	}
	env, bad := overrides(p.Environ)
	wrong = append(wrong, at(len(layers)+len(env), bad...)...)
	return append(layers, env...), wrong, nil
}

// find lists the files to read.
func (p Places) find() ([]string, error) {
	if p.Explicit != "" {
		if _, err := os.Stat(p.Explicit); err != nil {
			return nil, fmt.Errorf("read config: %w", err)
		}
		return []string{p.Explicit}, nil
	}
	for _, name := range p.Search {
		var files []string
		// A link that leads nowhere is a config that is missing, not one that nobody has.
		_, err := os.Lstat(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read config: %w", err)
		}
		if err == nil {
			files = append(files, name)
		}
		more, err := dropIns(filepath.Join(filepath.Dir(name), "config.d"))
		if err != nil {
			return nil, err
		}
		if files = append(files, more...); len(files) > 0 {
			return files, nil
		}
	}
	return nil, nil
}

// dropIns lists the *.yaml of a directory, in order of name.
func dropIns(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	}
	var names []string
	for _, e := range entries {
		// Hidden files are editors' locks and copies.
		if strings.HasSuffix(e.Name(), ".yml") && !strings.HasPrefix(e.Name(), ".") {
			return nil, fmt.Errorf("read config: %s would not be read, its name ends in .yml: rename it to .yaml, or move it away", filepath.Join(dir, e.Name()))
		}
		if strings.HasSuffix(e.Name(), ".yaml") && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	if len(names) > maxDropIns {
		return nil, fmt.Errorf("read config: %s has %d files, more than %d: put some together", dir, len(names), maxDropIns)
	}
	return names, nil
}

// Decode reads one YAML file over c: keys that it does not hold keep their value,
// lists replace. What is wrong is an *Error with line and column.
func Decode(c *Config, name string, src []byte) error {
	l, wrong := layer{file: name}.parse(src)
	if wrong != nil {
		return inOrder([]*Complaint{wrong})
	}
	if err := inOrder(l.check()); err != nil {
		return err
	}
	return c.apply(l)
}

// apply lays layers that were checked over c.
func (c *Config) apply(layers ...layer) error {
	var installs layer // that says last what is installed
	for _, l := range layers {
		if l.body == nil {
			continue
		}
		if err := l.over(c); err != nil {
			return inOrder([]*Complaint{l.complain(nil, "", err)})
		}
		if _, _, whole, _ := l.find([]string{"installs"}); whole {
			installs = l
		}
	}
	return c.inherit(installs)
}

// over decodes l over c. The decoder replaces maps; here they are laid over those of
// the layers before, name by name, as sections are.
func (l layer) over(c *Config) error {
	channels, env := c.Channels, c.Env
	c.Channels, c.Env = nil, nil
	err := yaml.NewDecoder(bytes.NewReader(nil), yaml.Strict()).DecodeFromNode(l.body, c)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	c.Channels, c.Env = merged(channels, c.Channels), merged(env, c.Env)
	return nil
}

// merged is below with above laid over it.
func merged[T any](below, above map[string]T) map[string]T {
	all := make(map[string]T, len(below)+len(above))
	maps.Copy(all, below)
	maps.Copy(all, above)
	return all
}

// envAsWritten turns the numbers under a key env into the text that they were
// written as: 0x10 is not 16 in an environment.
type envAsWritten struct{ within bool }

// Visit implements ast.Visitor.
func (e envAsWritten) Visit(node ast.Node) ast.Visitor {
	pair, ok := node.(*ast.MappingValueNode)
	if !ok {
		return e
	}
	if number, ok := pair.Value.(*ast.IntegerNode); ok && e.within {
		text := ast.String(number.GetToken())
		text.SetPath(number.GetPath())
		pair.Value = text
	}
	return envAsWritten{e.within || pair.Key.GetToken() != nil && pair.Key.GetToken().Value == "env"}
}

// inherit fills what an install's own sections leave out with what the top
// level says: {keep: {last: 5}} changes one number, not three. It comes after all
// layers, so that it is the top level's last word; l is the one with the installs.
func (c *Config) inherit(l layer) error {
	for i := range c.Installs {
		in := &c.Installs[i]
		if in.Channel == "" {
			in.Channel = "nightly"
		}
		var err error
		if in.Keep != nil {
			in.Keep, err = own(in.Keep, c.Keep, l, i, "keep")
		}
		if in.Repack != nil && err == nil {
			in.Repack, err = own(in.Repack, c.Repack, l, i, "repack")
		}
		if in.Audit != nil && err == nil {
			in.Audit, err = own(in.Audit, c.Audit, l, i, "audit")
		}
		if err != nil {
			return inOrder([]*Complaint{l.complain(nil, fmt.Sprintf("installs[%d]", i), err)})
		}
	}
	return nil
}

// own decodes installs[i].key over a copy of base. What did not come from a layer
// stays as it is.
func own[T any](there *T, base T, l layer, i int, key string) (*T, error) {
	steps := []string{"installs", fmt.Sprintf("[%d]", i), key}
	if l.body == nil {
		return there, nil
	}
	at, _, whole, _ := l.find(steps)
	if !whole {
		return there, nil
	}
	if pair, is := at.(*ast.MappingValueNode); is && keyOf(pair) == key {
		at = pair.Value
	}
	if err := yaml.NodeToValue(at, &base, yaml.Strict()); err != nil {
		return nil, err
	}
	return &base, nil
}
