package diff

import (
	"reflect"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
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
		v.SetString(plain.Cut(v.String(), maxShown))
	}
}
