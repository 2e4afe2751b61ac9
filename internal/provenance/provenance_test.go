package provenance

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	slsa "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

func build() Build {
	at := time.Date(2026, 11, 22, 6, 30, 0, 5, time.FixedZone("", 3600))
	return Build{
		Subjects: []File{{"10.2.0a20261121/manifest.json", "sha256:" + zeros}, {"10.2.0a20261121/files.jsonl", "sha256:" + release.Digest(strings.Repeat("1", 64))}},
		Tarball: Tarball{
			Name: "therock-dist-linux-gfx1151-10.2.0a20261121.tar.gz", URL: "https://user:secret@mirror.example/a%2Fb/x.tar.gz?token=secret#secret",
			Digest: "sha256:" + release.Digest(strings.Repeat("2", 64)), Size: 7, ETag: `"e-1"`, MTime: at, LastModified: at, Checked: []string{"length", "the ledger"},
		},
		Channel: "nightly", Target: "gfx1151", Version: "10.2.0a20261121", Options: json.RawMessage(`{"layout":"root"}`), Ruleset: 2,
		Recipe: "sha256:" + release.Digest(strings.Repeat("3", 64)), Tool: Tool{"v1.0.0", "abc", "go1.26"}, ID: "nightly-gfx1151/10.2.0a20261121@x", Started: at, Finished: at.Add(time.Second),
	}
}

func TestStatement(t *testing.T) {
	b, err := Statement(build())
	if err != nil {
		t.Fatal(err)
	}
	if err := check(b); err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		`"uri": "https://mirror.example/a%2Fb/x.tar.gz"`, `"startedOn": "2026-11-22T05:30:00.000000005Z"`, `"finishedOn": "2026-11-22T05:30:01.000000005Z"`,
		`"sha256": "` + strings.Repeat("2", 64) + `"`, `"verified_against": [`, `"layout": "root"`, `"go": "go1.26"`,
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("it does not say %s:\n%s", want, b)
		}
	}
	if strings.Contains(string(b), "secret") {
		t.Errorf("it tells a secret:\n%s", b)
	}
	again, err := Statement(build())
	if err != nil || string(again) != string(b) {
		t.Errorf("it is another each time: %v", err)
	}
}

func TestNothingIsStatedOfNothing(t *testing.T) {
	for what, spoil := range map[string]func(*Build){
		"no subject": func(b *Build) { b.Subjects = nil },
		"no digest":  func(b *Build) { b.Subjects[0].Digest = "" },
		"no tarball": func(b *Build) { b.Tarball.Digest = "sha256:x" },
		"no JSON":    func(b *Build) { b.Options = json.RawMessage("{") },
	} {
		b := build()
		if spoil(&b); b.ID == "" {
			t.Fatal("no build")
		}
		if text, err := Statement(b); err == nil {
			t.Errorf("%s: %s", what, text)
		}
	}
	b := build()
	b.Options, b.Tarball = nil, Tarball{Digest: b.Tarball.Digest}
	if text, err := Statement(b); err != nil || check(text) != nil || strings.Contains(string(text), `"uri"`) {
		t.Errorf("of a pipe: %s, %v", text, err)
	}
}

func TestRedacted(t *testing.T) {
	for in, want := range map[string]string{
		"https://a.example/x":               "https://a.example/x",
		"http://u:p@127.0.0.1:8080/x?y=z#w": "http://127.0.0.1:8080/x",
		"file:///home/me/x.tar.gz":          "",
		"/home/me/x.tar.gz":                 "",
		"https:opaque":                      "",
		"://":                               "",
		"":                                  "",
	} {
		if got := Redacted(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// check reads a statement with the types that in-toto publishes, which refuse
// what they do not know, and with their own rules.
func check(b []byte) error {
	var s intoto.Statement
	if err := protojson.Unmarshal(b, &s); err != nil {
		return err
	}
	if err := s.Validate(); err != nil {
		return err
	}
	text, err := protojson.Marshal(s.GetPredicate())
	if err != nil {
		return err
	}
	var p slsa.Provenance
	if err := protojson.Unmarshal(text, &p); err != nil {
		return err
	}
	if s.GetType() != intoto.StatementTypeUri || s.GetPredicateType() != "https://slsa.dev/provenance/v1" {
		return fmt.Errorf("a %s of %s", s.GetType(), s.GetPredicateType())
	}
	return p.Validate()
}

// What in-toto's own rules refuse is noticed, so that the tests above can fail.
func TestTheCheckNotices(t *testing.T) {
	b, err := Statement(build())
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{
		`"_type": "https://in-toto.io/Statement/v1"`: `"_type": "https://in-toto.io/Statement/v0.1"`,
		`"buildType": "https`:                        `"buildTypo": "https`,
		`"id": "` + BuilderID + `"`:                  `"id": ""`,
		`"sha256": "` + zeros:                        `"sha256": "x`,
		`"startedOn": "2026`:                         `"startedOn": "yesterday`,
		`"metadata": {`:                              `"meta": {`,
	} {
		if !strings.Contains(string(b), from) {
			t.Errorf("there is no %s", from)
		}
		if check([]byte(strings.Replace(string(b), from, to, 1))) == nil {
			t.Errorf("%s was taken", to)
		}
	}
}

// Whatever a server and a tarball are called, what is stated of them is valid and
// tells no secret.
func FuzzStatement(f *testing.F) {
	f.Add("https://user:secret@a.example/x?y", "x.tar.gz", "etag", "nightly")
	f.Fuzz(func(t *testing.T, url, name, etag, channel string) {
		b := build()
		b.Tarball.URL, b.Tarball.Name, b.Tarball.ETag, b.Channel = url, name, etag, channel
		text, err := Statement(b)
		if err != nil {
			t.Fatal(err)
		}
		if err := check(text); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
	})
}
