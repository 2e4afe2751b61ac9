package pinfile

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// oneLine refuses values that are no text of one line: no pin is, and few of
// the formats agree on how to escape what is not.
func oneLine(value string) error {
	if !utf8.ValidString(value) {
		return errors.New("the new value is not UTF-8")
	}
	for _, r := range value {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' {
			return fmt.Errorf("the new value holds %q, which no pin does", r)
		}
	}
	return nil
}

// fitsIn bounds the files of formats whose parser recurses.
func fitsIn(src []byte, limit int) error {
	if len(src) > limit {
		return syntaxAt(src, 0, fmt.Sprintf("the file is longer than %d KiB", limit>>10))
	}
	return nil
}

// encodeDigits writes a number where a number stands.
func encodeDigits(v string) ([]byte, error) {
	if v == "" || len(v) > 19 || v[0] == '0' && v != "0" {
		return nil, fmt.Errorf("%.40q is no whole number, and a number stands there", v)
	}
	for i := range len(v) {
		if !isDigit(v[i]) {
			return nil, fmt.Errorf("%.40q is no whole number, and a number stands there", v)
		}
	}
	return []byte(v), nil
}
