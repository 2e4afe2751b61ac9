package config

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

func (c *Config) serve(v *validator) {}
