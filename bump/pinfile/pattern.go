package pinfile

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// patternDoc is a file that is read by a regular expression (RE2, as the
// package regexp has it; ^ and $ are the ends of the file unless it begins with
// (?m)). A key is the name of a group.
type patternDoc struct {
	leaves
	groups []string
}

// Bounds of an expression, and of how often it may match.
const (
	maxPattern = 4 << 10
	maxMatches = 10_000
)

func parsePattern(src []byte, o Options) (document, error) {
	switch {
	case o.Pattern == "":
		return nil, errors.New(`the format regex has no pattern (write e.g. pattern: '(?m)^VERSION := (?P<version>\S+)$')`)
	case len(o.Pattern) > maxPattern:
		return nil, fmt.Errorf("the pattern is longer than %d bytes", maxPattern)
	}
	re, err := regexp.Compile(o.Pattern)
	if err != nil {
		return nil, fmt.Errorf("read pattern: %w (the syntax is RE2's)", err)
	}
	d := &patternDoc{}
	d.src, d.assign = src, `\s*[:=]`
	for _, name := range re.SubexpNames() {
		if name != "" && !slices.Contains(d.groups, name) {
			d.groups = append(d.groups, name)
		}
	}
	if len(d.groups) == 0 {
		return nil, errors.New(`the pattern has no named group, which would be a key (write (?P<version>…))`)
	}
	matches := re.FindAllSubmatchIndex(src, maxMatches+1)
	if len(matches) > maxMatches {
		return nil, fmt.Errorf("the pattern matches more than %d times", maxMatches)
	}
	for _, m := range matches {
		for g, name := range re.SubexpNames() {
			if name == "" || m[2*g] < 0 {
				continue
			}
			d.all = append(d.all, leaf{path: &attrNode{name: name}, Site: Site{
				At: m[2*g], Start: m[2*g], End: m[2*g+1], Value: string(src[m[2*g]:m[2*g+1]]), Encode: encodeRaw,
			}})
		}
	}
	return d, nil
}

// encodeRaw writes a value as it is: there is no syntax that could hold it.
func encodeRaw(v string) ([]byte, error) {
	if err := checkText(v); err != nil {
		return nil, err
	}
	if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return nil, errors.New("the new value holds a control character, which would be written as it is")
	}
	return []byte(v), nil
}

func (d *patternDoc) find(key string) ([]Site, []Near, error) {
	k, err := readKey(key)
	if err != nil {
		return nil, nil, err
	}
	if len(k.steps) != 1 || !slices.Contains(d.groups, k.last()) {
		return nil, nil, fmt.Errorf("find %.100q: the pattern has no such group (it has: %s)", key, strings.Join(d.groups, ", "))
	}
	return d.leaves.find(key)
}

// urls finds addresses anywhere in the file, with the groups as names.
func (d *patternDoc) urls() []URL {
	whole := leaves{src: d.src, all: append([]leaf{{
		path: &attrNode{dynamic: true},
		Site: Site{Start: 0, End: len(d.src), Value: string(d.src)},
	}}, d.all...)}
	for i := range whole.all[1:] {
		whole.all[i+1].path = &attrNode{name: whole.all[i+1].path.name}
	}
	x := &expander{leaves: &whole}
	var out []URL
	for _, m := range addressRE.FindAllStringIndex(whole.all[0].Value, maxAddresses) {
		m[1] = m[0] + len(strings.TrimRight(whole.all[0].Value[m[0]:m[1]], ".,;:)]"))
		var c composer
		x.expand(&c, &whole.all[0], m[0], m[1], 0)
		if u, ok := c.url(d.src, m[0], nil); ok {
			out = append(out, u)
		}
	}
	return out
}
