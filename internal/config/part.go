package config

import (
	"github.com/goccy/go-yaml/ast"

	"github.com/rocm-nightly/rocm-nightly/internal/omit"
)

// Part is a part of a tarball that can be left out, by the name of its rule.
type Part string

// Parts lists what can be left out.
func Parts() []string { return omit.Names() }

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (p *Part) UnmarshalYAML(node ast.Node) error { return fromNode(p, node) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Part) UnmarshalText(b []byte) error {
	if err := omit.Check([]string{string(b)}); err != nil {
		return err
	}
	*p = Part(b)
	return nil
}

// Leaves returns the names of what is left out.
func (r Repack) Leaves() []string {
	var names []string
	for _, p := range r.Omit {
		names = append(names, string(p))
	}
	return names
}
