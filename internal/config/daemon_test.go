package config

import (
	"strings"
	"testing"
	"time"
)

func TestDaemonIsChecked(t *testing.T) {
	for key, change := range map[string]func(*Daemon){
		"daemon.window":   func(d *Daemon) { d.Window = Duration(8 * 24 * time.Hour) },
		"daemon.splay":    func(d *Daemon) { d.Splay = Duration(25 * time.Hour) },
		"daemon.retry":    func(d *Daemon) { d.Retry = Duration(time.Second) },
		"daemon.retry: ":  func(d *Daemon) { d.Retry, d.Window = Duration(time.Hour), Duration(time.Hour) },
		"daemon.priority": func(d *Daemon) { d.Priority = "high" },
	} {
		c := Default()
		change(&c.Daemon)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), strings.TrimSuffix(key, ": ")+": ") {
			t.Errorf("%s: %v", key, err)
		}
	}
	c := Default()
	c.Daemon = Daemon{Priority: "idle"}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}
