package config

import (
	"maps"
	"strings"
	"testing"
)

// What is written is what a program sees: no number is read as one.
func TestEnvIsTakenAsWritten(t *testing.T) {
	c := Default()
	err := Decode(c, "c.yaml", []byte(`
env: {A: 0, B: 11.50, C: "x y", D: true, E: 0x10, F: 1_000, G: "", H: 9.0.6, I: 010}
installs:
  - {target: gfx1151, env: {B: "", J: 'it''s $mine'}}
  - {target: gfx906}
`))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"A": "0", "B": "11.50", "C": "x y", "D": "true", "E": "0x10", "F": "1_000", "G": "", "H": "9.0.6", "I": "010"}
	if got := c.EnvOf(c.Installs[1]); !maps.Equal(got, want) {
		t.Errorf("%q", got)
	}
	want["B"], want["J"] = "", "it's $mine"
	if got := c.EnvOf(c.Installs[0]); !maps.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestEnvThatIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{LD_PRELOAD: /x}`:    "env: LD_PRELOAD would change every program",
		`{"A B": x}`:          `env: "A B" is no name`,
		`{PATH: /x}`:          "env: PATH is set from where the prefix is",
		`{BASH_ENV: /x}`:      "env: BASH_ENV is read by the shell",
		`{ROCM_NIGHTLY_X: 1}`: "this program's own",
		`{A: "b\nc"}`:         `env.A: "b\nc" holds a control character`,
		`{A: [1]}`:            "1:10: env.A: a sequence",
	} {
		c := Default()
		err := Decode(c, "c.yaml", []byte("env: "+text+"\n"))
		if err == nil {
			err = c.Validate()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	c := Default()
	c.Installs[0].Env = map[string]string{"PATH": "/x"}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "installs[0].env") {
		t.Error(err)
	}
}
