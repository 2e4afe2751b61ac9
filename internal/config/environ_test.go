package config

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func load(t *testing.T, environ ...string) (*Config, error) {
	t.Helper()
	c, _, err := Load(Places{Environ: environ})
	return c, err
}

func TestTheEnvironmentSetsKeys(t *testing.T) {
	c, err := load(t, "ROCM_NIGHTLY__POLICY__SERIES=7.10", "ROCM_NIGHTLY__DAEMON__WINDOW=4h", "ROCM_NIGHTLY__DAEMON__CHECK=",
		"ROCM_NIGHTLY__SCHEDULE=*/30 * * * *", "ROCM_NIGHTLY__SERVE__PUBLIC=true", "ROCM_NIGHTLY__SERVE__HOSTS=[a, 7.10]", "ROCM_NIGHTLY__UNPACK__MAX_BYTES=1GiB",
		"ROCM_NIGHTLY__UNPACK__MAX_RATIO=150.5", "ROCM_NIGHTLY__KEEP_TARBALLS=3", "ROCM_NIGHTLY__ENV={A: 0x10}", "ROCM_NIGHTLY__POLICY__STALE_AFTER=1h",
		"ROCM_NIGHTLY__INSTALLS=[{target: gfx1151, keep: {last: 5}}]", "ROCM_NIGHTLY__CHANNELS={dev: {indexes: [{url: 'https://example.org/'}]}}",
		"ROCM_NIGHTLY_ENV=/x", "ROCM_NIGHTLY_PREFIX=/y", "ROCM_NIGHTLY_TOKEN=z", "HOME=/root")
	if err != nil {
		t.Fatal(err)
	}
	for _, is := range []struct{ got, want any }{
		{c.Policy.Series, "7.10"}, {c.Daemon.Window.String(), "4h0m0s"}, {c.Daemon.Check, ""}, {c.Schedule, "*/30 * * * *"}, {c.Serve.Public, true},
		{c.Serve.Hosts, []string{"a", "7.10"}}, {c.Unpack.MaxBytes, Size(1 << 30)}, {c.Unpack.MaxRatio, 150.5}, {c.KeepTarballs, 3}, {c.Env["A"], "0x10"},
		{c.Policy.StaleAfter.After.String(), "1h0m0s"}, {c.KeepOf(c.Installs[0]).Last, 5}, {c.Installs[0].Channel, "nightly"}, {len(c.Channels), 6}, {len(c.Channels["dev"].Indexes), 1},
	} {
		if !reflect.DeepEqual(is.got, is.want) {
			t.Errorf("got %v, want %v", is.got, is.want)
		}
	}
}

func TestVariablesThatAreRefused(t *testing.T) {
	for pair, want := range map[string]string{
		"ROCM_NIGHTLY__POLICY__SERIE=1":           "did you mean ROCM_NIGHTLY__POLICY__SERIES?",
		"ROCM_NIGHTLY__POLICY_SERIES=1":           "did you mean ROCM_NIGHTLY__POLICY__SERIES?",
		"ROCM_NIGHTLY_POLICY_SERIES=1":            "did you mean ROCM_NIGHTLY__POLICY__SERIES?",
		"ROCM_NIGHTLY_ROOT=/x":                    "did you mean ROCM_NIGHTLY__ROOT?",
		"ROCM_NIGHTLY_POLICY__SERIES=1":           "$ROCM_NIGHTLY_POLICY__SERIES: sets nothing: did you mean ROCM_NIGHTLY__POLICY__SERIES?",
		"ROCM_NIGHTLY__policy__series=1":          "did you mean ROCM_NIGHTLY__POLICY__SERIES?",
		"ROCM_NIGHTLY__KEEP={last: 5}":            "names a section, which has a variable for each of its keys: ROCM_NIGHTLY__KEEP__LAST",
		"ROCM_NIGHTLY__KEEP__LAST=null":           "is empty",
		"ROCM_NIGHTLY__KEEP__LAST=~":              "is empty",
		"ROCM_NIGHTLY__QQQ=1":                     "$ROCM_NIGHTLY__QQQ: there is no such key",
		"ROCM_NIGHTLY__KEEP__LAST=many":           "$ROCM_NIGHTLY__KEEP__LAST: keep.last: is no whole number",
		"ROCM_NIGHTLY__KEEP__LAST=":               "is empty",
		"ROCM_NIGHTLY__KEEP__LAST=# 3":            "is nothing but a comment",
		"ROCM_NIGHTLY__KEEP__LAST=[3]":            "keep.last: a sequence is no plain value",
		"ROCM_NIGHTLY__KEEP__LAST=3\n---\n4":      "more than one",
		"ROCM_NIGHTLY__KEEP__LAST=0":              "$ROCM_NIGHTLY__KEEP__LAST: keep.last: 0: at least 2",
		"ROCM_NIGHTLY__SERVE__PUBLIC=maybe":       "serve.public: is neither true nor false",
		"ROCM_NIGHTLY__SERVE__HOSTS=a":            "serve.hosts: is no list: write [a, b]",
		"ROCM_NIGHTLY__SERVE__HOSTS=[a], x: [b]":  "serve.hosts",
		"ROCM_NIGHTLY__ENV=[a]":                   "env: is no section",
		"ROCM_NIGHTLY__ENV={PATH: /x}":            "$ROCM_NIGHTLY__ENV: env: PATH is set",
		"ROCM_NIGHTLY__DAEMON__WINDOW=soon":       "$ROCM_NIGHTLY__DAEMON__WINDOW: daemon.window: \"soon\"",
		"ROCM_NIGHTLY__INSTALLS=[{targt: a}]":     "installs[0].targt: there is no such key (did you mean target?)",
		"ROCM_NIGHTLY__INSTALLS=[{target: a, *b}": "installs",
	} {
		_, err := load(t, pair)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", pair, err, want)
		}
	}
}

// Every key has a variable, and docs/config.md lists them; what this program sets for
// hooks and shells is none of them.
func TestVariablesAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, v := range Variables() {
		row := fmt.Sprintf("| `%s` | `%s` | %s |", v.Key, v.Name, v.Form)
		if !strings.Contains(string(doc), row) {
			t.Errorf("docs/config.md lacks\n%s", row)
		}
		rows++
	}
	if n := strings.Count(string(doc), "` | `ROCM_NIGHTLY__"); n != rows {
		t.Errorf("docs/config.md lists %d variables, there are %d", n, rows)
	}
	for _, name := range []string{"CONFIG", "DATA", "ENV", "UNDO", "MODULE", "KEEP_ENV", "PREFIX", "PHASE", "PREVIOUS", "SLOT", "TARGET", "VERSION", "TOKEN", "BUMP_NAME", "BUMP_BASE", "BUMP_FILES", "BUMP_NEW", "BUMP_OLD", "BUMP_TARGETS", "HELPER", "FAULT", "CORPUS_TARBALL", "NO_SKIP"} {
		if layers, wrong := overrides([]string{"ROCM_NIGHTLY_" + name + "=x"}); len(layers)+len(wrong) > 0 {
			t.Errorf("ROCM_NIGHTLY_%s is taken for a key: %v", name, wrong)
		}
	}
	keys := []string{}
	for _, v := range Variables() {
		keys = append(keys, v.Key)
	}
	for _, key := range []string{"policy.series", "serve.listen", "daemon.window", "schedule", "installs", "env", "notify"} {
		if !slices.Contains(keys, key) {
			t.Errorf("%s has no variable", key)
		}
	}
}
