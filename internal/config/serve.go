package config

import "github.com/rocm-nightly/rocm-nightly/internal/listen"

// Serve is the daemon's status page. See docs/serve.md.
type Serve struct {
	Listen          string   `yaml:"listen" json:"listen" jsonschema:"host:port, unix:/path or systemd (its socket); off: no page"`
	Public          bool     `yaml:"public" json:"public" jsonschema:"listen where others reach it, also without TLS"`
	TLSCert         string   `yaml:"tls_cert" json:"tls_cert" jsonschema:"the certificate (PEM) to show"`
	TLSKey          string   `yaml:"tls_key" json:"tls_key" jsonschema:"its key (PEM)"`
	Hosts           []string `yaml:"hosts" json:"hosts" jsonschema:"names under which browsers may ask for it, beside localhost and addresses"`
	TokenEnv        string   `yaml:"token_env,omitempty" json:"token_env,omitempty" jsonschema:"the variable with the token for run, roll back and pin; without a token the page is read only"`
	TokenFile       string   `yaml:"token_file,omitempty" json:"token_file,omitempty" jsonschema:"the file with that token"`
	TokenCredential string   `yaml:"token_credential,omitempty" json:"token_credential,omitempty" jsonschema:"the systemd credential with that token"`
}

// serve checks where the page is, in the words of the page itself, and that its
// token has at most one place.
func (c *Config) serve(v *validator) {
	s := c.Serve
	w := listen.Where{Listen: s.Listen, Public: s.Public, TLSCert: s.TLSCert, TLSKey: s.TLSKey, Hosts: s.Hosts}
	for _, f := range w.Check() {
		v.check(false, "serve."+f.Key, "%s", f.Text)
	}
	v.one("serve.token", s.TokenEnv, s.TokenFile, s.TokenCredential)
}
