package config

import (
	"strings"
	"testing"
)

func TestMetricsTextfile(t *testing.T) {
	for file, want := range map[string]string{
		"": "",
		"/var/lib/prometheus/node-exporter/rocm-nightly.prom": "",
		"rocm-nightly.prom":       "not an absolute path",
		"/var/lib/rocm-nightly":   "does not end in NAME.prom",
		"/var/lib/x/.prom":        "does not end in NAME.prom",
		"/var/lib/x/":             "does not end in NAME.prom",
		"/var/lib/x.prom/a\x00b":  "does not end in NAME.prom",
		"../rocm-nightly.prom":    "not an absolute path",
		"/var/lib/x/.hidden.prom": "does not end in NAME.prom",
	} {
		v := &validator{}
		(&Config{Metrics: Metrics{Textfile: file}}).metrics(v)
		got := ""
		for _, err := range v.errs {
			got += err.Error()
		}
		if want == "" && got != "" || !strings.Contains(got, want) || want != "" && !strings.HasPrefix(got, "metrics.textfile: ") {
			t.Errorf("%q: %q", file, got)
		}
	}
}
