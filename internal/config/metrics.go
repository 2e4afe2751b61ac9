package config

import (
	"path/filepath"
	"strings"
)

// Metrics says where numbers are written for node_exporter's textfile collector.
// See docs/metrics.md.
type Metrics struct {
	Textfile string `yaml:"textfile" json:"textfile" jsonschema:"a file to replace after each run, such as /var/lib/prometheus/node-exporter/rocm-nightly.prom; empty: none"`
}

// metrics checks where the textfile goes: node_exporter reads *.prom and nothing
// else of its directory.
func (c *Config) metrics(v *validator) {
	file := c.Metrics.Textfile
	if file == "" {
		return
	}
	v.check(filepath.IsAbs(file), "metrics.textfile", "%q is not an absolute path", file)
	v.check(!strings.ContainsRune(file, 0) && !strings.HasPrefix(filepath.Base(file), ".") && strings.HasSuffix(file, ".prom"), "metrics.textfile",
		"%q does not end in NAME.prom: node_exporter reads nothing else", file)
}
