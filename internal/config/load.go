package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/rocm-nightly/rocm-nightly/internal/amd"
)

// Places says where Load looks. All paths are the caller's to give, so that
// nothing here depends on the environment.
type Places struct {
	Explicit string   // --config or $ROCM_NIGHTLY_CONFIG: must exist
	Search   []string // the first that exists is taken
	DropIns  string   // directory of *.yaml read after the file, in order of name; "" for none

	DistroData string // a newer amd.yaml than the one built in; "" or absent: none
	AdminData  string // an amd.yaml that is laid over it; "" or absent: none
	NamedData  bool   // AdminData is from $ROCM_NIGHTLY_DATA: must exist
}

// DefaultPlaces returns the places of this process: the user's configuration
// (not for root), then /etc/rocm-nightly/config.yaml with its config.d. The
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
	p.DropIns = "/etc/rocm-nightly/config.d"
	return p
}

// Load reads the configuration. files lists what was read, in order; it is
// empty when there is none and the defaults hold.
func Load(p Places) (c *Config, files []string, err error) {
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
	for _, name := range own {
		src, err := os.ReadFile(name)
		if err != nil {
			return nil, files, fmt.Errorf("read config: %w", err)
		}
		if err := Decode(c, name, src); err != nil {
			return nil, files, err
		}
	}
	if err := c.Validate(); err != nil {
		return nil, files, fmt.Errorf("check config%s: %w", naming(files), err)
	}
	return c, files, nil
}

func naming(files []string) string {
	if len(files) == 0 {
		return ""
	}
	return " " + files[len(files)-1]
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
		_, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read config: %w", err)
		}
		files := []string{name}
		if filepath.Dir(name) == filepath.Dir(p.DropIns) {
			files = append(files, p.dropIns()...)
		}
		return files, nil
	}
	return p.dropIns(), nil
}

func (p Places) dropIns() []string {
	if p.DropIns == "" {
		return nil
	}
	names, err := filepath.Glob(filepath.Join(p.DropIns, "*.yaml"))
	if err != nil {
		return nil // only for a malformed pattern, and this one is not
	}
	// Hidden files are editors' locks and copies.
	names = slices.DeleteFunc(names, func(n string) bool { return strings.HasPrefix(filepath.Base(n), ".") })
	slices.Sort(names)
	return names
}

// Decode reads one YAML file over c: keys that it does not hold keep their
// value, lists replace. Unknown keys are errors with line and column.
func Decode(c *Config, name string, src []byte) error {
	src = bytes.TrimPrefix(src, []byte("\xef\xbb\xbf")) // a byte order mark is legal, and no key
	if len(bytes.TrimSpace(src)) == 0 {
		return nil
	}
	file, err := parser.ParseBytes(src, 0)
	if err != nil {
		return fmt.Errorf("read config %s: %s", name, yaml.FormatError(err, false, true))
	}
	if len(file.Docs) > 1 {
		return fmt.Errorf("read config %s: more than one YAML document", name)
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil // only comments
	}
	ast.Walk(amd.NumbersAsWritten{}, file.Docs[0].Body)
	ast.Walk(envAsWritten{}, file.Docs[0].Body)
	channels := c.Channels
	c.Channels = nil
	err = yaml.NewDecoder(bytes.NewReader(nil), yaml.Strict()).DecodeFromNode(file.Docs[0].Body, c)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read config %s: %s", name, yaml.FormatError(err, false, true))
	}
	for k, v := range channels {
		if _, set := c.Channels[k]; !set {
			if c.Channels == nil {
				c.Channels = map[string]Channel{}
			}
			c.Channels[k] = v
		}
	}
	return c.inherit(name, file.Docs[0].Body)
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
// level says: {keep: {last: 5}} changes one number, not three.
func (c *Config) inherit(name string, doc ast.Node) error {
	for i := range c.Installs {
		in := &c.Installs[i]
		if in.Channel == "" {
			in.Channel = "nightly"
		}
		var err error
		if in.Keep != nil {
			in.Keep, err = over(in.Keep, c.Keep, doc, i, "keep")
		}
		if in.Repack != nil && err == nil {
			in.Repack, err = over(in.Repack, c.Repack, doc, i, "repack")
		}
		if in.Audit != nil && err == nil {
			in.Audit, err = over(in.Audit, c.Audit, doc, i, "audit")
		}
		if err != nil {
			return fmt.Errorf("read config %s: %s", name, yaml.FormatError(err, false, true))
		}
	}
	return nil
}

// over decodes $.installs[i].key over a copy of base. A section that came
// from an earlier file is not in doc: it stays the one that is there.
func over[T any](there *T, base T, doc ast.Node, i int, key string) (*T, error) {
	at, err := yaml.PathString(fmt.Sprintf("$.installs[%d].%s", i, key))
	if err != nil {
		return nil, err
	}
	node, err := at.FilterNode(doc)
	if err != nil || node == nil {
		return there, nil
	}
	if err := yaml.NodeToValue(node, &base, yaml.Strict()); err != nil {
		return nil, err
	}
	return &base, nil
}
