package update

import (
	"strings"
	"testing"
)

const (
	lockLine = `{"channel":"nightly","target":"gfx1151","family":"gfx1151","version":"10.2.0a20260930","name":"therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz",` +
		`"url":"https://amd.example/therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz","digest":"sha256:DIGEST","size":5}`
	ledgerLine = `{"schema":1,"name":"therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz","channel":"nightly","family":"gfx1151","version":"10.2.0a20260930",` +
		`"url":"https://amd.example/x","digest":"sha256:DIGEST","size":5,"first_seen":"2026-10-01T00:00:00Z"}`
)

var (
	digestA = strings.Repeat("a", 64)
	digestB = strings.Repeat("b", 64)
)

func TestParseWord(t *testing.T) {
	a, b := func(s string) string { return strings.ReplaceAll(s, "DIGEST", digestA) }, func(s string) string { return strings.ReplaceAll(s, "DIGEST", digestB) }
	k := key("nightly", "therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz")
	for what, tt := range map[string]struct{ text, kind, digest string }{
		"a lock":                            {`{"schema":1,"pins":[` + a(lockLine) + `]}`, "the lock", digestA},
		"an empty lock":                     {`{"schema":1,"pins":[]}`, "the lock", ""},
		"a ledger":                          {a(ledgerLine) + "\n", "the ledger", digestA},
		"a ledger in which the last counts": {a(ledgerLine) + "\n" + b(ledgerLine), "the ledger", digestB},
		"a ledger after a merge":            {"<<<<<<< ours\n" + a(ledgerLine) + "\n=======\n>>>>>>> theirs\n", "the ledger", digestA},
		"an empty ledger":                   {"", "the ledger", ""},
		"a web page":                        {"<!DOCTYPE html>\n<p>sign in", "", ""},
		"a lock of the future":              {`{"schema":99,"pins":[]}`, "", ""},
		"a lock that contradicts itself":    {`{"schema":1,"pins":[` + a(lockLine) + "," + strings.Replace(b(lockLine), `"target":"gfx1151"`, `"target":"gfx1150"`, 1) + `]}`, "", ""},
	} {
		w, err := parseWord([]byte(tt.text))
		switch {
		case tt.kind == "":
			if err == nil {
				t.Errorf("%s: taken as %+v", what, w)
			}
		case err != nil || w.what != tt.kind:
			t.Errorf("%s: %+v, %v", what, w, err)
		case strings.TrimPrefix(string(w.by[k]), "sha256:") != tt.digest:
			t.Errorf("%s: digest %s", what, w.by[k])
		}
	}
}

func FuzzParseWord(f *testing.F) {
	f.Add([]byte(`{"schema":1,"pins":[` + strings.ReplaceAll(lockLine, "DIGEST", digestA) + `]}`))
	f.Add([]byte(strings.ReplaceAll(ledgerLine, "DIGEST", digestA)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		w, err := parseWord(raw)
		if (w == nil) == (err == nil) {
			t.Fatalf("%v, %v", w, err)
		}
		if err == nil {
			for name, d := range w.by {
				if d.Validate() != nil {
					t.Fatalf("%s has the digest %q", name, d)
				}
			}
		}
	})
}
