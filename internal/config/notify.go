package config

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

func (c *Config) notify(v *validator) {}
