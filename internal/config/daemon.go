package config

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
