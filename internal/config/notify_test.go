package config

import (
	"strings"
	"testing"
)

func TestNotify(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{text: `[{name: a, kind: webhook, url: "https://h/x", secret_env: HOOK_SECRET, title: "{{.Title}}", events: [failed, recovered]}]`},
		{text: `[{name: a, kind: shoutrrr, url_file: /etc/x.url}, {name: b, kind: shoutrrr, url_env: NTFY_URL}, {name: c, kind: shoutrrr, url_credential: slack-url}]`},
		{text: `[{kind: webhook, url_env: X}]`, want: "notify[0].name"},
		{text: `[{name: a, kind: webhook, url_env: X}, {name: a, kind: webhook, url_env: X}]`, want: "is the name of another one too"},
		{text: `[{name: a, kind: mail, url_env: X}]`, want: "notify[0].kind"},
		{text: `[{name: a, kind: webhook}]`, want: "names 0 places"},
		{text: `[{name: a, kind: webhook, url: "https://h/", url_env: X}]`, want: "names 2 places"},
		{text: `[{name: a, kind: webhook, url_env: X, url_file: /x}]`, want: "names 2 places"},
		{text: `[{name: a, kind: webhook, url: "https://me:hunter2@h/"}]`, want: "holds a name or a password"},
		{text: `[{name: a, kind: webhook, url: hunter2}]`, want: "is no address"},
		{text: `[{name: a, kind: webhook, url_env: "hunter2://x"}]`, want: "notify[0].url_env"},
		{text: `[{name: a, kind: webhook, url_file: x.url}]`, want: "notify[0].url_file"},
		{text: `[{name: a, kind: webhook, url_env: X, secret_env: A, secret_file: /b}]`, want: "notify[0].secret"},
		{text: `[{name: a, kind: shoutrrr, url_env: X, secret_env: A}]`, want: "only webhooks are signed"},
		{text: `[{name: a, kind: webhook, url_env: X, events: [all]}]`, want: "notify[0].events[0]"},
		{text: `[{name: a, kind: webhook, url_env: X, text: "{{.Text"}]`, want: "notify[0].text"},
	} {
		cfg := Default()
		err := Decode(cfg, "c.yaml", []byte("notify: "+c.text))
		if err == nil {
			err = cfg.Validate()
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) || err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
}
