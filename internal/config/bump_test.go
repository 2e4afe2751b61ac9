package config

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

const wholeBump = `
bump:
  - name: rocm
    forge: github
    url: https://github.com/me/rocm
    api: https://ghe.example.net/api/v3
    base: main
    branch: bumps/rocm
    channel: stable
    app: {id: 12, installation: 34, key_file: /run/key.pem}
    ssh_key_file: /run/id
    known_hosts_credential: hosts
    mode: pull
    fork: me
    group: independent
    require: available
    max_wait: 6h
    min_age: 12h
    windows: [{cron: "CRON_TZ=UTC 0 6 * * 1-5", length: 4h}]
    limits: {open: 2, pulls_per_hour: 1, commits_per_hour: 3}
    author: {name: Bot, email: bot@example.net}
    signoff: true
    title: "ROCm {{.New}}"
    message: "{{.Title}}"
    labels: ["rocm", "{{.New}}"]
    reviewers: [me]
    teams: [org/rocm]
    assignees: [me]
    draft: true
    auto_merge: 24h
    merge_method: squash
    reopen: always
    dashboard: ROCm nightlies
    check: [[nix, flake, check], ["true"]]
    check_timeout: 20m
    files:
      - path: pins
        format: regex
        pattern: 'v=(?P<v>\S+)'
        target: gfx1151
        fetches: "https://x.example/{{.Name}}"
        set: {v: "{{.Version}}"}
`

// Every key of a bump is read, and nothing of it is lost.
func TestWholeBump(t *testing.T) {
	c := Default()
	if err := Decode(c, "x", []byte(wholeBump)); err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	b := c.Bump[0]
	if b.Windows[0].Length != Duration(4*time.Hour) || b.App.KeyFile != "/run/key.pem" || b.Check[0][2] != "check" || b.Limits.CommitsPerHour != 3 {
		t.Errorf("%+v", b)
	}
	unset := map[string]bool{"TokenEnv": true, "TokenFile": true, "TokenCredential": true, "SSHKeyCredential": true, "KnownHostsFile": true}
	for v, i := reflect.ValueOf(b), 0; i < v.NumField(); i++ {
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() != unset[name] {
			t.Errorf("%s: %v", name, v.Field(i))
		}
	}
}

// What makes no sense is named by its key; what may be a secret is not repeated.
func TestSenselessBumps(t *testing.T) {
	for more, want := range map[string]string{
		"":                               "",
		"forge: svn":                     "bump[0].forge",
		"name: ../x":                     "bump[0].name",
		"name: -x":                       "bump[0].name",
		"url: https://secret@x/y":        "bump[0].url",
		"url: https://a:secret@x/y":      "bump[0].url",
		"url: ssh://git@x/y":             "",
		"token_env: ghp_secret0000":      "bump[0].token_env",
		"token_env: 'a secret'":          "bump[0].token_env",
		"token_file: secret":             "bump[0].token_file",
		"token_credential: a/b":          "bump[0].token_credential",
		"{token_env: A, token_file: /b}": "bump[0].token: is in several places",
		"{ssh_key_file: /a, ssh_key_credential: b}":                       "bump[0].ssh_key: is in several places",
		"app: {id: 1, key_file: /k}":                                      "bump[0].app: is for forge github",
		"{forge: github, app: {id: 1}}":                                   "has no key",
		"{forge: github, app: {id: 0, key_file: /k}}":                     "bump[0].app.id",
		"{forge: github, app: {id: 1, key_env: A}, token_env: T}":         "and a token",
		"api: https://x/":                                                 "bump[0].api: forge git has no API",
		"{forge: gitea, api: 'http://x.net/'}":                            "bump[0].api",
		"{forge: gitea, api: 'https://s@x/'}":                             "bump[0].api",
		"{forge: github, mode: push}":                                     "bump[0].mode",
		"{mode: push, branch: x}":                                         "bump[0].branch",
		"{mode: push, group: independent}":                                "bump[0].group",
		"mode: shove":                                                     "bump[0].mode",
		"draft: true":                                                     "bump[0].draft: forge git has no pull requests",
		"{forge: gitlab, auto_merge: soon}":                               "bump[0].auto_merge",
		"{forge: gitlab, auto_merge: -1h}":                                "bump[0].auto_merge",
		"{forge: gitlab, merge_method: octopus}":                          "bump[0].merge_method",
		"reopen: never":                                                   "bump[0].reopen",
		"windows: [{cron: '0 6 * * *'}]":                                  "bump[0].windows[0].length",
		"windows: [{length: 4h}]":                                         "bump[0].windows[0].cron",
		"windows: [{cron: '0 6 * * *', length: 200h}]":                    "bump[0].windows[0].length",
		"limits: {open: -1}":                                              "bump[0].limits",
		"check: [[]]":                                                     "bump[0].check[0]",
		"check_timeout: 48h":                                              "bump[0].check_timeout",
		"author: {name: 'A <b>', email: a@b}":                             "bump[0].author.name",
		"author: {name: A, email: 'a b'}":                                 "bump[0].author.email",
		"{forge: gitlab, labels: ['']}":                                   "bump[0].labels[0]",
		"channel: weekly":                                                 "bump[0].channel",
		"files: []":                                                       "bump[0].files: missing",
		"files: [{path: f, format: regex, target: gfx1151, set: {a: b}}]": "bump[0].files[0].pattern",
		"files: [{path: f, format: nix, pattern: x, target: gfx1151, set: {a: b}}]":     "bump[0].files[0].pattern",
		"files: [{path: f, format: regex, pattern: '(', target: gfx1151, set: {a: b}}]": "bump[0].files[0].pattern",
		"files: [{path: /f, target: gfx1151, set: {a: b}}]":                             "bump[0].files[0].path",
		"files: [{path: f, target: gforce, set: {a: b}}]":                               "bump[0].files[0].target",
	} {
		c := Default()
		c.Bump = []Bump{{Name: "a", URL: "/srv/r.git", Files: []Pins{{Path: "f.nix", Target: "gfx1151", Set: map[string]string{"a": "b"}}}}}
		if more != "" {
			part := Default()
			body := strings.TrimSuffix(strings.TrimPrefix(more, "{"), "}")
			if !strings.HasPrefix(more, "{") {
				body = more
			}
			text := "bump: [{"
			for key, rest := range map[string]string{"name: ": "name: a, ", "url: ": "url: /srv/r.git, ", "files: ": "files: [{path: f.nix, target: gfx1151, set: {a: b}}], "} {
				if !strings.HasPrefix(body, key) {
					text += rest
				}
			}
			if err := Decode(part, "x", []byte(text+body+"}]")); err != nil {
				t.Errorf("%s: %v", more, err)
				continue
			}
			c = part
		}
		switch err := c.Validate(); {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v", more, err)
		case err != nil && strings.Contains(err.Error(), "secret"):
			if strings.Contains(strings.ReplaceAll(err.Error(), "the secret", ""), "secret") {
				t.Errorf("%s: the error tells the secret: %v", more, err)
			}
		}
	}
}

// Unknown keys of a bump are errors with their place.
func TestUnknownKeysOfABump(t *testing.T) {
	err := Decode(Default(), "x", []byte("bump:\n  - name: a\n    tokn_env: B\n"))
	if err == nil || !strings.Contains(err.Error(), "tokn_env") || !strings.Contains(err.Error(), "3:") {
		t.Error(err)
	}
}

// Two bumps that write one dashboard would undo each other's every night.
func TestOneDashboardForEachBump(t *testing.T) {
	c := Default()
	for _, name := range []string{"a", "b"} {
		c.Bump = append(c.Bump, Bump{Name: name, Forge: "gitea", URL: "https://x.example/me/r", Dashboard: "ROCm", Files: []Pins{{Path: "f.nix", Target: "gfx1151", Set: map[string]string{"a": "b"}}}})
	}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), `bump[1].dashboard: "ROCm" is the issue of the bump a`) {
		t.Errorf("got %v", err)
	}
	c.Bump[1].Dashboard = "ROCm, the other one"
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}
