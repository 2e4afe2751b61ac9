package store

import (
	"bytes"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// FuzzState holds that any bytes are either damaged, newer, or a state that
// reads back as itself and stays in its bounds.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{"schema":1,"installed":[{"generation":"10.2.0a20260930","at":"2026-09-30T06:30:00Z"}],"history":[{"generation":"10.2.0a20260930","at":"2026-09-30T06:30:00Z","why":"update"}],"left":["10.2.0a20261001"],"hold":{"since":"2026-09-30T06:30:00Z"},"refused":{"sha256:aa":{"reason":"x","at":"2026-09-30T06:30:00Z"}}}`))
	f.Add([]byte(`{"schema":1,"history":[{"generation":"../../etc"}]}`))
	f.Add([]byte(`{"schema":2}`))
	f.Add([]byte(`{"schema":1,"hold":null,"refused":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		st, err := parseState(b)
		if err != nil {
			return
		}
		for _, a := range st.History {
			if strings.ContainsAny(a.Generation, "/\x00") || a.Generation == "" {
				t.Fatalf("a generation is named %q", a.Generation)
			}
		}
		if len(st.History) > maxHistory || len(st.Left) > maxLeft || len(st.Refused) > maxRefused {
			t.Fatal("out of bounds")
		}
		enc, err := st.encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseState(enc)
		if err != nil {
			t.Fatalf("%s: %v", enc, err)
		}
		enc2, err := again.encode()
		if err != nil || !bytes.Equal(enc, enc2) {
			t.Fatalf("%s reads back as %s, %v", enc, enc2, err)
		}
	})
}

// FuzzLedger holds that no bytes before it hide a line, or break the reader.
func FuzzLedger(f *testing.F) {
	line, err := jsonLine(pinOf("a", 1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{})
	f.Add(line)
	f.Add(line[:len(line)/2])
	f.Add([]byte("\n\n{}\n[]\n\"\n" + `{"schema":2,"name":"b"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		before, err := findPins(bytes.NewReader(b), "a")
		if err != nil {
			if !errors.Is(err, ErrNewer) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		after, err := findPins(bytes.NewReader(slices.Concat(b, []byte{'\n'}, line)), "a")
		if err != nil || len(after) != len(before)+1 || !reflect.DeepEqual(after[len(before)].Digest, pinOf("a", 1).Digest) {
			t.Fatalf("%d pins became %d, %v", len(before), len(after), err)
		}
	})
}

// FuzzNames holds that no name leaves its directory.
func FuzzNames(f *testing.F) {
	f.Add("10.2.0a20260930-r2")
	f.Add("../../etc/passwd")
	f.Fuzz(func(t *testing.T, s string) {
		if rel, ok := within("/spool", filepath.Join("/spool", spoolName(s))); !ok || rel != spoolName(s) || len(rel) > 255 {
			t.Fatalf("%q becomes %q", s, spoolName(s))
		}
		if checkName("name", s) == nil {
			if filepath.Join("/x", s) != "/x/"+s || strings.HasPrefix(s, ".") || strings.HasPrefix(s, "-") {
				t.Fatalf("%q is a name", s)
			}
			if v, r := versionOf(s); r > 1 && v != "" && revisionRE.FindString(s)[2] != '0' && revisionName(v, r) != s {
				t.Fatalf("%q is revision %d of %q", s, r, v)
			}
		}
		if compareNames(s, s) != 0 {
			t.Fatalf("%q is not equal to itself", s)
		}
	})
}
