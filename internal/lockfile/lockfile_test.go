package lockfile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// The digest of the empty string in the forms that people paste.
const (
	hexForm = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	sri     = "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
	nix32   = "0mdqa9w1p6cmli6976v4wi0sw9r4p5prkj7lzfd1877wk11c9c73"
)

func golden(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + Name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// pinFor returns a good pin.
func pinFor(t testing.TB, channel, target, family, version string) Pin {
	t.Helper()
	v, err := release.ParseVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	name := release.Name{Platform: "linux", Family: family, Version: v}.String()
	return FromPin(target, release.Pin{Digest: "sha256:" + hexForm, Size: 1 << 30, Release: release.Release{
		Channel: channel, Name: name, Family: family, Version: v,
		URL: "https://example.com/tarball/" + strings.ReplaceAll(name, "+", "%2B"),
	}})
}

func encoded(t testing.TB, pins ...Pin) []byte {
	t.Helper()
	b, err := Encode(&File{Pins: pins})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTheSameStateGivesTheSameBytes(t *testing.T) {
	want := golden(t)
	f, err := Parse(want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Encode(f); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v\n%s", err, got)
	}
	slices.Reverse(f.Pins)
	f.Schema = 0
	for i, p := range f.Pins {
		f.Pins[i].MTime = p.MTime.In(time.FixedZone("here", 7200))
		f.Pins[i].Digest = release.Digest(nix32)
	}
	if got, err := Encode(f); err != nil || !bytes.Equal(got, want) {
		t.Errorf("in another order, zone and form: %v\n%s", err, got)
	}
	if f.Pins[0].Channel != "stable" {
		t.Error("Encode has sorted its argument")
	}
	crlf := bytes.ReplaceAll(want, []byte("\n"), []byte("\r\n"))
	if again, err := Parse(crlf); err != nil || !bytes.Equal(encoded(t, again.Pins...), want) {
		t.Errorf("with CRLF: %v", err)
	}
	if b, err := Encode(&File{}); err != nil || string(b) != "{\n  \"schema\": 1,\n  \"pins\": []\n}\n" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := Encode(nil); err == nil {
		t.Error("nothing was encoded")
	}
}

func TestParse(t *testing.T) {
	f, err := Parse(golden(t))
	if err != nil || f.Schema != 1 || len(f.Pins) != 2 {
		t.Fatalf("%+v, %v", f, err)
	}
	want := Pin{
		Channel: "nightly", Target: "gfx1100", Family: "gfx110X-all", Version: "10.1.0a20260827",
		Name:   "therock-dist-linux-gfx110X-all-10.1.0a20260827.tar.gz",
		URL:    "https://nightly.repo.amd.com/rocm/core/tarball/therock-dist-linux-gfx110X-all-10.1.0a20260827.tar.gz",
		Digest: "sha256:" + hexForm, Size: 2601235266, MTime: time.Date(2026, 8, 27, 3, 20, 11, 5e8, time.UTC),
	}
	if got, ok := f.Find("nightly", "gfx1100"); !ok || got != want {
		t.Errorf("%+v", got)
	}
	for _, not := range [][2]string{{"nightly", "gfx110X-all"}, {"stable", "gfx1100"}, {"", ""}} {
		if p, ok := f.Find(not[0], not[1]); ok {
			t.Errorf("%v is %+v", not, p)
		}
	}
	if got := f.FindName(want.Name); len(got) != 1 || got[0] != want || len(f.FindName("x")) != 0 {
		t.Errorf("%+v", got)
	}
	if got := f.Targets(); !slices.Equal(got, []string{"nightly-gfx1100", "stable-gfx1151"}) {
		t.Errorf("%v", got)
	}
	pin, err := want.Pin()
	if err != nil || pin.Unusable() != "" || pin.Version.String() != want.Version || FromPin("gfx1100", pin) != want {
		t.Errorf("%+v, %v", pin, err)
	}
	var none *File
	if _, ok := none.Find("a", "b"); ok || none.FindName("x") != nil || none.Targets() != nil {
		t.Error("nothing was found in nothing")
	}
}

// A digest may be written in any form; a bkc version's + is %2B in the URL.
func TestParseForms(t *testing.T) {
	good := string(encoded(t, pinFor(t, "bkc", "multiarch", "multiarch", "10.2.0a20260930+bkc.20261001")))
	for what, edit := range map[string][2]string{
		"hex":            {"sha256:" + hexForm, hexForm},
		"upper case hex": {"sha256:" + hexForm, strings.ToUpper(hexForm)},
		"SRI":            {"sha256:" + hexForm, sri},
		"Nix base-32":    {"sha256:" + hexForm, nix32},
		"no sri":         {`      "sri": "` + sri + `",` + "\n", ""},
		"sri in hex":     {sri, hexForm},
		"a literal +":    {"%2B", "+"},
		"http":           {"https://example.com", "http://127.0.0.1:8080"},
		"a directory":    {"https://example.com", "file:///mirror"},
		"localhost":      {"https://example.com", "file://localhost"},
		"a query":        {`tar.gz",` + "\n      \"digest", `tar.gz?download=1",` + "\n      \"digest"},
		"a time":         {`"size"`, `"mtime": "2026-09-30T06:12:51+02:00", "size"`},
		"escaped key":    {`"size"`, `"siz\u0065"`},
	} {
		in := strings.ReplaceAll(good, edit[0], edit[1])
		f, err := Parse([]byte(in))
		if err != nil || f.Pins[0].Digest != "sha256:"+hexForm {
			t.Errorf("%s: %v\n%s", what, err, in)
		}
	}
	announced := strings.NewReplacer("therock-dist-linux-multiarch-", "rocm-sdk-", ".tar.gz", "-linux.tar.gz").Replace(good)
	if f, err := Parse([]byte(announced)); err != nil || f.Pins[0].Family != "multiarch" {
		t.Errorf("the announced grammar of names: %v", err)
	}
}

func TestWhatIsAmbiguousIsRefused(t *testing.T) {
	good := string(encoded(t, pinFor(t, "nightly", "gfx1151", "gfx1151", "10.2.0a20260930")))
	for what, tt := range map[string]struct{ old, new, say string }{
		"unknown key":        {`"size"`, `"sizes"`, `unknown key "sizes"`},
		"unknown key above":  {`"pins"`, `"host": "x", "pins"`, `unknown key "host"`},
		"a key in capitals":  {`"url"`, `"URL"`, `unknown key "URL"`},
		"a key twice":        {`"size"`, `"size": 5, "size"`, "stands twice"},
		"a key twice above":  {`"pins"`, `"schema": 1, "pins"`, "stands twice"},
		"another version":    {`"version": "10.2.0a20260930"`, `"version": "10.2.0a20260929"`, "the version is"},
		"another family":     {`"family": "gfx1151"`, `"family": "gfx1150"`, "the family is"},
		"no target":          {`"target": "gfx1151"`, `"target": ""`, "the target is"},
		"a path as target":   {`"target": "gfx1151"`, `"target": "../x"`, "the target is"},
		"a dash in channel":  {`"nightly"`, `"night-ly"`, "the channel is"},
		"junk for a name":    {`"therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz"`, `"rocm.tar.gz"`, "not a name"},
		"a -tests tarball":   {"linux-gfx1151-10", "linux-gfx1151-tests-10", "-tests sibling"},
		"a Windows tarball":  {"linux-gfx1151-10", "windows-gfx1151-10", "is for windows"},
		"another file's URL": {"/tarball/therock-dist-linux-gfx1151", "/tarball/therock-dist-linux-gfx1150", "the url ends in"},
		"an encoded slash":   {"/tarball/", "/tarball%2F", "the url ends in"},
		"a directory's URL":  {".tar.gz\",\n      \"digest", ".tar.gz/\",\n      \"digest", "the url ends in"},
		"dots in the URL":    {"/tarball/", "/tarball/../", "has .. in it"},
		"coded dots":         {"/tarball/", "/tarball/%2e%2E/", "has .. in it"},
		"ftp":                {"https:", "ftp:", "want https, http or file"},
		"no host":            {"https://example.com", "https://", "no host"},
		"an opaque URL":      {"https://example.com/tarball/", "https:", "no host"},
		"a relative URL":     {"https://example.com/", "", "want https"},
		"a remote file":      {"https://example.com", "file://example.com", "write file:///path"},
		"a password":         {"https://", "https://me:hunter2@", "a password in it"},
		"a fragment":         {".tar.gz\",\n      \"digest", ".tar.gz#\",\n      \"digest", "fragment"},
		"a space in the URL": {"/tarball/", "/tar ball/", "must be escaped"},
		"a bad escape":       {"/tarball/", "/%zz/", "cannot be parsed"},
		"a long URL":         {"/tarball/", "/" + strings.Repeat("a", maxURL) + "/", "bytes long"},
		"no digest":          {"sha256:" + hexForm, "", "digest"},
		"another algorithm":  {"sha256:" + hexForm, "md5:d41d8cd98f00b204e9800998ecf8427e", "digest"},
		"two digests":        {`"sri": "sha256-4`, `"sri": "sha256-5`, "disagree"},
		"a broken sri":       {`"sri": "sha256-`, `"sri": "sha255-`, "sri"},
		"no size":            {`"size": 1073741824`, `"size": 0`, "the size is 0"},
		"a negative size":    {`"size": 1073741824`, `"size": -1`, "the size is -1"},
		"a broken size":      {`"size": 1073741824`, `"size": 1.5`, "number"},
		"a broken time":      {`"size"`, `"mtime": "yesterday", "size"`, "yesterday"},
		"a year too late":    {`"size"`, `"mtime": "9999-12-31T23:59:59-23:00", "size"`, "year"},
		"no schema":          {`"schema": 1,`, "", `no "schema"`},
		"schema 0":           {`"schema": 1`, `"schema": 0`, "there is none"},
		"no pins":            {`"pins": [`, `"pins": null, "x": [`, "unknown key"},
		"pins is an object":  {`"pins": [`, `"pins": {"a": [`, ""},
		"trailing bytes":     {"]\n}\n", "]\n}\n{}", "after top-level"},
		"a conflict":         {`      "version"`, "<<<<<<< HEAD\n      \"version\"", "merge conflict"},
	} {
		in := strings.ReplaceAll(good, tt.old, tt.new)
		if in == good {
			t.Fatalf("%s: nothing was changed", what)
		}
		if f, err := Parse([]byte(in)); err == nil || !strings.Contains(err.Error(), tt.say) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %+v, %v", what, f, err)
		}
	}
	for _, in := range []string{"", "null", "[]", "1", `"x"`, `{"schema":1}`, `{"schema":1,"pins":null}`, `{"schema":1,"pins":[[[[]]]]}`, `{"schema":1,"pins":[1]}`, "<html></html>", "{"} {
		if f, err := Parse([]byte(in)); err == nil {
			t.Errorf("%s: %+v", in, f)
		}
	}
	for _, newer := range []string{`{"schema":2}`, `{"schema":3,"pins":"elsewhere","x":1}`} {
		if _, err := Parse([]byte(newer)); !errors.Is(err, ErrNewer) {
			t.Errorf("%s: %v", newer, err)
		}
	}
}

func TestDuplicatesAndBounds(t *testing.T) {
	p := pinFor(t, "nightly", "gfx1100", "gfx110X-all", "10.2.0a20260930")
	q, r := p, p
	q.Target, r.Channel = "gfx1101", "mirror"
	f, err := Parse(encoded(t, p, q, r))
	if err != nil || len(f.FindName(p.Name)) != 3 {
		t.Fatalf("one tarball for three: %+v, %v", f, err)
	}
	if _, err := Encode(&File{Pins: []Pin{p, q, p}}); err == nil || !strings.Contains(err.Error(), "nightly-gfx1100 is pinned twice") {
		t.Errorf("%v", err)
	}
	one := strings.TrimSuffix(strings.TrimPrefix(string(encoded(t, p)), "{\n  \"schema\": 1,\n  \"pins\": ["), "\n  ]\n}\n")
	if _, err := Parse([]byte(`{"schema":1,"pins":[` + one + "," + one + "]}")); err == nil || !strings.Contains(err.Error(), "pinned twice") {
		t.Errorf("%v", err)
	}
	if _, err := Parse(append(golden(t), bytes.Repeat([]byte{' '}, MaxLen)...)); err == nil {
		t.Error("a long file was read")
	}
	if _, err := Parse([]byte(`{"schema":1,"pins":[` + strings.Repeat("{},", MaxPins) + `{}]}`)); err == nil {
		t.Error("many pins were read")
	}
	many := &File{}
	for n := range MaxPins + 1 {
		p.Target = fmt.Sprintf("gfx%d", n)
		many.Pins = append(many.Pins, p)
	}
	if _, err := Encode(many); err == nil || !strings.Contains(err.Error(), "more than 10000") {
		t.Errorf("%v", err)
	}
	many.Pins = many.Pins[1:]
	if _, err := Encode(many); err == nil || !strings.Contains(err.Error(), "bytes long") {
		t.Errorf("what could not be read again was written: %v", err)
	}
	if b, err := Encode(&File{Pins: many.Pins[:5000]}); err != nil {
		t.Error(err)
	} else if f, err := Parse(b); err != nil || len(f.Pins) != 5000 {
		t.Errorf("%v", err)
	}
	if _, err := Encode(&File{Schema: 2}); err == nil {
		t.Error("schema 2 was written")
	}
	if _, err := Encode(&File{Pins: []Pin{{}}}); err == nil {
		t.Error("an empty pin was written")
	}
}

func TestOthersPinsAreKept(t *testing.T) {
	a, b := pinFor(t, "nightly", "gfx1100", "gfx110X-all", "10.2.0a20260929"), pinFor(t, "nightly", "gfx1151", "gfx1151", "10.2.0a20260929")
	c, later := pinFor(t, "stable", "gfx1151", "gfx1151", "10.0.0"), pinFor(t, "nightly", "gfx1151", "gfx1151", "10.2.0a20260930")
	old, newer := &File{Pins: []Pin{c, b, a}}, &File{Pins: []Pin{later}}
	merged := Merge(old, newer)
	if want := []Pin{a, later, c}; !reflect.DeepEqual(merged.Pins, want) || merged.Schema != Schema {
		t.Errorf("%+v", merged)
	}
	if old.Pins[0] != c || len(newer.Pins) != 1 {
		t.Error("an argument was changed")
	}
	if m := Merge(nil, newer); !reflect.DeepEqual(m.Pins, newer.Pins) {
		t.Errorf("%+v", m)
	}
	if m := Merge(old, nil); !reflect.DeepEqual(m.Pins, []Pin{a, b, c}) {
		t.Errorf("%+v", m)
	}
	if m := Merge(nil, nil); len(m.Pins) != 0 {
		t.Errorf("%+v", m)
	}
}

func TestALockHoldsNoSecret(t *testing.T) {
	p := pinFor(t, "nightly", "gfx1151", "gfx1151", "10.2.0a20260930")
	pin, err := p.Pin()
	if err != nil {
		t.Fatal(err)
	}
	pin.URL = strings.Replace(pin.URL, "https://", "https://me:hunter2@", 1) + "#x"
	if got := FromPin("gfx1151", pin); got != p {
		t.Errorf("%+v", got)
	}
}
