package notify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// through sends all that goes to http.DefaultTransport to w: the services have no
// other door, and some know their host by heart.
func through(t *testing.T, w wire) {
	t.Helper()
	was := http.DefaultTransport
	http.DefaultTransport = w
	t.Cleanup(func() { http.DefaultTransport = was })
}

// bogus are addresses of every service that is documented, with what of them must
// never be seen.
func bogus() map[string]struct {
	url    string
	secret []string
} {
	type b = struct {
		url    string
		secret []string
	}
	return map[string]b{
		"slack":      {"slack://hook:AAAAAAAAA-BBBBBBBBB-123456789123456789123456@webhook", []string{"AAAAAAAAA", "BBBBBBBBB", "123456789123456789123456"}},
		"slack bot":  {"slack://xoxb:123456789012-1234567890123-4mt0t4l1YL3g1T5L4cK70k3N@C001CH4NN3L", []string{"123456789012", "4mt0t4l1YL3g1T5L4cK70k3N"}},
		"discord":    {"discord://d1sc0rdTokenT0ken@987654321987654321", []string{"d1sc0rdTokenT0ken", "987654321987654321"}},
		"matrix":     {"matrix://:m4tr1xAccessT0ken@127.0.0.1:1/?rooms=!abcdefgh:example.org&disableTLS=yes", []string{"m4tr1xAccessT0ken"}},
		"matrix pw":  {"matrix://botuser:m4tr1xPassw0rd@127.0.0.1:1/?rooms=%23room:example.org&disableTLS=yes", []string{"m4tr1xPassw0rd"}},
		"ntfy":       {"ntfy://user:ntfyPassw0rd@127.0.0.1:1/t0picSecret?scheme=http", []string{"ntfyPassw0rd", "t0picSecret"}},
		"smtp":       {"smtp://mailuser:m4ilPassw0rd@127.0.0.1:1/?from=a@b.example&to=c@d.example", []string{"m4ilPassw0rd"}},
		"gotify":     {"gotify://127.0.0.1:1/AzyoeNS.D4iJLVa?disabletls=yes", []string{"AzyoeNS.D4iJLVa"}},
		"mattermost": {"mattermost://me@127.0.0.1:1/m4tterm0stTokenToken?disabletls=yes", []string{"m4tterm0stTokenToken"}},
		"rocketchat": {"rocketchat://me@127.0.0.1:1/r0cketTokenA/r0cketTokenB/channel", []string{"r0cketTokenA", "r0cketTokenB"}},
		"telegram":   {"telegram://110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw@telegram?chats=@channel", []string{"110201543", "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"}},
		"teams":      {"teams://11111111-4444-4444-8444-cccccccccccc@22222222-4444-4444-8444-cccccccccccc/33333333012222222222333333333344/44444444-4444-4444-8444-cccccccccccc/V2ESyij_gAljSoUQHvZoZYzlpAoAXExyOl26dlf1xHEx05?host=test.webhook.office.com", []string{"11111111-4444-4444-8444-cccccccccccc", "33333333012222222222333333333344", "gAljSoUQHvZoZYzlpAoAXExyOl26dlf1xHEx05"}},
		"pushover":   {"pushover://shoutrrr:azGDORePK8gMaC0QOYAMyEEuzJnyUi@uQiRzpo4DXghDmr9QzzfQu27cmVRsG/", []string{"azGDORePK8gMaC0QOYAMyEEuzJnyUi", "uQiRzpo4DXghDmr9QzzfQu27cmVRsG"}},
	}
}

// Whatever a server says and however the network fails, no part of a secret gets into
// an error or a log.
func TestNoSecretIsTold(t *testing.T) {
	seen := map[string]bool{}
	for name, b := range bogus() {
		service, _, _ := strings.Cut(b.url, "://")
		seen[service] = true
		for how, w := range map[string]wire{
			"network": func(r *http.Request) (*http.Response, error) { return nil, errors.New("dial " + r.URL.String()) },
			"echo": func(r *http.Request) (*http.Response, error) {
				body, _ := io.ReadAll(r.Body)
				said := fmt.Sprintf("no %s %v %s", r.URL, r.Header, body)
				return &http.Response{StatusCode: 403, Status: "403 " + r.URL.Path, Header: http.Header{}, Request: r, Body: io.NopCloser(strings.NewReader(said))}, nil
			},
			"json": func(r *http.Request) (*http.Response, error) {
				said, _ := json.Marshal(map[string]any{"error": r.URL.String(), "errcode": r.URL.String(), "ok": false, "description": r.URL.String(), "errorDescription": r.URL.String(), "code": 50001, "http": 403})
				return &http.Response{StatusCode: 403, Status: "403 no", Header: http.Header{}, Request: r, Body: io.NopCloser(bytes.NewReader(said))}, nil
			},
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				through(t, w)
				var log bytes.Buffer
				n, err := New(Options{Sinks: []Sink{{Name: "s", Kind: Shoutrrr, URL: b.url, Insecure: true, Timeout: 3 * time.Second}}, Log: slog.New(slog.NewTextHandler(&log, nil))})
				if err != nil {
					t.Fatal(err)
				}
				err = n.Tell(t.Context(), []Event{moved})
				if err == nil {
					t.Fatal("it was sent")
				}
				for _, s := range b.secret {
					if strings.Contains(err.Error()+log.String(), s) {
						t.Errorf("%s: %v %s", s, err, log.String())
					}
				}
			})
		}
		// Nor when the address itself is wrong.
		for _, bad := range []string{b.url + "&nosuch=parameter", strings.Replace(b.url, "://", "://%zz", 1), b.url + "?%zz"} {
			err := CheckAddress(Shoutrrr, bad, true)
			for _, s := range b.secret {
				if err != nil && strings.Contains(err.Error(), s) {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
	for _, s := range Services() {
		if !seen[s] {
			t.Errorf("%s is not tried here", s)
		}
	}
}

// hostile is an event of which everything that others write wants to be more than
// text.
func hostile() Event {
	return Event{
		Kind: NewBytes, Key: "k", Time: time.Unix(1790000000, 0).UTC(),
		Title: "a <!channel> @everyone\r\nBcc: evil@example.org",
		Text:  "<!here> <https://evil.example|click> [click](https://evil.example) @here @room **x** `y` <@U123>\n# big\x1b[31m\u202e",
		URL:   "https://forge.example/me/r/pull/7",
	}
}

// sent is what reached a service.
type sent struct {
	request *http.Request
	body    []byte
}

// capture takes all that is sent and answers as the service would.
func capture(t *testing.T, reply func(*http.Request) string) *[]sent {
	t.Helper()
	var all []sent
	through(t, func(r *http.Request) (*http.Response, error) {
		var body []byte
		if r.Body != nil {
			body, _ = io.ReadAll(r.Body)
		}
		all = append(all, sent{r, body})
		status, text := 200, reply(r)
		if text == "" {
			status = 204
		}
		return &http.Response{StatusCode: status, Status: fmt.Sprintf("%d x", status), Header: http.Header{}, Request: r, Body: io.NopCloser(strings.NewReader(text))}, nil
	})
	return &all
}

func tellOne(t *testing.T, address string, e Event) {
	t.Helper()
	n, err := New(Options{Sinks: []Sink{{Name: "s", Kind: Shoutrrr, URL: address, Insecure: true}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Tell(t.Context(), []Event{e}); err != nil {
		t.Fatal(err)
	}
}

// lacks fails for each of the texts that is there.
func lacks(t *testing.T, body string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(body, text) {
			t.Errorf("%q is in %s", text, body)
		}
	}
}

func TestSlack(t *testing.T) {
	all := capture(t, func(*http.Request) string { return "ok" })
	tellOne(t, bogus()["slack"].url, hostile())
	r := (*all)[0]
	if r.request.URL.String() != "https://hooks.slack.com/services/AAAAAAAAA/BBBBBBBBB/123456789123456789123456" {
		t.Error(r.request.URL)
	}
	var p struct {
		Text        string
		Attachments []struct{ Text string }
	}
	if err := json.Unmarshal(r.body, &p); err != nil {
		t.Fatal(err)
	}
	text := p.Text
	for _, a := range p.Attachments {
		text += "\n" + a.Text
	}
	lacks(t, text, "<", "\x1b", "\u202e", "\r")
	if !strings.Contains(text, "&lt;!here&gt;") || !strings.HasSuffix(text, "\nhttps://forge.example/me/r/pull/7") || strings.Contains(p.Text, "\n") {
		t.Errorf("%q", text)
	}
}

func TestDiscord(t *testing.T) {
	all := capture(t, func(*http.Request) string { return "" })
	tellOne(t, bogus()["discord"].url, hostile())
	r := (*all)[0]
	if r.request.URL.Host != "discord.com" || !strings.HasPrefix(r.request.URL.Path, "/api/webhooks/987654321987654321/d1sc0rdTokenT0ken") {
		t.Error(r.request.URL)
	}
	var p struct {
		Content string
		Embeds  []struct{ Title, Description string }
	}
	if err := json.Unmarshal(r.body, &p); err != nil || len(*all) != 1 || len(p.Embeds) != 1 {
		t.Fatalf("%v %s", err, r.body)
	}
	text := p.Content + p.Embeds[0].Title + p.Embeds[0].Description
	lacks(t, text, "@everyone", "@here", " <@U", " [click]", "\n#", "\x1b")
	if !strings.Contains(text, `\[click\](https://evil.example)`) || !strings.HasSuffix(text, "\nhttps://forge.example/me/r/pull/7") {
		t.Errorf("%q", text)
	}
}

func TestMatrix(t *testing.T) {
	all := capture(t, func(r *http.Request) string {
		switch {
		case strings.Contains(r.URL.Path, "/join/"):
			return `{"room_id": "!abcdefgh:example.org"}`
		case strings.Contains(r.URL.Path, "/send/m.room.message"):
			return `{"event_id": "$1"}`
		}
		return `{"errcode": "M_UNRECOGNIZED"}`
	})
	tellOne(t, bogus()["matrix"].url, hostile())
	last := (*all)[len(*all)-1]
	var p map[string]string
	if err := json.Unmarshal(last.body, &p); err != nil || p["msgtype"] != "m.text" || p["formatted_body"] != "" {
		t.Fatalf("%v %s", err, last.body)
	}
	lacks(t, p["body"], "@room", "\x1b")
	if !strings.HasPrefix(p["body"], "a <!channel>") {
		t.Errorf("%q", p["body"])
	}
}

func TestNtfy(t *testing.T) {
	var r *http.Request
	var body []byte
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, got *http.Request) {
		r = got
		body, _ = io.ReadAll(got.Body)
		io.WriteString(w, `{"id": "x"}`)
	}))
	defer srv.Close()
	e := hostile()
	e.Title = "Alarm für gfx1151\nPriority: 1"
	tellOne(t, strings.Replace(srv.URL, "http://", "ntfy://me:pw@", 1)+"/rocm?scheme=http", e)
	title, err := new(mime.WordDecoder).DecodeHeader(r.Header.Get("Title"))
	if err != nil || title != "Alarm für gfx1151 Priority: 1" || r.URL.Path != "/rocm" || r.Header.Get("Priority") != "Max" {
		t.Errorf("%v %q %+v", err, title, r)
	}
	if user, pw, ok := r.BasicAuth(); !ok || user != "me" || pw != "pw" {
		t.Errorf("%+v", r.Header)
	}
	if !bytes.Contains(body, []byte("[click](https://evil.example)")) || bytes.Contains(body, []byte("\x1b")) {
		t.Errorf("%q", body)
	}
	tellOne(t, strings.Replace(srv.URL, "http://", "ntfy://", 1)+"/rocm?scheme=http", moved)
	if r.Header.Get("Priority") != "Default" {
		t.Errorf("%+v", r.Header)
	}
}

// Markdown services get no markup of what others wrote.
func TestMarkdownServices(t *testing.T) {
	for name, reply := range map[string]string{"mattermost": "ok", "rocketchat": "ok", "teams": "1", "telegram": `{"ok": true, "result": {}}`, "gotify": `{"id": 1}`, "pushover": `{"status": 1}`} {
		t.Run(name, func(t *testing.T) {
			address := bogus()[name].url
			var body []byte
			take := func(w http.ResponseWriter, r *http.Request) {
				body, _ = io.ReadAll(r.Body)
				io.WriteString(w, reply)
			}
			srv := httptest.NewServer(http.HandlerFunc(take))
			defer srv.Close()
			u, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			if u.Hostname() == "127.0.0.1" {
				u.Host = srv.Listener.Addr().String()
			}
			if name != "mattermost" && name != "gotify" { // which have a transport of their own
				through(t, func(r *http.Request) (*http.Response, error) {
					rec := httptest.NewRecorder()
					take(rec, r)
					res := rec.Result()
					res.Request = r
					return res, nil
				})
			}
			tellOne(t, u.String(), hostile())
			text := string(body)
			if unquoted, err := url.QueryUnescape(text); err == nil && name == "pushover" {
				text = unquoted
			}
			lacks(t, text, "\x1b", "\\u001b", "\u202e")
			switch name {
			case "mattermost", "teams":
				lacks(t, text, "@everyone", "@here", " [click]", "<a", " **x**")
			case "rocketchat":
				lacks(t, text, "@everyone", "@here", "[click]", "\\u003chttps", "<https")
			case "telegram":
				lacks(t, text, "@everyone", `"parse_mode":"HTML"`, `"parse_mode":"Markdown`)
			}
			if !strings.Contains(text, "https://forge.example/me/r/pull/7") {
				t.Errorf("%s", text)
			}
		})
	}
}

// Of any text, no service gets what it would make a mention or a link of.
func TestMarkupModel(t *testing.T) {
	piece := rapid.SampledFrom([]string{"@", "everyone", "<", "!", ">", "[", "](", "http://x", "\\", "`", "*", "|", "a", "\u200b", "\n", "&lt;"})
	rapid.Check(t, func(rt *rapid.T) {
		in := strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(rt, "text"), "")
		for name, sv := range serviceTable() {
			got := sv.plain(in)
			if name == "slack" && strings.ContainsAny(got, "<>") {
				rt.Errorf("slack: %q", got)
			}
			if slices.Contains([]string{"discord", "mattermost", "teams", "rocketchat", "matrix", "telegram"}, name) && strings.Contains(strings.ReplaceAll(got, noMention, ""), "@") {
				rt.Errorf("%s: a mention in %q", name, got)
			}
			if slices.Contains([]string{"discord", "mattermost"}, name) {
				bare := strings.ReplaceAll(got, `\\`, "")
				for _, c := range "[]<>*`|" {
					bare = strings.ReplaceAll(bare, `\`+string(c), "")
				}
				if strings.ContainsAny(bare, "[]<>*`|\\") {
					rt.Errorf("%s: %q", name, got)
				}
			}
		}
	})
}

func TestLinksThatStand(t *testing.T) {
	for address, want := range map[string]bool{
		"https://forge.example/a_b/c/-/merge_requests/7?x=1&y=2#z": true, "http://127.0.0.1:3000/a": true,
		"": false, "javascript:alert(1)": false, "https://a/ b": false, "https://a/x|click>": false, "https://a/)[x](": false, "https://u:p@a/": false, "https:///x": false,
	} {
		if link(address) != want {
			t.Errorf("%q: %v", address, !want)
		}
	}
}

func TestServicesAreDocumented(t *testing.T) {
	for _, name := range Services() {
		found := slices.ContainsFunc([]string{"`" + name + "://"}, func(s string) bool { return strings.Contains(string(read(t, "../../docs/notify.md")), s) })
		if !found {
			t.Errorf("docs/notify.md lacks %s", name)
		}
	}
	for _, kind := range Kinds() {
		if !strings.Contains(string(read(t, "../../docs/notify.md")), "\n| `"+kind+"` | ") {
			t.Errorf("docs/notify.md lacks %s", kind)
		}
	}
}
