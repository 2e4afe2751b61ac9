package lockfile

import (
	"bytes"
	"errors"
	"testing"
)

// FuzzParse holds that any bytes are refused, or are a file that Encode writes
// and Parse reads back as the same, whose targets are names and whose pins lead
// to their tarballs.
func FuzzParse(f *testing.F) {
	f.Add(golden(f))
	f.Add([]byte(`{"schema":1,"pins":[]}`))
	f.Add([]byte(`{"schema":2,"pins":{}}`))
	f.Add([]byte(`{"schema":1,"schema":1,"pins":[{"channel":"a"}]}`))
	f.Add([]byte("<<<<<<< HEAD\n{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := Parse(b)
		if err != nil {
			return
		}
		enc, err := Encode(file)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(enc)
		if err != nil {
			t.Fatalf("%s: %v", enc, err)
		}
		enc2, err := Encode(again)
		if err != nil || !bytes.Equal(enc, enc2) {
			t.Fatalf("%s reads back as %s, %v", enc, enc2, err)
		}
		for _, p := range file.Pins {
			if pin, err := p.Pin(); err != nil || pin.Unusable() != "" || pin.Family != p.Family || pin.Version.String() != p.Version {
				t.Fatalf("%+v, %v", pin, err)
			}
		}
	})
}

// FuzzVerify holds that no signature but a good one counts, whatever it looks
// like: only the untrusted comment and the ends of the lines may differ.
func FuzzVerify(f *testing.F) {
	key, message := parsedKey(f, string(testdata(f, "key.pub"))), golden(f)
	for _, name := range []string{"prehashed", "legacy", "other"} {
		f.Add(testdata(f, name+SignatureSuffix))
	}
	f.Add([]byte("untrusted comment: \nRW\ntrusted comment: \n\n"))
	good := [][][]byte{bytes.Split(testdata(f, "prehashed.minisig"), []byte("\n")), bytes.Split(testdata(f, "legacy.minisig"), []byte("\n"))}
	f.Fuzz(func(t *testing.T, sig []byte) {
		err := Verify(key, message, sig)
		if err == nil {
			lines := bytes.Split(bytes.ReplaceAll(sig, []byte("\r"), nil), []byte("\n"))
			for _, g := range good {
				if len(lines) > 3 && bytes.Equal(lines[1], g[1]) && bytes.Equal(lines[2], g[2]) && bytes.Equal(lines[3], g[3]) {
					return
				}
			}
			t.Fatalf("%q counts", sig)
		}
		var se *SignatureError
		if !errors.As(err, &se) {
			t.Fatalf("untyped error %v", err)
		}
	})
}

// FuzzParseKey holds that a key that is read is written in the same way again.
func FuzzParseKey(f *testing.F) {
	f.Add(string(testdata(f, "key.pub")))
	f.Add("RWRapcem9fq6W2gvlT6I073kh1fxVCayxXLLB7kzFEOwMamGqUOpfX6a")
	f.Add("untrusted comment:\r\n\n")
	f.Fuzz(func(t *testing.T, s string) {
		k, err := ParseKey(s)
		if err != nil {
			return
		}
		if again, err := ParseKey(k.String()); err != nil || again.String() != k.String() || again.ID() != k.ID() {
			t.Fatalf("%s reads back as %s, %v", k, again, err)
		}
	})
}
