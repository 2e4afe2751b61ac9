package notify

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

const testKey = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// answer makes a response as a transport returns it.
func answer(status int, header http.Header, body string) *http.Response {
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body))}
}

// wire is a transport that is a function.
type wire func(*http.Request) (*http.Response, error)

func (w wire) RoundTrip(r *http.Request) (*http.Response, error) { return w(r) }

func one(t *testing.T, s Sink, w wire) *Notifier {
	t.Helper()
	n, err := New(Options{Sinks: []Sink{s}, Transport: w})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

var moved = Event{Kind: Installed, Key: "nightly-gfx1151", Mark: "2", Time: time.Unix(1790000000, 0).UTC(), Host: "h", Version: "2", From: "1", Title: "t", Text: "x"}

func TestWebhookIsSignedJSON(t *testing.T) {
	var got *http.Request
	var body []byte
	srv := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
	}))
	defer srv.Close()
	n, err := New(Options{Sinks: []Sink{{Name: "a", Kind: Webhook, URL: srv.URL + "/rocm", Secret: testKey}}, Transport: srv.Client().Transport, Agent: "rocm-nightly/v9"})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Tell(t.Context(), []Event{moved}); err != nil {
		t.Fatal(err)
	}
	var p Payload
	if err := json.Unmarshal(body, &p); err != nil || p.Schema != 1 || p.Type != Installed || p.Data != moved || !p.Timestamp.Equal(moved.Time) {
		t.Errorf("%v %s", err, body)
	}
	if got.Method != http.MethodPost || got.URL.Path != "/rocm" || got.UserAgent() != "rocm-nightly/v9" || got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%+v", got)
	}
	key, _ := ParseKey(secret.New(testKey))
	if err := key.Verify(got.Header.Get("webhook-id"), got.Header.Get("webhook-timestamp"), got.Header.Get("webhook-signature"), body, time.Now(), time.Minute); err != nil {
		t.Error(err)
	}
}

func TestVerifyRefuses(t *testing.T) {
	key, _ := ParseKey(secret.New(testKey))
	now := time.Unix(1790000000, 0)
	good := key.Sign("id", now, []byte("body"))
	for name, err := range map[string]error{
		"another id":        key.Verify("di", "1790000000", good, []byte("body"), now, time.Minute),
		"another time":      key.Verify("id", "1790000001", good, []byte("body"), now, time.Minute),
		"an old one":        key.Verify("id", "1790000000", good, []byte("body"), now.Add(time.Hour), time.Minute),
		"one of the future": key.Verify("id", "1790000000", good, []byte("body"), now.Add(-time.Hour), time.Minute),
		"no time":           key.Verify("id", "soon", good, []byte("body"), now, time.Minute),
		"no signature":      key.Verify("id", "1790000000", "", []byte("body"), now, time.Minute),
		"another version":   key.Verify("id", "1790000000", "v2,"+good[3:], []byte("body"), now, time.Minute),
	} {
		if err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if err := key.Verify("id", "1790000000", "v1a,xx v1,!! "+good, []byte("body"), now, time.Minute); err != nil {
		t.Errorf("one of several: %v", err)
	}
	for _, bad := range []string{"", "whsec_", "whsec_c2hvcnQ=", "whsec_!", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 65))} {
		if _, err := ParseKey(secret.New(bad)); err == nil || bad != "" && len(bad) > 12 && strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// A receiver that is away for a moment is tried again, with the same id, as long as
// it asks for and no longer than the time suffices.
func TestWebhookTriesAgain(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers []*http.Response // nil: no connection
		want    string           // of the error
		tries   int
		atLeast time.Duration
	}{
		{name: "taken", answers: []*http.Response{answer(204, nil, "")}, tries: 1},
		{name: "away for a moment", answers: []*http.Response{nil, answer(503, nil, ""), answer(200, nil, "")}, tries: 3, atLeast: 3 * time.Second},
		{name: "asks for time", answers: []*http.Response{answer(429, http.Header{"Retry-After": {"9"}}, ""), answer(200, nil, "")}, tries: 2, atLeast: 9 * time.Second},
		{name: "asks for too much", answers: []*http.Response{answer(429, http.Header{"Retry-After": {"3600"}}, "")}, tries: 1, want: "it answered 429 Too Many Requests"},
		{name: "asks for ever", answers: []*http.Response{answer(503, http.Header{"Retry-After": {"99999999999999999999"}}, ""), answer(200, nil, "")}, tries: 2},
		{name: "refused", answers: []*http.Response{answer(400, nil, "no\x1b[31msuch \n field")}, tries: 1, want: `it answered 400 Bad Request: no\x1b[31msuch \n field`},
		{name: "elsewhere", answers: []*http.Response{answer(307, http.Header{"Location": {"https://evil.example/"}}, "")}, tries: 1, want: "leads to another address"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ids := map[string]bool{}
				tries := 0
				n := one(t, Sink{Name: "a", Kind: Webhook, URL: "https://hooks.example/x"}, func(r *http.Request) (*http.Response, error) {
					ids[r.Header.Get("webhook-id")] = true
					tries++
					if tries > len(c.answers) || c.answers[tries-1] == nil {
						return nil, errors.New("connection refused")
					}
					return c.answers[tries-1], nil
				})
				began := time.Now()
				err := n.Tell(t.Context(), []Event{moved})
				if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("error %v, want %q", err, c.want)
				}
				if tries != c.tries || len(ids) != 1 || time.Since(began) < c.atLeast || time.Since(began) > sinkTimeout {
					t.Errorf("%d tries, ids %v, %s", tries, ids, time.Since(began))
				}
			})
		})
	}
}

// The address of a webhook may be all that protects it: it is in no error and in no
// log, whatever the server or the network says.
func TestWebhookAddressIsNotTold(t *testing.T) {
	const bogus = "s3cr3tpathT0ken"
	address := "https://hooks.example/in/" + bogus + "?key=" + bogus + "Query"
	var log bytes.Buffer
	for name, w := range map[string]wire{
		"echo": func(r *http.Request) (*http.Response, error) {
			return answer(400, nil, "no "+r.URL.String()+" "+bogus+" "+testKey), nil
		},
		"network": func(r *http.Request) (*http.Response, error) { return nil, errors.New("dial " + r.URL.String()) },
		"redirect": func(r *http.Request) (*http.Response, error) {
			return answer(302, http.Header{"Location": {r.URL.String()}}, ""), nil
		},
	} {
		n, err := New(Options{Sinks: []Sink{{Name: "a", Kind: Webhook, URL: address, Secret: testKey, Timeout: time.Second}}, Transport: w, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		err = n.Tell(t.Context(), []Event{moved})
		if err == nil || strings.Contains(err.Error()+log.String(), bogus) || strings.Contains(err.Error(), testKey[6:]) {
			t.Errorf("%s: %v %s", name, err, log.String())
		}
	}
}

func TestAddressesThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		kind, url string
		insecure  bool
		want      string // "": taken
	}{
		{kind: Webhook, url: "https://h/x"},
		{kind: Webhook, url: "http://127.0.0.1:1/x"},
		{kind: Webhook, url: "http://[::1]/x"},
		{kind: Webhook, url: "http://localhost/x"},
		{kind: Webhook, url: "http://h/x", want: "insecure: true"},
		{kind: Webhook, url: "http://localhost.evil.example/x", want: "insecure: true"},
		{kind: Webhook, url: "http://h/x", insecure: true},
		{kind: Webhook, url: "slack://h/x", want: "shoutrrr"},
		{kind: Webhook, url: "https:///x", want: "of the form"},
		{kind: Webhook, url: "%", want: "of the form"},
		{kind: "mail", url: "x", want: "no kind of sink"},
		{kind: Shoutrrr, url: "logger://", want: "no service"},
		{kind: Shoutrrr, url: "generic://h/x", want: "no service"},
		{kind: Shoutrrr, url: "file:///etc/passwd", want: "no service"},
		{kind: Shoutrrr, url: "teams+https://x.webhook.office.com/y", want: "no service"},
		{kind: Shoutrrr, url: "", want: "of the form"},
		{kind: Shoutrrr, url: "ntfy://ntfy.sh/rocm"},
		{kind: Shoutrrr, url: "ntfy://ntfy.sh/rocm?disabletls=yes", want: "insecure: true"},
		{kind: Shoutrrr, url: "ntfy://ntfy.sh/rocm?scheme=http", want: "insecure: true"},
		{kind: Shoutrrr, url: "ntfy://ntfy.sh/rocm?scheme=http", insecure: true},
		{kind: Shoutrrr, url: "ntfy://ntfy.sh/", want: "topic"},
		{kind: Shoutrrr, url: "smtp://me:pw@mail.example:587/?from=a@b.example&to=c@d.example"},
		{kind: Shoutrrr, url: "smtp://me:pw@mail.example:587/?from=a@b.example&to=c@d.example&usehtml=yes", want: "usehtml"},
		{kind: Shoutrrr, url: "smtp://me:pw@mail.example:587/?from=a@b.example&to=c@d.example&UseStartTLS=no", want: "legibly"},
		{kind: Shoutrrr, url: "smtp://me:pw@mail.example:587/?from=a@b.example&to=c@d.example&encryption=None", want: "legibly"},
		{kind: Shoutrrr, url: "smtp://me:pw@mail.example:587/?from=a@b.example&to=c@d.example&skiptlsverify=yes", want: "insecure: true"},
		{kind: Shoutrrr, url: "discord://token@1234/raw", want: "JSON"},
		{kind: Shoutrrr, url: "discord://token@1234?json=yes", want: "json"},
		{kind: Shoutrrr, url: "telegram://110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw@telegram?chats=@c&parsemode=HTML", want: "parsemode"},
		{kind: Shoutrrr, url: "matrix://host/", want: "matrix://USER:PASSWORD@HOST"},
	} {
		err := CheckAddress(c.kind, c.url, c.insecure)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s %s: %v, want %q", c.kind, c.url, err, c.want)
		}
	}
}

// The receiver in Python that docs/notify.md shows takes what is sent, and nothing
// else.
func TestTheReceiverInTheDocs(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is missing")
	}
	doc, err := os.ReadFile("../../docs/notify.md")
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile("(?s)```python\n(.*?)```").FindSubmatch(doc)
	if code == nil {
		t.Fatal("docs/notify.md shows no receiver")
	}
	script := filepath.Join(t.TempDir(), "receiver.py")
	if err := os.WriteFile(script, append(code[1], "\nimport json, sys\nin_ = json.load(sys.stdin)\nverify(in_['secret'], in_['headers'], in_['body'].encode())\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(body string, change func(map[string]string)) error {
		var headers map[string]string
		n := one(t, Sink{Name: "a", Kind: Webhook, URL: "https://h/", Secret: testKey}, func(r *http.Request) (*http.Response, error) {
			sent, _ := io.ReadAll(r.Body)
			if body == "" {
				body = string(sent)
			}
			headers = map[string]string{}
			for key := range r.Header {
				headers[strings.ToLower(key)] = r.Header.Get(key)
			}
			return answer(200, nil, ""), nil
		})
		if err := n.Tell(context.Background(), []Event{moved}); err != nil {
			t.Fatal(err)
		}
		change(headers)
		in, err := json.Marshal(map[string]any{"secret": testKey, "headers": headers, "body": body})
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(python, script)
		cmd.Stdin = bytes.NewReader(in)
		out, err := cmd.CombinedOutput()
		if err != nil && !bytes.Contains(out, []byte("ValueError")) {
			t.Fatalf("%v\n%s", err, out)
		}
		return err
	}
	if err := run("", func(map[string]string) {}); err != nil {
		t.Error(err)
	}
	if run(`{"other": 1}`, func(map[string]string) {}) == nil || run("", func(h map[string]string) { h["webhook-timestamp"] = "1" }) == nil {
		t.Error("the receiver takes what nobody sent")
	}
}
