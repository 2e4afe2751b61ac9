package bump

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
)

// maxValue bounds what a template may expand to, in bytes.
const maxValue = 64 << 10

// errTooLong stops a template that writes without end.
var errTooLong = fmt.Errorf("the value is longer than %d bytes", maxValue)

// maxRounds bounds how often loops and named templates may run in one
// expansion: a loop that writes nothing would go on for hours all the same.
const maxRounds = 10_000

var errTooOften = fmt.Errorf("its loops run more than %d times", maxRounds)

// readTemplate parses text; what comes of it ends.
func readTemplate(key, text string) (*template.Template, error) {
	rounds := 0
	tick := func() (string, error) {
		if rounds++; rounds > maxRounds {
			return "", errTooOften
		}
		return "", nil
	}
	t, err := template.New(key).Option("missingkey=error").Funcs(template.FuncMap{"tick": tick}).Parse(text)
	if err != nil {
		return nil, err
	}
	count, err := t.New("").Parse("{{tick}}")
	if err != nil {
		return nil, err
	}
	for _, part := range t.Templates() {
		if part.Tree != nil && part.Name() != "" {
			part.Root.Nodes = slices.Concat(count.Root.Nodes, part.Root.Nodes)
			countLoops(part.Root, count.Root.Nodes)
		}
	}
	return t, nil
}

// countLoops puts count at the beginning of what each loop below list repeats.
func countLoops(list *parse.ListNode, count []parse.Node) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.RangeNode:
			countLoops(n.List, count)
			countLoops(n.ElseList, count)
			n.List.Nodes = slices.Concat(count, n.List.Nodes)
		case *parse.IfNode:
			countLoops(n.List, count)
			countLoops(n.ElseList, count)
		case *parse.WithNode:
			countLoops(n.List, count)
			countLoops(n.ElseList, count)
		}
	}
}

// boundedText is a strings.Builder that refuses to grow past maxValue.
type boundedText struct{ strings.Builder }

func (b *boundedText) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxValue {
		return 0, errTooLong
	}
	return b.Builder.Write(p)
}

// execute returns what text comes to over data.
func execute(key, text string, data any) (string, error) {
	t, err := readTemplate(key, text)
	if err != nil {
		return "", err
	}
	var b boundedText
	err = t.Execute(&b, data)
	for _, plain := range []error{errTooLong, errTooOften} {
		if errors.Is(err, plain) {
			err = plain
		}
	}
	return b.String(), err
}

// CheckTemplate reports what is wrong with a template over an example of what it
// will see, a Pin or a Summary. It ends, whatever text says.
func CheckTemplate(text string, example any) error {
	_, err := execute("template", text, example)
	return err
}

// expand returns the value of one template over pin. An empty value is an
// error: it would blank the pin.
func expand(path, key, text string, pin Pin) (string, error) {
	value, err := execute(key, text, pin)
	if err != nil {
		return "", fmt.Errorf("expand template of %s for %s: %w (fields are Version, URL, SRI, Hex, Nix32, Size, Date, Family, Target, Channel, Name)", key, path, err)
	}
	if value == "" {
		return "", fmt.Errorf("expand template of %s for %s: %q gives an empty value", key, path, text)
	}
	return value, nil
}
