package schema

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// three is a format that has changed twice: "name" became "names", then each
// name an object.
var three = Format{Name: "things.json", Else: "move it away: it is made anew", Steps: []Step{
	func(f map[string]json.RawMessage) error {
		if f["name"] == nil {
			return errors.New("it names nothing")
		}
		f["names"] = json.RawMessage("[" + string(f["name"]) + "]")
		delete(f, "name")
		return nil
	},
	func(f map[string]json.RawMessage) error {
		var names []string
		if err := json.Unmarshal(f["names"], &names); err != nil {
			return err
		}
		var things []map[string]string
		for _, n := range names {
			things = append(things, map[string]string{"name": n})
		}
		b, err := json.Marshal(things)
		f["names"] = b
		return err
	},
}}

func TestEveryOlderSchemaIsRead(t *testing.T) {
	const now = `{"names":[{"name":"a"}],"other":7,"schema":3}`
	for what, in := range map[string]string{
		"first":  `{"schema": 1, "name": "a", "other": 7}`,
		"second": `{"schema": 2, "names": ["a"], "other": 7}`,
		"third":  now,
	} {
		if got, err := three.Read([]byte(in)); err != nil || string(got) != now {
			t.Errorf("%s: %s, %v", what, got, err)
		}
	}
	// One of today's is not touched, whatever it looks like.
	odd := "{ \"names\": [], \"schema\": 3}\n"
	if got, err := three.Read([]byte(odd)); err != nil || string(got) != odd {
		t.Errorf("%q, %v", got, err)
	}
}

func TestNewerIsRefusedWithWords(t *testing.T) {
	_, err := three.Read([]byte(`{"schema": 4, "names": "a song"}`))
	if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "upgrade, or move it away") || !strings.Contains(err.Error(), "schema 4") {
		t.Errorf("%v", err)
	}
	if err := (Format{Name: "x"}).Newer(2); !errors.Is(err, ErrNewer) || !strings.HasSuffix(err.Error(), "(upgrade)") {
		t.Errorf("%v", err)
	}
}

func TestWhatIsNoRecord(t *testing.T) {
	for _, in := range []string{``, `null`, `[]`, `{}`, `{"schema":0}`, `{"schema":-1}`, `{"schema":"1"}`, `{"schema":1.5}`, `{"schema":1`, `{"schema":1}`, `{"schema":2,"names":3}`} {
		if _, err := three.Read([]byte(in)); err == nil || errors.Is(err, ErrNewer) {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// Whatever the bytes, what comes out can be read again and is of today's schema.
func FuzzRead(f *testing.F) {
	for _, in := range []string{`{"schema":1,"name":"a"}`, `{"schema":2,"names":["a"]}`, `{"schema":3}`, `{"schema":99}`, `{"Schema":1,"schema":2,"names":[]}`} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := three.Read(b)
		if err != nil {
			return
		}
		if n, err := three.schemaOf(got); err != nil || n != three.Now() {
			t.Fatalf("%s: schema %d, %v", got, n, err)
		}
	})
}
