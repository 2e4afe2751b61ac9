package diff

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// rockPath is where a tree says what it was built from.
const rockPath = "share/therock/therock_manifest.json"

// Limits of a therock_manifest.json. AMD's have 20 submodules and 10 kB.
const (
	maxRock       = 4 << 20 // bytes
	maxSubmodules = 1000
	maxPatches    = 1000 // of one submodule
	maxFlags      = 500
	maxWord       = 512 // bytes of a name, URL, commit or flag
)

// rockManifest is a therock_manifest.json, as build_tools/
// generate_therock_manifest.py of TheRock writes it. Commits are null where it
// was built without git.
type rockManifest struct {
	Commit     string                     `json:"the_rock_commit"`
	Package    string                     `json:"rocm_package_version"`
	ROCm       string                     `json:"rocm_version"`
	Submodules []rockSubmodule            `json:"submodules"`
	Flags      map[string]json.RawMessage `json:"flags"`
}

type rockSubmodule struct {
	Name    string   `json:"submodule_name"`
	Path    string   `json:"submodule_path"`
	URL     string   `json:"submodule_url"`
	Pin     string   `json:"pin_sha"`
	Patches []string `json:"patches"`
}

// parseRock reads a therock_manifest.json. What is too long to be meant is an
// error.
func parseRock(b []byte) (*rockManifest, error) {
	var m rockManifest
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, err
	}
	words := []string{m.Commit, m.Package, m.ROCm}
	for i := range m.Submodules {
		s := &m.Submodules[i]
		words = append(words, s.Name, s.Path, s.URL, s.Pin)
		if words = append(words, s.Patches...); len(s.Patches) > maxPatches {
			return nil, fmt.Errorf("it has %d patches of one submodule", len(s.Patches))
		}
	}
	if len(m.Submodules) > maxSubmodules || len(m.Flags) > maxFlags {
		return nil, fmt.Errorf("it has %d submodules and %d flags", len(m.Submodules), len(m.Flags))
	}
	for name := range m.Flags {
		words = append(words, name)
	}
	if slices.ContainsFunc(words, func(w string) bool { return len(w) > maxWord }) {
		return nil, fmt.Errorf("a name in it has more than %d bytes", maxWord)
	}
	return &m, nil
}

// readRock reads the manifest of one side; nil if there is none.
func (c *comparer) readRock(s *side) *rockManifest {
	f := s.byPath[rockPath]
	if f == nil {
		return nil
	}
	b, err := s.text(rockPath, maxRock)
	var m *rockManifest
	if err == nil {
		m, err = parseRock(b)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.note("therock_manifest.json of "+s.Name, "", err)
	}
	return m
}

// sources compares what the two trees were built from.
func (c *comparer) sources(context.Context) error {
	c.a.rock, c.b.rock = c.readRock(c.a), c.readRock(c.b)
	for _, s := range []*side{c.a, c.b} {
		if s.Version == "" && s.rock != nil {
			s.Version = s.rock.Package
		}
	}
	if c.a.rock == nil && c.b.rock == nil {
		return nil
	}
	a, b := orEmpty(c.a.rock), orEmpty(c.b.rock)
	src := &Sources{Rock: Commit{From: a.Commit, To: b.Commit, Link: rangeLink(theRock, a.Commit, theRock, b.Commit)}}
	c.r.Sources = src
	if c.a.rock == nil || c.b.rock == nil {
		c.note("submodules: only one of the two has a therock_manifest.json that can be read", "", nil)
		return nil
	}
	was, is := submodules(a), submodules(b)
	for _, name := range bothKeys(was, is) {
		if s, differs := compareSubmodule(name, was[name], is[name]); differs {
			src.Submodules = append(src.Submodules, s)
		} else {
			src.Same++
		}
	}
	for _, name := range bothKeys(a.Flags, b.Flags) {
		if from, to := flagText(a.Flags[name]), flagText(b.Flags[name]); from != to {
			src.Flags = append(src.Flags, Flag{name, from, to})
		}
	}
	return nil
}

// theRock is where the_rock_commit is a commit of.
const theRock = "https://github.com/ROCm/TheRock"

func orEmpty(m *rockManifest) *rockManifest {
	if m == nil {
		return &rockManifest{}
	}
	return m
}

// submodules maps names to submodules, the first of each name.
func submodules(m *rockManifest) map[string]*rockSubmodule {
	out := map[string]*rockSubmodule{}
	for i := range m.Submodules {
		s := &m.Submodules[i]
		name := s.Name
		if name == "" {
			name = s.Path
		}
		if out[name] == nil {
			out[name] = s
		}
	}
	return out
}

// bothKeys are the keys of two maps, sorted.
func bothKeys[V any](a, b map[string]V) []string {
	var keys []string
	for k := range a {
		keys = append(keys, k)
	}
	for k := range b {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// compareSubmodule says how a submodule differs, if it does.
func compareSubmodule(name string, a, b *rockSubmodule) (Submodule, bool) {
	s := Submodule{Name: name}
	switch {
	case a == nil:
		s.Why, s.Path, s.URL, s.To, s.PatchesTo = "added", b.Path, b.URL, b.Pin, len(b.Patches)
		s.Link = rangeLink("", "", b.URL, b.Pin)
		return s, true
	case b == nil:
		s.Why, s.Path, s.URL, s.From, s.PatchesFrom = "removed", a.Path, a.URL, a.Pin, len(a.Patches)
		return s, true
	}
	s.Path, s.URL, s.From, s.To = b.Path, b.URL, a.Pin, b.Pin
	s.PatchesFrom, s.PatchesTo = len(a.Patches), len(b.Patches)
	s.PatchesAdded, s.PatchesRemoved = missing(b.Patches, a.Patches), missing(a.Patches, b.Patches)
	moved := a.URL != b.URL && !sameRepository(a.URL, b.URL)
	switch {
	case moved:
		s.Why = "moved"
	case a.Pin != b.Pin:
		s.Why = "changed"
	case len(s.PatchesAdded)+len(s.PatchesRemoved) > 0:
		s.Why = "patches"
	default:
		return s, false
	}
	if a.Pin != b.Pin || moved {
		s.Link = rangeLink(a.URL, a.Pin, b.URL, b.Pin)
	}
	return s, true
}

// missing are the strings of list that are not in from, sorted.
func missing(list, from []string) []string {
	has := make(map[string]bool, len(from))
	for _, s := range from {
		has[s] = true
	}
	var out []string
	for _, s := range list {
		if !has[s] {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// flagText is a flag's value in one line, at most 200 bytes.
func flagText(raw json.RawMessage) string {
	var b bytes.Buffer
	if len(raw) == 0 || json.Compact(&b, raw) != nil {
		return ""
	}
	s := b.String()
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}
