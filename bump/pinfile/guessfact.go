package pinfile

import (
	"slices"
	"strings"
)

// fact is one value of a file, as far as a guess needs it.
type fact struct {
	path     []string // names, outermost first; [n] or [name=value] for an item
	value    string   // decoded; where it is computed, as it is written
	at       int      // offset in the file
	computed bool     // it is not plain, so that it cannot be edited
}

// item takes name[n] apart.
func (f fact) item() (name, index string, ok bool) {
	n := len(f.path)
	if n < 2 || !isItem(f.path[n-1]) {
		return "", "", false
	}
	return f.path[n-2], f.path[n-1], true
}

func isItem(component string) bool { return strings.HasPrefix(component, "[") }

// named is the index of the last component that is a name, -1 if there is none.
func (f fact) named() int {
	i := len(f.path) - 1
	for i >= 0 && isItem(f.path[i]) {
		i--
	}
	return i
}

// name is the last component that is a name.
func (f fact) name() string {
	if i := f.named(); i >= 0 {
		return f.path[i]
	}
	return ""
}

// container is what the value is in: the path without the last name.
func (f fact) container() []string { return f.path[:max(0, f.named())] }

// above reports whether other is in what f is in, at any depth.
func (f fact) above(other fact) bool {
	c, o := f.container(), other.container()
	return len(c) <= len(o) && slices.Equal(c, o[:len(c)])
}

// beside reports whether f is in the same container as a version or one of its
// hashes.
func (f fact) beside(a anchor, hashes []fact) bool {
	c := f.container()
	return slices.Equal(c, a.container()) || slices.ContainsFunc(hashes, func(h fact) bool { return slices.Equal(c, h.container()) })
}

// target is the one that the innermost name tells.
func (f fact) target() string {
	for _, name := range slices.Backward(f.path) {
		if t := targetOfName(name); t != "" {
			return t
		}
	}
	return ""
}

// keyOf returns the shortest key that names f and no other fact.
func keyOf(f fact, all []fact) (string, bool) {
	if slices.Contains(f.path, computed) {
		return "", false
	}
	whole := 0
	for n := 1; n <= len(f.path); n++ {
		suffix := f.path[len(f.path)-n:]
		if isItem(suffix[0]) {
			continue // an item needs the name of its list
		}
		count := 0
		for _, other := range all {
			if !hasSuffix(other.path, suffix) {
				continue
			}
			count++
			if len(other.path) == len(f.path) && n == len(f.path) {
				whole++
			}
		}
		if count == 1 {
			return joinKey(suffix), true
		}
	}
	if whole == 1 {
		return "." + joinKey(f.path), true
	}
	return "", false
}

func hasSuffix(path, suffix []string) bool {
	return len(path) >= len(suffix) && slices.Equal(path[len(path)-len(suffix):], suffix)
}

// joinKey writes components as a key.
func joinKey(parts []string) string {
	var b strings.Builder
	for i, p := range parts {
		switch {
		case isItem(p):
			b.WriteString(p)
			continue
		case i > 0:
			b.WriteByte('.')
		}
		if isBareName(p) {
			b.WriteString(p)
		} else {
			b.WriteString(escapeNix(p))
		}
	}
	return b.String()
}

// siteFacts makes facts of the values that a document lists.
func siteFacts(sites []Site) []fact {
	out := make([]fact, 0, len(sites))
	for _, s := range sites {
		if path, ok := splitKey(s.Path); ok {
			out = append(out, fact{path, s.Value, s.Start, s.Problem != ""})
		}
	}
	return out
}

// splitKey is the inverse of joinKey.
func splitKey(key string) (parts []string, ok bool) {
	for rest := strings.TrimPrefix(key, "."); rest != ""; {
		var part string
		switch rest[0] {
		case '[':
			end := strings.IndexByte(rest, ']')
			if end < 0 {
				return nil, false
			}
			part, rest = rest[:end+1], rest[end+1:]
		case '"':
			end := 1
			for end < len(rest) && rest[end] != '"' {
				if rest[end] == '\\' {
					end++
				}
				end++
			}
			if end >= len(rest) {
				return nil, false
			}
			part, rest = unescapeNix(rest[1:end]), rest[end+1:]
		default:
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			part, rest = rest[:end], rest[end:]
		}
		parts = append(parts, part)
		rest = strings.TrimPrefix(rest, ".")
	}
	return parts, len(parts) > 0
}
