package config

import (
	"fmt"
	"net/url"
	"text/template"
)

// Notify is one receiver of events. See docs/notify.md.
type Notify struct {
	Name             string   `yaml:"name" json:"name" jsonschema:"names it in logs and for notify-test"`
	Kind             string   `yaml:"kind" json:"kind" jsonschema:"webhook: JSON to an https:// URL; shoutrrr: a service URL such as slack://, discord://, matrix://, ntfy:// or smtp://"`
	URL              string   `yaml:"url,omitempty" json:"url,omitempty" jsonschema:"where to, if that is no secret"`
	URLEnv           string   `yaml:"url_env,omitempty" json:"url_env,omitempty" jsonschema:"the variable with the URL"`
	URLFile          string   `yaml:"url_file,omitempty" json:"url_file,omitempty" jsonschema:"the file with the URL"`
	URLCredential    string   `yaml:"url_credential,omitempty" json:"url_credential,omitempty" jsonschema:"the systemd credential with the URL"`
	SecretEnv        string   `yaml:"secret_env,omitempty" json:"secret_env,omitempty" jsonschema:"the variable with what a webhook is signed with"`
	SecretFile       string   `yaml:"secret_file,omitempty" json:"secret_file,omitempty" jsonschema:"the file with it"`
	SecretCredential string   `yaml:"secret_credential,omitempty" json:"secret_credential,omitempty" jsonschema:"the systemd credential with it"`
	Events           []string `yaml:"events,omitempty" json:"events,omitempty" jsonschema:"the kinds of events to send; none: all"`
	Title            string   `yaml:"title,omitempty" json:"title,omitempty" jsonschema:"a template of the title"`
	Text             string   `yaml:"text,omitempty" json:"text,omitempty" jsonschema:"a template of the text"`
	Insecure         bool     `yaml:"insecure,omitempty" json:"insecure,omitempty" jsonschema:"take http:// to a host that is not this machine"`
}

// NotifyKinds lists the kinds of events, as notify's events may name them. A test of
// the program sees to it that they are those which are told.
func NotifyKinds() []string {
	return []string{"new-bytes", "refused", "failed", "stale", "recovered", "installed", "new-night", "opened", "test"}
}

// notify checks who is told, as far as the config alone tells. Addresses and
// templates are read by those who use them. What is wrong with an address is never
// repeated: it may hold a secret.
func (c *Config) notify(v *validator) {
	seen := map[string]bool{}
	for i, n := range c.Notify {
		key := fmt.Sprintf("notify[%d]", i)
		v.check(bumpName.MatchString(n.Name), key+".name", "%.100q is not a name: letters, digits, '.', '_' and '-', the first a letter or digit", n.Name)
		v.check(!seen[n.Name], key+".name", "%.100q is the name of another one too", n.Name)
		seen[n.Name] = true
		v.oneOf(key+".kind", n.Kind, "webhook", "shoutrrr")
		v.notifyURL(key, n)
		v.one(key+".secret", n.SecretEnv, n.SecretFile, n.SecretCredential)
		v.check(n.Kind == "webhook" || n.SecretEnv+n.SecretFile+n.SecretCredential == "", key, "has a secret, and only webhooks are signed: remove it")
		for j, kind := range n.Events {
			v.oneOf(fmt.Sprintf("%s.events[%d]", key, j), kind, NotifyKinds()...)
		}
		for name, text := range map[string]string{"title": n.Title, "text": n.Text} {
			_, err := template.New(name).Parse(text)
			v.check(err == nil, key+"."+name, "%v", err)
		}
	}
}

// notifyURL checks that there is one address, and that none with a secret stands in
// the config itself.
func (v *validator) notifyURL(key string, n Notify) {
	places := 0
	for _, s := range []string{n.URL, n.URLEnv, n.URLFile, n.URLCredential} {
		if s != "" {
			places++
		}
	}
	v.check(places == 1, key, "names %d places of its address: set one of url, url_env, url_file and url_credential", places)
	v.one(key+".url", n.URLEnv, n.URLFile, n.URLCredential)
	if n.URL == "" {
		return
	}
	u, err := url.Parse(n.URL)
	v.check(err == nil && u.Scheme != "" && u.Host != "", key+".url", "is no address: write https://host/path, or SERVICE://…")
	v.check(err != nil || u.User == nil, key+".url", "holds a name or a password: put the address into a file that only you can read, and write its path as url_file")
}
