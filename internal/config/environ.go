package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// variablePrefix begins every variable that sets a key. The second underscore keeps
// them apart from what this program sets for hooks and shells (ROCM_NIGHTLY_PREFIX).
const variablePrefix = "ROCM_NIGHTLY__"

// Variable is a variable of the environment that sets a key, over all files.
type Variable struct {
	Name string // ROCM_NIGHTLY__POLICY__SERIES
	Key  string // policy.series
	Form string // text, number, true or false, list, or section: the last two in YAML's brackets

	of reflect.Type
}

// Variables lists those that there are: one for every key that is no section of
// fixed keys, in the order of config.yaml.
func Variables() []Variable { return slices.Clone(variables()) }

// variables is worked out once: it never changes.
var variables = sync.OnceValue(func() []Variable {
	return variablesOf(reflect.TypeFor[Config](), variablePrefix, "")
})

func variablesOf(t reflect.Type, prefix, section string) []Variable {
	var all []Variable
	for _, k := range keysOf(t) {
		name, key := prefix+strings.ToUpper(k.name), join(section, k.name)
		if k.of.Kind() == reflect.Struct && !plain(k.of) {
			all = append(all, variablesOf(k.of, name+"__", key)...)
			continue
		}
		all = append(all, Variable{Name: name, Key: key, Form: formOf(k.of), of: k.of})
	}
	return all
}

func formOf(t reflect.Type) string {
	switch {
	case plain(t) || t.Kind() == reflect.String:
		return "text"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Slice:
		return "list"
	case t.Kind() == reflect.Map:
		return "section"
	}
	return "number"
}

// reserved are variables that are written like a key with one underscore, and are
// something else: env is what shells have entered.
var reserved = map[string]bool{"ROCM_NIGHTLY_CONFIG": true, "ROCM_NIGHTLY_DATA": true, "ROCM_NIGHTLY_ENV": true}

// overrides makes a layer of every variable of environ (NAME=value) that sets a key.
func overrides(environ []string) (layers []layer, wrong []*Complaint) {
	for _, pair := range slices.Sorted(slices.Values(environ)) {
		name, value, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, "ROCM_NIGHTLY_") || reserved[name] {
			continue
		}
		l := layer{variable: name}
		i := slices.IndexFunc(variables(), func(v Variable) bool { return v.Name == name })
		if i < 0 {
			if err := misnamed(name); err != nil {
				wrong = append(wrong, l.complain(nil, "", err))
			}
			continue
		}
		l, c := l.set(variables()[i], value)
		if c != nil {
			wrong = append(wrong, c)
			continue
		}
		layers = append(layers, l)
	}
	return layers, wrong
}

// misnamed is the error about a variable that looks like one of ours and is not.
func misnamed(name string) error {
	var names []string
	for _, v := range variables() {
		if run(v.Name) == run(name) {
			return fmt.Errorf("sets nothing: did you mean %s?", v.Name)
		}
		names = append(names, v.Name)
	}
	if !strings.HasPrefix(name, variablePrefix) {
		return nil // a hook's, or somebody's own
	}
	for _, v := range names {
		if strings.HasPrefix(v, name+"__") {
			return fmt.Errorf("names a section, which has a variable for each of its keys: %s, …", v)
		}
	}
	if near := nearest(name, names); near != "" {
		return fmt.Errorf("there is no such key: did you mean %s?", near)
	}
	return errors.New("there is no such key: docs/config.md lists the variables that set one")
}

// run is the name of a variable with each run of underscores as one, in capitals:
// what is alike by it is meant to be the same.
func run(name string) string {
	words := strings.FieldsFunc(strings.ToUpper(name), func(r rune) bool { return r == '_' })
	return strings.Join(words, "_")
}

// set makes a layer in which v.Key alone has a value.
func (l layer) set(v Variable, value string) (layer, *Complaint) {
	node, err := v.node(l, value)
	if err != nil {
		return l, l.complain(nil, v.Key, err)
	}
	words := strings.Split(v.Key, ".")
	text := strings.Join(words, ": {") + ": 0" + strings.Repeat("}", len(words)-1)
	file, err := parser.ParseBytes([]byte("{"+text+"}"), 0)
	if err != nil {
		return l, l.complain(nil, v.Key, err)
	}
	l.body = file.Docs[0].Body
	for at := l.body; ; {
		in, _ := pairs(at)
		if _, deeper := pairs(in[0].Value); !deeper {
			in[0].Value = node
			break
		}
		at = in[0].Value
	}
	ast.Walk(envAsWritten{}, l.body)
	return l, nil
}

// node is the value of a variable: text as it is, the rest as YAML.
func (v Variable) node(l layer, value string) (ast.Node, error) {
	if len(value) > maxFile {
		return nil, fmt.Errorf("is longer than %d bytes", maxFile)
	}
	if v.Form == "text" {
		if err := plausible([]byte(value)); err != nil && v.of.Kind() == reflect.String {
			return nil, err
		}
		text := ast.String(token.New(value, value, &token.Position{}))
		text.Token.Type = token.StringType
		return text, nil
	}
	if strings.TrimSpace(value) == "" {
		return nil, errors.New("is empty: unset it, or give it a value")
	}
	parsed, c := l.parse([]byte(value))
	if c != nil {
		return nil, c.Err
	}
	if v.Form == "list" && !strings.HasPrefix(strings.TrimSpace(value), "[") {
		return nil, errors.New("is no list: write [a, b]")
	}
	if v.Form == "section" && !strings.HasPrefix(strings.TrimSpace(value), "{") {
		return nil, errors.New("is no section: write {key: value}")
	}
	if parsed.body == nil {
		return nil, errors.New("is nothing but a comment")
	}
	if parsed.body.Type() == ast.NullType {
		return nil, errors.New("is empty: unset it, or give it a value")
	}
	return parsed.body, nil
}
