package store

import (
	"encoding/json"
	"errors"
	"io/fs"
	"reflect"
	"strings"
	"testing"
)

func TestReadRunPart(t *testing.T) {
	s := open(t)
	sl := s.Slot("nightly", "gfx1151")
	if err := sl.WriteRun(night(1), map[string]any{"schema": 1, "audit": []string{`a"}],\`, "b"}, "exit": 3, "smoke": nil, "error": `"audit": 7`}); err != nil {
		t.Fatal(err)
	}
	var part map[string]any
	want := map[string]any{"schema": 1.0, "audit": nil, "exit": 3.0, "smoke": nil, "error": `"audit": 7`}
	if err := sl.ReadRunPart(night(1), &part, "audit", "smoke", "nothing"); err != nil || !reflect.DeepEqual(part, want) {
		t.Errorf("%v, %v", part, err)
	}
	if err := sl.ReadRunPart(night(2), &part); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := sl.WriteRun(night(2), map[string]any{"schema": 99}); err != nil {
		t.Fatal(err)
	}
	if err := sl.ReadRunPart(night(2), &part, "audit"); !errors.Is(err, ErrNewer) {
		t.Error(err)
	}
}

// Whatever is JSON says the same without a field as it does decoded and without it;
// whatever is not, does no harm.
func FuzzWithoutFields(f *testing.F) {
	for _, text := range []string{
		`{"audit": {"a": [1, "x\"]}", {}]}, "exit": 1}`, `{"audit":1}`, `{"a":1,"audit":[]}`, "{}", " { } ", `{"audit"`, `{"audit": `, `{"audit": "`, "[1]", `{"a":{"audit":1}}`,
		"{\"\\u0061udit\":-1e5 ,\n\"b\":true}", `{"audit":nul`, `{"audit"::}`, `{"audit":}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := withoutFields([]byte(text), []string{"audit"})
		var was, is map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &was) != nil || was == nil {
			return
		}
		if err := json.Unmarshal(got, &is); err != nil {
			t.Fatalf("%q became %q: %v", text, got, err)
		}
		if _, ok := was["audit"]; ok {
			was["audit"] = json.RawMessage("null")
		}
		for name := range was {
			if strings.TrimSpace(string(was[name])) != strings.TrimSpace(string(is[name])) {
				t.Errorf("%q of %q became %q", name, text, is[name])
			}
		}
		if len(was) != len(is) {
			t.Errorf("%q became %q", text, got)
		}
	})
}
