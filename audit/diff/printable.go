package diff

import (
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxShown bounds one string of a report, bytes.
const maxShown = 1000

// settle makes every string of the report printable and of bounded length, and
// every list one that JSON writes as such.
func (r *Report) settle() { settleValue(reflect.ValueOf(r).Elem()) }

func settleValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			settleValue(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			settleValue(v.Field(i))
		}
	case reflect.Slice:
		if v.IsNil() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		for i := range v.Len() {
			settleValue(v.Index(i))
		}
	case reflect.String:
		if s := v.String(); len(s) > maxShown || !isPrintable(s) {
			v.SetString(printable(s))
		}
	}
}

// printable writes control characters, invisible ones, those that turn the
// direction of writing, and bytes that are not UTF-8 as escapes of Go. What is
// longer than maxShown is cut.
func printable(s string) string {
	var b strings.Builder
	for rest := s; rest != ""; {
		if b.Len() >= maxShown {
			b.WriteString("…")
			break
		}
		r, n := utf8.DecodeRuneInString(rest)
		if isPrintable(rest[:n]) {
			b.WriteRune(r)
		} else {
			q := strconv.Quote(rest[:n])
			b.WriteString(q[1 : len(q)-1])
		}
		rest = rest[n:]
	}
	return b.String()
}

func isPrintable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) < 0
}
