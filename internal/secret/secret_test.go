package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const marker = "ghp_m4rker/+of=the&test"

type inner struct {
	Exported Secret
	hidden   Secret
	pointer  *Secret
}

type outer struct {
	Inner inner
	Map   map[string]Secret
	Slice []Secret
	Any   any
}

// TestNeverPrinted prints a Secret, exported or not, in every way of the
// standard library.
func TestNeverPrinted(t *testing.T) {
	s := New(marker)
	o := outer{
		Inner: inner{Exported: s, hidden: s, pointer: &s},
		Map:   map[string]Secret{"a": s}, Slice: []Secret{s}, Any: s,
	}
	var out strings.Builder
	for _, v := range []any{s, &s, o, &o, o.Inner, &o.Inner, o.Map, o.Slice, struct{ s Secret }{s}, errors.Join(fmt.Errorf("x %v", s))} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%p"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		fmt.Fprintln(&out, v)
		data, err := json.Marshal(v)
		if err == nil {
			out.Write(data)
		}
	}
	var logged bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&logged, nil), slog.NewJSONHandler(&logged, nil)} {
		l := slog.New(h)
		l.With("s", s).Info("m", "secret", s, "outer", o, "pointer", &o, "group", slog.GroupValue(slog.Any("s", s)))
	}
	all := out.String() + logged.String()
	for _, form := range []string{marker, "m4rker", fmt.Sprintf("%x", marker), fmt.Sprintf("%X", marker), base64.StdEncoding.EncodeToString([]byte(marker))} {
		if strings.Contains(all, form) {
			t.Errorf("%q got out:\n%s", form, all)
		}
	}
	if !strings.Contains(all, redacted) {
		t.Error("nothing stands in the secret's place")
	}
}

func TestZeroIsEmpty(t *testing.T) {
	var s Secret
	if !s.Empty() || s.Reveal() != "" || !New("").Empty() || New("x").Empty() {
		t.Error("Empty is wrong")
	}
}

func TestScrub(t *testing.T) {
	s := New(marker)
	for _, c := range []struct{ name, in string }{
		{"as it is", "401 for " + marker + "!"},
		{"in a query", "https://h/?token=" + url.QueryEscape(marker)},
		{"in a path", "https://h/" + url.PathEscape(marker)},
		{"in a URL", (&url.URL{Scheme: "https", Host: "h", User: url.UserPassword("me", marker)}).String()},
		{"basic authentication", "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("x-access-token:"+marker))},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Scrub(c.in, s)
			if strings.Contains(got, "m4rker") || !strings.Contains(got, redacted) {
				t.Errorf("Scrub(%q) = %q", c.in, got)
			}
		})
	}
	if got := Scrub("nothing here", s, Secret{}, New("e")); got != "nothing here" {
		t.Errorf("Scrub spoilt a text without secrets: %q", got)
	}
}

func TestScrubKey(t *testing.T) {
	key := "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEAx\nQ29weWluZyBtZSBp\n-----END KEY-----"
	for _, in := range []string{key, "bad line MIIEpAIBAAKCAQEAx", fmt.Sprintf("%q", key)} {
		if got := Scrub(in, New(key)); strings.Contains(got, "MIIEp") {
			t.Errorf("Scrub(%q) = %q", in, got)
		}
	}
	if got := Scrub("-----BEGIN KEY-----", New(key)); got != "-----BEGIN KEY-----" {
		t.Errorf("the frame of a key is hidden: %q", got)
	}
}

// TestScrubBasic: whoever the user is, the header tells nothing of the token.
func TestScrubBasic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		user := rapid.StringMatching(`[a-z-]{0,12}`).Draw(t, "user")
		token := rapid.StringMatching(`[A-Za-z0-9_]{12,60}`).Draw(t, "token")
		encoded := base64.StdEncoding.EncodeToString([]byte(user + ":" + token))
		got := Scrub(encoded, New(token))
		before, after, ok := strings.Cut(got, redacted)
		if !ok {
			t.Fatalf("%s is not hidden", encoded)
		}
		// At most two bytes at either end share a group of letters with what
		// is beside them.
		if left := len(before) + len(after) - len(user)*4/3; left > 16 {
			t.Fatalf("%d letters are left of %s: %s", left, encoded, got)
		}
	})
}
