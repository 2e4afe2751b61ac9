package config

import (
	"strings"
	"testing"
)

// What the page would refuse is refused when the config is read.
func TestServeIsChecked(t *testing.T) {
	for text, want := range map[string]string{
		"serve: {listen: 127.0.0.1:7151}": "",
		"serve: {listen: off}":            "",
		"serve: {listen: \"unix:/run/rocm-nightly/page.sock\", token_file: /etc/t}":  "",
		"serve: {listen: 0.0.0.0:7151}":                                              "serve.listen: others reach 0.0.0.0:7151, and there is no TLS",
		"serve: {listen: 0.0.0.0:7151, public: true}":                                "",
		"serve: {listen: 0.0.0.0:7151, tls_cert: /c, tls_key: /k}":                   "",
		"serve: {listen: 127.0.0.1:1, tls_cert: /c}":                                 "serve.tls_cert: and tls_key belong together",
		"serve: {listen: 127.0.0.1:1, hosts: [\"a b\"]}":                             "serve.hosts[0]",
		"serve: {listen: 127.0.0.1:1, token_env: A, token_file: /b}":                 "serve.token: is in several places",
		"serve: {listen: 127.0.0.1:1, token_env: \"a secret, not the name of one\"}": "serve.token_env",
	} {
		cfg := Default()
		err := Decode(cfg, "x", []byte(text))
		if err == nil {
			err = cfg.Validate()
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
