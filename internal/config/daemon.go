package config

import "time"

// Daemon says how the daemon keeps to its schedule. See docs/daemon.md.
type Daemon struct {
	Check     string   `yaml:"check" json:"check" jsonschema:"when the indexes are looked at, and nothing is installed: five cron fields, optionally after CRON_TZ=zone; empty: never"`
	Window    Duration `yaml:"window" json:"window" jsonschema:"for how long after its time a run may still begin: retries, nights that were not settled yet"`
	Splay     Duration `yaml:"splay" json:"splay" jsonschema:"each host begins later by its own, always equal part of this, so that not all ask at once"`
	Retry     Duration `yaml:"retry" json:"retry" jsonschema:"how long after a failure it is tried again, twice as long each time, while the window lasts; 0s: not"`
	CatchUp   bool     `yaml:"catch_up" json:"catch_up" jsonschema:"run once for all the times that were missed while the machine was off or slept"`
	OnBattery bool     `yaml:"on_battery" json:"on_battery" jsonschema:"run without mains power too"`
	Priority  string   `yaml:"priority" json:"priority" jsonschema:"normal, low or idle: of processor and disk, for runs of the daemon"`
}

// Bounds of the daemon's times.
const (
	maxDaemonWindow = Duration(7 * 24 * time.Hour)
	maxSplay        = Duration(24 * time.Hour)
	minRetry        = Duration(time.Minute)
)

// daemon checks how the schedule is kept. The schedules themselves are read by who
// runs them.
func (c *Config) daemon(v *validator) {
	d := c.Daemon
	v.check(d.Window >= 0 && d.Window <= maxDaemonWindow, "daemon.window", "%s is not between 0s and %s", d.Window, maxDaemonWindow)
	v.check(d.Splay >= 0 && d.Splay <= maxSplay, "daemon.splay", "%s is not between 0s and %s", d.Splay, maxSplay)
	v.check(d.Retry == 0 || d.Retry >= minRetry && d.Retry <= maxDaemonWindow, "daemon.retry", "%s is neither 0s nor between %s and %s", d.Retry, minRetry, maxDaemonWindow)
	v.check(d.Retry < d.Window || d.Retry == 0 || d.Window == 0, "daemon.retry", "%s is as long as the window, %s: it would never be tried again", d.Retry, d.Window)
	v.oneOf("daemon.priority", d.Priority, "normal", "low", "idle")
}
