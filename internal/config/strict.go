package config

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// strict compares what a layer says with what can be said, value by value, so that
// everything that is wrong is found at once.
type strict struct {
	layer
	wrong []*Complaint
	nodes int // looked at
}

// check returns all complaints about the form of l.
func (l layer) check() []*Complaint {
	if l.body == nil {
		return nil
	}
	s := &strict{layer: l}
	s.value(l.body, reflect.TypeFor[Config](), "")
	return s.wrong
}

func (s *strict) add(at ast.Node, key, format string, args ...any) {
	if len(s.wrong) == maxWrong {
		return
	}
	s.wrong = append(s.wrong, s.complain(at, key, fmt.Errorf(format, args...)))
}

var textType = reflect.TypeFor[encoding.TextUnmarshaler]()

// plain reports whether t is read from the text of one value, not from its fields.
func plain(t reflect.Type) bool { return reflect.PointerTo(t).Implements(textType) }

func (s *strict) value(n ast.Node, t reflect.Type, key string) {
	if s.nodes++; s.nodes > maxNodes {
		if s.nodes == maxNodes+1 {
			s.wrong = s.wrong[:min(len(s.wrong), maxWrong-1)]
			s.add(n, key, "there are more than %d values, with what aliases stand for", maxNodes)
		}
		return
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if n == nil || n.Type() == ast.NullType {
		return // what is not said
	}
	switch {
	case plain(t):
		s.scalar(n, t, key)
	case t.Kind() == reflect.Struct:
		s.section(n, t, key)
	case t.Kind() == reflect.Map:
		s.table(n, t, key)
	case t.Kind() == reflect.Slice:
		items, ok := n.(*ast.SequenceNode)
		if !ok {
			s.add(n, key, "is no list: write [a, b], or a line with a dash for each")
			return
		}
		for i, item := range items.Values {
			s.value(item, t.Elem(), fmt.Sprintf("%s[%d]", key, i))
		}
	default:
		s.scalar(n, t, key)
	}
}

// keyed lists the pairs of a mapping, and complains about those that are there twice.
func (s *strict) keyed(n ast.Node, key string) []*ast.MappingValueNode {
	all, ok := pairs(n)
	if !ok {
		what := key
		if what == "" {
			what = "the config"
		}
		s.add(n, key, "is no section: write lines of key: value under %s", what)
		return nil
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(all), func(p *ast.MappingValueNode) bool {
		name := keyOf(p)
		if seen[name] {
			s.add(p, join(key, name), "is there twice")
			return true
		}
		seen[name] = true
		return false
	})
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

func (s *strict) table(n ast.Node, t reflect.Type, key string) {
	for _, p := range s.keyed(n, key) {
		s.value(p.Value, t.Elem(), join(key, keyOf(p)))
	}
}

func (s *strict) section(n ast.Node, t reflect.Type, key string) {
	known := keysOf(t)
	for _, p := range s.keyed(n, key) {
		name := keyOf(p)
		i := slices.IndexFunc(known, func(k field) bool { return k.name == name })
		if i < 0 {
			s.add(p, join(key, shortened(name)), "there is no such key%s", suggestion(name, key, known))
			continue
		}
		s.value(p.Value, known[i].of, join(key, name))
	}
}

// shortened bounds what an error repeats of a file.
func shortened(name string) string {
	if len(name) > 60 {
		return strings.ToValidUTF8(name[:60], "") + "…"
	}
	return name
}

// field is a key of a section.
type field struct {
	name  string
	of    reflect.Type
	index int
}

// keysOf lists the keys of a section.
func keysOf(t reflect.Type) []field {
	var keys []field
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		if name != "" && name != "-" {
			keys = append(keys, field{name, t.Field(i).Type, i})
		}
	}
	return keys
}

// suggestion says which key may have been meant: one of that name elsewhere, or the
// nearest of the section.
func suggestion(name, section string, known []field) string {
	for _, v := range Variables() {
		if v.Key != join(section, name) && last(v.Key) == name && strings.Contains(v.Key, ".") {
			return fmt.Sprintf(" (did you mean %s?)", v.Key)
		}
	}
	for _, k := range keysOf(reflect.TypeFor[Config]()) {
		if k.name == name {
			return fmt.Sprintf(" (%s stands at the top level)", name)
		}
	}
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = k.name
	}
	if near := nearest(name, names); near != "" {
		return fmt.Sprintf(" (did you mean %s?)", near)
	}
	return ""
}

// nearest is the candidate that takes the fewest edits to make of name, "" if none is
// near enough to be meant.
func nearest(name string, candidates []string) string {
	best, least := "", max(1, min(len(name)/3, 4))+1
	if len(name) > 100 {
		return ""
	}
	for _, c := range candidates {
		if d := distance(name, c); d < least {
			best, least = c, d
		}
	}
	return best
}

// distance counts the letters to put in, take out, replace or swap with their
// neighbour to make b of a.
func distance(a, b string) int {
	before, last := []int{}, make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

func (s *strict) scalar(n ast.Node, t reflect.Type, key string) {
	if _, scalar := n.(ast.ScalarNode); !scalar {
		s.add(n, key, "a %s is no plain value", strings.ToLower(n.Type().String()))
		return
	}
	into := reflect.New(t)
	err := yaml.NodeToValue(n, into.Interface(), yaml.Strict())
	if err == nil {
		return
	}
	var own *valueError
	if errors.As(err, &own) {
		s.add(n, key, "%w", own.err)
		return
	}
	switch t.Kind() {
	case reflect.Bool:
		s.add(n, key, "is neither true nor false")
	case reflect.Int, reflect.Int64:
		s.add(n, key, "is no whole number")
	case reflect.Float64:
		s.add(n, key, "is no number")
	default:
		s.add(n, key, "is no text")
	}
}
