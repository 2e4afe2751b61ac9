package pinfile

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// unescapeJSON returns the value of what stands between the quotes of a string
// of JSON, or of JSON5, and where it holds no escape that there is, else -1.
// Bytes that are not UTF-8 stay as they are.
func unescapeJSON(raw string, ext bool) (string, int) {
	if !strings.Contains(raw, `\`) {
		return raw, -1
	}
	var b strings.Builder
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			b.WriteByte(raw[i])
			i++
			continue
		}
		text, size := jsonEscape(raw[i:], ext)
		if size == 0 {
			return "", i
		}
		b.WriteString(text)
		i += size
	}
	return b.String(), -1
}

// jsonEscape reads the escape that s begins with; its size is 0 if it is none.
func jsonEscape(s string, ext bool) (text string, size int) {
	if len(s) < 2 {
		return "", 0
	}
	if i := strings.IndexByte(`"\/bfnrt`, s[1]); i >= 0 {
		return string("\"\\/\b\f\n\r\t"[i]), 2
	}
	if s[1] == 'u' {
		return unicodeEscape(s)
	}
	if !ext {
		return "", 0
	}
	switch c := s[1]; {
	case c == 'x':
		if n, ok := hexDigits(s, 2, 2); ok {
			return string(n), 4
		}
		return "", 0
	case c == '\r' && len(s) > 2 && s[2] == '\n':
		return "", 3
	case c == '\r', c == '\n':
		return "", 2
	case c == 'v':
		return "\v", 2
	case c == '0' && (len(s) == 2 || !isDigit(s[2])):
		return "\x00", 2
	case isDigit(c):
		return "", 0
	}
	_, n := utf8.DecodeRuneInString(s[1:])
	if c := s[1 : 1+n]; c == "\u2028" || c == "\u2029" {
		return "", 1 + n
	}
	return s[1 : 1+n], 1 + n
}

// unicodeEscape reads \uXXXX, and two of them where they are a surrogate pair;
// half a pair is U+FFFD, as in encoding/json.
func unicodeEscape(s string) (string, int) {
	r, ok := hexDigits(s, 2, 4)
	if !ok {
		return "", 0
	}
	if utf16.IsSurrogate(r) && len(s) >= 12 && s[6:8] == `\u` {
		if low, ok := hexDigits(s, 8, 4); ok {
			if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
				return string(both), 12
			}
		}
	}
	if utf16.IsSurrogate(r) {
		r = utf8.RuneError
	}
	return string(r), 6
}

func hexDigits(s string, off, count int) (rune, bool) {
	if len(s) < off+count || strings.ContainsAny(s[off:off+count], "+-_") {
		return 0, false
	}
	n, err := strconv.ParseUint(s[off:off+count], 16, 32)
	return rune(n), err == nil
}

// escapeJSON returns s as it stands between quotes of that kind.
func escapeJSON(s string, quote byte) []byte {
	var b []byte
	for _, r := range s {
		switch {
		case r == '\\' || r == rune(quote):
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029':
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}
