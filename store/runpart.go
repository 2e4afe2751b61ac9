package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/rocm-nightly/rocm-nightly/internal/schema"
)

// ReadRunPart is ReadRun, but that the named fields of the record are passed over,
// as if they were null: a record is read in a tenth of the time without its audit,
// which may be nearly all of it. What is wrong inside of them is not noticed.
func (sl *Slot) ReadRunPart(name string, v any, without ...string) error {
	if err := errors.Join(sl.err, checkName("run", name)); err != nil {
		return fmt.Errorf("read run: %w", err)
	}
	b, err := readFile(sl.path(runsName, name+runSuffix), maxRunLen)
	if err != nil {
		return fmt.Errorf("read run %s: %w", name, err)
	}
	b = withoutFields(b, without)
	now, err := runFormat.Read(b)
	switch {
	case err == nil:
		b = now
	case !errors.Is(err, schema.ErrNone): // whose a record without one is, is the caller's to say
		return fmt.Errorf("read run %s: %w", name, err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("read run %s: %w", name, err)
	}
	return nil
}

// withoutFields returns the JSON object b with null for the named fields. What is
// no object comes back as it is: who decodes it says what is wrong.
func withoutFields(b []byte, names []string) []byte {
	var out []byte
	done := 0 // what of b is in out
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '{' {
		return b
	}
	for i++; ; i++ {
		key := skipSpace(b, i)
		colon := skipSpace(b, skipString(b, key))
		if colon >= len(b) || b[colon] != ':' {
			break // the end of it, or nothing that is JSON
		}
		value := skipSpace(b, colon+1)
		i = skipValue(b, value)
		if i > len(b) || i == value {
			return b
		}
		var name string
		if json.Unmarshal(b[key:skipString(b, key)], &name) == nil && slices.Contains(names, name) {
			out = append(append(out, b[done:value]...), "null"...)
			done = i
		}
		if i = skipSpace(b, i); i >= len(b) || b[i] != ',' {
			break
		}
	}
	if done == 0 {
		return b
	}
	return append(out, b[done:]...)
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipString returns the index behind the string that begins at i; beyond the end
// where there is none, or it does not end.
func skipString(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return len(b) + 1
	}
	for i++; i < len(b); i++ {
		n := bytes.IndexAny(b[i:], `"\`)
		if n < 0 {
			break
		}
		if i += n; b[i] == '"' {
			return i + 1
		}
		i++ // what is escaped
	}
	return len(b) + 1
}

// skipValue returns the index behind the value that begins at i; beyond the end
// where it does not end.
func skipValue(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = skipString(b, i) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i // of what is around a number
			}
			depth--
		case ',', ' ', '\n', '\r', '\t':
			if depth == 0 {
				return i
			}
			i++
			continue
		default:
			i++
			continue
		}
		if i++; depth == 0 {
			return i
		}
	}
	return i
}
