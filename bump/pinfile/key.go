package pinfile

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A key of a set names one value of a file. It is the end of the value's path,
// outermost name first:
//
//	version                  any value of that name
//	gfx1151.version          in a table, an attribute set or an object called so
//	.version                 the value whose whole path this is
//	"a.b".version            a name with dots or spaces, quoted as in Nix
//	archives[0].sha256       an item of a list, counted from 0
//	archives[arch=gfx1151].sha256
//	                         the item, or the member, whose field arch says so;
//	                         a value with ] or spaces is quoted
//	gfx1151[channel=dev].sha256
//	                         the object of that name, if its field says so
//	/archives/0/sha256       a JSON pointer (RFC 6901), always the whole path
//
// Lists may be left out: archives.sha256 names the same as
// archives[0].sha256, as long as only one item has it. A list's own items are
// named with [n] only. Where a YAML file holds several documents, they are the
// items of a list without a name.
type pathKey struct {
	steps []keyStep // outermost first
	whole bool
}

// stepKind is a kind of keyStep.
type stepKind uint8

const (
	stepName    stepKind = iota
	stepIndex            // [n]
	stepField            // [name=value]
	stepPointer          // of a JSON pointer: a name, or a number in a list
)

type keyStep struct {
	kind  stepKind
	name  string
	value string // of stepField
	index int    // of stepIndex
}

// maxKeyLen bounds a key, in bytes and in steps.
const (
	maxKeyLen   = 4 << 10
	maxKeySteps = 100
)

// readKey parses a key. Its errors show the key.
func readKey(key string) (pathKey, error) {
	fail := func(err error) (pathKey, error) {
		return pathKey{}, fmt.Errorf("read key %.100q: %w", key, err)
	}
	switch {
	case len(key) > maxKeyLen:
		return fail(fmt.Errorf("it is longer than %d bytes", maxKeyLen))
	case !utf8.ValidString(key):
		return fail(errors.New("it is not UTF-8"))
	case strings.HasPrefix(key, "/"):
		return readPointer(key)
	}
	rest, whole := strings.CutPrefix(key, ".")
	k := pathKey{whole: whole}
	for first := true; ; first = false {
		var err error
		if !first || !strings.HasPrefix(rest, "[") {
			var name string
			if name, rest, err = cutName(rest); err == nil && !utf8.ValidString(name) {
				err = errors.New("a component is not UTF-8")
			}
			if err != nil {
				return fail(err)
			}
			k.steps = append(k.steps, keyStep{kind: stepName, name: name})
		}
		for strings.HasPrefix(rest, "[") {
			var s keyStep
			if s, rest, err = cutSelector(rest); err != nil {
				return fail(err)
			}
			k.steps = append(k.steps, s)
		}
		switch {
		case len(k.steps) > maxKeySteps:
			return fail(fmt.Errorf("it has more than %d components", maxKeySteps))
		case rest == "":
			return k, nil
		case rest[0] != '.':
			return fail(fmt.Errorf("a dot must come before %.100q", rest))
		}
		rest = rest[1:]
	}
}

// readPointer parses /a/b/0: ~1 stands for a slash and ~0 for a tilde.
func readPointer(key string) (pathKey, error) {
	k := pathKey{whole: true}
	for part := range strings.SplitSeq(key[1:], "/") {
		if len(k.steps) == maxKeySteps {
			return pathKey{}, fmt.Errorf("read key %.100q: it has more than %d components", key, maxKeySteps)
		}
		name := strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		k.steps = append(k.steps, keyStep{kind: stepPointer, name: name})
	}
	return k, nil
}

// cutSelector reads [n], [name=value] or [name="value"].
func cutSelector(s string) (step keyStep, rest string, err error) {
	inner, rest, closed := strings.Cut(s[1:], "]")
	if !closed {
		return step, "", errors.New("a [ is never closed")
	}
	if n, err := strconv.ParseUint(inner, 10, 31); err == nil {
		return keyStep{kind: stepIndex, index: int(n)}, rest, nil
	}
	name, tail, err := cutSelectorName(s[1:])
	if err != nil {
		return step, "", err
	}
	step = keyStep{kind: stepField, name: name}
	if strings.HasPrefix(tail, `"`) {
		if step.value, rest, err = cutQuoted(tail); err != nil {
			return step, "", err
		}
		if !strings.HasPrefix(rest, "]") {
			return step, "", errors.New(`a ] must follow the value in [name="value"]`)
		}
		return step, rest[1:], nil
	}
	step.value, rest, closed = strings.Cut(tail, "]")
	if !closed {
		return step, "", errors.New("a [ is never closed")
	}
	return step, rest, nil
}

// cutSelectorName reads name= of a selector.
func cutSelectorName(s string) (name, tail string, err error) {
	if strings.HasPrefix(s, `"`) {
		name, tail, err = cutQuoted(s)
	} else {
		end := strings.IndexAny(s, "=]")
		name, tail = s[:max(end, 0)], s[max(end, 0):]
	}
	switch {
	case err != nil:
		return "", "", err
	case name == "" || !strings.HasPrefix(tail, "="):
		return "", "", errors.New("in [ ] stands a number, counted from 0, or name=value")
	}
	return name, tail[1:], nil
}

// cutName reads one component, bare or in double quotes.
func cutName(s string) (name, rest string, err error) {
	if strings.HasPrefix(s, `"`) {
		return cutQuoted(s)
	}
	end := strings.IndexAny(s, ".[")
	if end < 0 {
		end = len(s)
	}
	if name = s[:end]; !isBareName(name) && !isNumbered(name) {
		return "", "", fmt.Errorf("%.100q is not an attribute name (want a name, a dotted path, or \"quoted\" components)", name)
	}
	return name, s[end:], nil
}

// cutQuoted reads "…", with Nix's escapes.
func cutQuoted(s string) (text, rest string, err error) {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return unescapeNix(s[1:i]), s[i+1:], nil
		}
	}
	return "", "", errors.New("a quote is never closed")
}

// isNumbered accepts names such as 7zip, which Nix wants quoted and people
// write without.
func isNumbered(s string) bool {
	return s != "" && isDigit(s[0]) && isBareName("_"+s)
}

// fieldOf tells whether what stands at n has a field of that value.
type fieldOf func(n *attrNode, name, value string) bool

// matches reports whether k names the value at n.
func (k pathKey) matches(n *attrNode, has fieldOf) bool {
	return k.matchesFrom(len(k.steps)-1, n, has)
}

// matchesFrom matches the steps up to i with n and what is around it.
func (k pathKey) matchesFrom(i int, n *attrNode, has fieldOf) bool {
	for ; i >= 0; i-- {
		s := k.steps[i]
		if s.kind == stepName && i < len(k.steps)-1 {
			n = n.outOfLists()
		}
		switch {
		case n == nil || n.dynamic:
			return false
		case s.kind != stepField:
			if !s.is(n) {
				return false
			}
		case !has(n, s.name, s.value):
			return false
		case !n.item && k.matchesFrom(i-1, n, has):
			return true // the object itself, whose name came before
		}
		n = n.parent
	}
	if !k.whole {
		return true
	}
	if k.steps[0].kind != stepPointer {
		n = n.outOfLists()
	}
	return n == nil
}

// is compares s, which is no field, with one component of a path.
func (s keyStep) is(n *attrNode) bool {
	switch {
	case s.kind == stepPointer && n.item:
		return s.name == strconv.Itoa(n.index)
	case s.kind == stepIndex:
		return n.item && s.index == n.index
	}
	return !n.item && s.name == n.name
}

// outOfLists returns the innermost component at n or around it that is no item
// of a list.
func (n *attrNode) outOfLists() *attrNode {
	for n != nil && n.item {
		n = n.parent
	}
	return n
}

// last is the innermost name in k, "" if there is none.
func (k pathKey) last() string {
	for i := len(k.steps) - 1; i >= 0; i-- {
		if s := k.steps[i]; s.kind == stepName || s.kind == stepPointer {
			return s.name
		}
	}
	return ""
}
