package config

import (
	"maps"
	"slices"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/amd"
	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// Config is everything that config.yaml can say. See that file for what each
// key means; Default holds what an absent key means.
type Config struct {
	AMD *amd.Data  `yaml:"-" json:"-"` // what is known of AMD's hosts, and of what to avoid
	GFX *gfx.Table `yaml:"-" json:"-"` // what is known of GPUs

	Root         string             `yaml:"root" json:"root" jsonschema:"where generations, downloads and the ledger are kept; empty: /var/lib/rocm-nightly for root, $XDG_DATA_HOME/rocm-nightly for a user"`
	RootAlone    bool               `yaml:"root_alone" json:"root_alone" jsonschema:"this host alone uses root: then it may be on a file system whose locks do not keep other hosts out (docs/store.md)"`
	Channels     map[string]Channel `yaml:"channels" json:"channels" jsonschema:"the index pages of each channel; built in for AMD, written only for a mirror"`
	Installs     []Install          `yaml:"installs" json:"installs" jsonschema:"what update installs"`
	Policy       Policy             `yaml:"policy" json:"policy" jsonschema:"which release is the one to take"`
	Download     Download           `yaml:"download" json:"download" jsonschema:"how tarballs are downloaded"`
	Unpack       Unpack             `yaml:"unpack" json:"unpack" jsonschema:"what a tarball may hold"`
	Repack       Repack             `yaml:"repack" json:"repack" jsonschema:"how the tree is made usable"`
	Env          map[string]string  `yaml:"env" json:"env" jsonschema:"variables for the environment files and hooks, env and exec; empty takes a built-in one away"`
	Audit        Audit              `yaml:"audit" json:"audit" jsonschema:"what the audit looks at and refuses"`
	Health       Health             `yaml:"health" json:"health" jsonschema:"what must succeed before the switch, and after it"`
	Activate     string             `yaml:"activate" json:"activate" jsonschema:"when a night that is here and in order becomes active. auto: at once; idle: when nobody uses the active one; manual: by rocm-nightly activate"`
	Dedup        string             `yaml:"dedup" json:"dedup" jsonschema:"sharing of equal files between generations: auto (reflink, else hardlink), reflink, hardlink (a file keeps the time of the older one) or off"`
	KeepTarballs int                `yaml:"keep_tarballs" json:"keep_tarballs" jsonschema:"how many tarballs of each install stay, those installed last; 0: none"`
	Keep         Keep               `yaml:"keep" json:"keep" jsonschema:"which generations stay: the active, the previous and those in use always"`
	Schedule     string             `yaml:"schedule" json:"schedule" jsonschema:"when the daemon updates: five cron fields, optionally after CRON_TZ=zone"`
	Bump         []Bump             `yaml:"bump" json:"bump" jsonschema:"the repositories whose pins are bumped"`
	Host         Host               `yaml:"host" json:"host" jsonschema:"what of etc/ of an install is linked to where shells and loaders look"`
	Trust        []Trust            `yaml:"trust" json:"trust" jsonschema:"ledgers and locks of others, for policy.verify"`
	Daemon       Daemon             `yaml:"daemon" json:"daemon" jsonschema:"how the daemon keeps to its schedule"`
	Serve        Serve              `yaml:"serve" json:"serve" jsonschema:"the daemon's status page"`
	Metrics      Metrics            `yaml:"metrics" json:"metrics" jsonschema:"numbers for Prometheus, where no daemon answers"`
	Notify       []Notify           `yaml:"notify" json:"notify" jsonschema:"who is told of events"`

	layers []layer // that it was read from, in order
}

// Channel is the ordered list of the index pages of one channel.
type Channel struct {
	Indexes []Index `yaml:"indexes" json:"indexes"`
}

// Index is one index page.
type Index struct {
	URL         string   `yaml:"url" json:"url"`
	Insecure    bool     `yaml:"insecure,omitempty" json:"insecure,omitempty" jsonschema:"take http:// from a host that is not this machine"`
	HeadersFile string   `yaml:"headers_file,omitempty" json:"headers_file,omitempty" jsonschema:"lines of Name: value, sent to this host alone"`
	CAFile      string   `yaml:"ca_file,omitempty" json:"ca_file,omitempty" jsonschema:"certificates (PEM) that are trusted for this host, beside the system's"`
	ClientCert  string   `yaml:"client_cert,omitempty" json:"client_cert,omitempty" jsonschema:"the certificate (PEM) to show to this host; with its key, unless client_key names that"`
	ClientKey   string   `yaml:"client_key,omitempty" json:"client_key,omitempty" jsonschema:"the key (PEM) of client_cert"`
	AllowHosts  []string `yaml:"allow_hosts,omitempty" json:"allow_hosts,omitempty" jsonschema:"other hosts that redirects may lead to: a name, or *.suffix"`
	From        string   `yaml:"from,omitempty" json:"from,omitempty" jsonschema:"the first version that this index serves"`
	Until       string   `yaml:"until,omitempty" json:"until,omitempty" jsonschema:"the first version that it serves no more"`
	Frozen      bool     `yaml:"frozen,omitempty" json:"frozen,omitempty" jsonschema:"nothing is published here any more"`
	Archive     bool     `yaml:"archive,omitempty" json:"archive,omitempty" jsonschema:"asked only for versions that it may hold"`
}

// Install is one slot: a target of a channel. What is not set is as at the top level.
type Install struct {
	Target   string  `yaml:"target" json:"target" jsonschema:"auto, a gfx name, a product name, a family slug or multiarch"`
	Channel  string  `yaml:"channel" json:"channel" jsonschema:"nightly, dev, rc, bkc, stable or asan"`
	Link     string  `yaml:"link,omitempty" json:"link,omitempty" jsonschema:"a symlink to what is active, such as /opt/rocm"`
	Activate string  `yaml:"activate,omitempty" json:"activate,omitempty" jsonschema:"auto, idle or manual"`
	Keep     *Keep   `yaml:"keep,omitempty" json:"keep,omitempty"`
	Schedule string  `yaml:"schedule,omitempty" json:"schedule,omitempty"`
	Repack   *Repack `yaml:"repack,omitempty" json:"repack,omitempty"`
	Audit    *Audit  `yaml:"audit,omitempty" json:"audit,omitempty"`

	Env map[string]string `yaml:"env,omitempty" json:"env,omitempty" jsonschema:"over the top level's, name by name"`

	KeepTarballs *int `yaml:"keep_tarballs,omitempty" json:"keep_tarballs,omitempty" jsonschema:"over the top level's"`
}

// Policy says which release is the one to take.
type Policy struct {
	Prefer         string   `yaml:"prefer" json:"prefer" jsonschema:"version: the highest in PEP 440 order; date: the last published"`
	Series         string   `yaml:"series" json:"series" jsonschema:"only versions that begin so: 10.2"`
	MinAge         Duration `yaml:"min_age" json:"min_age" jsonschema:"only releases published at least this long ago"`
	Settle         Duration `yaml:"settle" json:"settle" jsonschema:"a night of which multiarch is not listed yet is left alone for this long"`
	StaleAfter     Patience `yaml:"stale_after" json:"stale_after" jsonschema:"exit 3 when the newest release is older; auto: 96h for nightly and dev, never for the others; 0s: never"`
	Deny           []string `yaml:"deny" json:"deny" jsonschema:"versions or file names never to take; globs"`
	Multiarch      string   `yaml:"multiarch" json:"multiarch" jsonschema:"never, or fallback: take multiarch where no family serves the target"`
	AllowDowngrade bool     `yaml:"allow_downgrade" json:"allow_downgrade" jsonschema:"take the newest admissible release even when it is older than what is active"`
	Lock           string   `yaml:"lock" json:"lock" jsonschema:"a rocm-nightly.lock, file or URL: install exactly what it names"`
	LockKey        string   `yaml:"lock_key" json:"lock_key" jsonschema:"the minisign public key that must have signed the lock; empty: no signature is asked for"`
	Verify         string   `yaml:"verify" json:"verify" jsonschema:"what activation needs. observed: our own observation; agreed: the same digest in quorum sources of trust; signed: a signed lock that names it"`
	Quorum         int      `yaml:"quorum" json:"quorum" jsonschema:"how many sources of trust must have the same digest, for verify: agreed"`
}

// Trust is the ledger or the lock of somebody else.
type Trust struct {
	URL string `yaml:"url" json:"url" jsonschema:"https://, file:// or an absolute path of a ledger or a rocm-nightly.lock"`
	Key string `yaml:"key,omitempty" json:"key,omitempty" jsonschema:"the minisign public key that must have signed it (URL.minisig)"`

	HeadersFile string   `yaml:"headers_file,omitempty" json:"headers_file,omitempty" jsonschema:"lines of Name: value, sent to this host alone"`
	CAFile      string   `yaml:"ca_file,omitempty" json:"ca_file,omitempty" jsonschema:"certificates (PEM) that are trusted for this host, beside the system's"`
	AllowHosts  []string `yaml:"allow_hosts,omitempty" json:"allow_hosts,omitempty" jsonschema:"other hosts that redirects may lead to: a name, or *.suffix"`
}

// Download says how tarballs are downloaded.
type Download struct {
	Connections int      `yaml:"connections" json:"connections"`
	RateLimit   Size     `yaml:"rate_limit" json:"rate_limit" jsonschema:"bytes a second over all connections; 0: no limit"`
	Retries     int      `yaml:"retries" json:"retries" jsonschema:"how often a segment is tried again"`
	IdleTimeout Duration `yaml:"idle_timeout" json:"idle_timeout" jsonschema:"a connection that delivers nothing for so long is given up"`
}

// Unpack bounds what a tarball may hold.
type Unpack struct {
	MaxBytes     Size    `yaml:"max_bytes" json:"max_bytes"`
	MaxEntries   int     `yaml:"max_entries" json:"max_entries"`
	MaxRatio     float64 `yaml:"max_ratio" json:"max_ratio"`
	Decompressor string  `yaml:"decompressor" json:"decompressor" jsonschema:"auto, or klauspost: gzip by klauspost/compress, should the faster one be in doubt"`
}

// Repack says how the tree is made usable.
type Repack struct {
	Profile         string   `yaml:"profile" json:"profile" jsonschema:"fhs or nix"`
	RunPath         string   `yaml:"run_path" json:"run_path" jsonschema:"rpath (DT_RPATH) or runpath (DT_RUNPATH)"`
	Interpreter     string   `yaml:"interpreter" json:"interpreter" jsonschema:"the program interpreter to write into executables; empty: theirs"`
	InterpreterPath []string `yaml:"interpreter_path" json:"interpreter_path" jsonschema:"directories in which script interpreters are found (profile nix)"`
	AddRPath        []string `yaml:"add_rpath" json:"add_rpath" jsonschema:"directories to add at the end of every run path"`
	Omit            []Part   `yaml:"omit" json:"omit" jsonschema:"parts of the tarball to leave out; databases and kernels are those of other targets"`
}

// Audit says what the audit looks at and what it refuses.
type Audit struct {
	Scope  string  `yaml:"scope" json:"scope" jsonschema:"host: this machine's libraries and interpreters count; tree: they do not"`
	Refuse string  `yaml:"refuse" json:"refuse" jsonschema:"regression: what is worse than the active generation; all; never"`
	Allow  []Allow `yaml:"allow" json:"allow" jsonschema:"findings that are known and accepted"`
}

// Allow accepts the findings of one rule on the paths that match a glob.
type Allow struct {
	Rule string `yaml:"rule" json:"rule"`
	Path string `yaml:"path" json:"path"`
}

// Health is what must succeed before the switch, and after it.
type Health struct {
	Smoke   string   `yaml:"smoke" json:"smoke" jsonschema:"what is started of a new generation before it is installed, in a cage. auto: kernels and rocBLAS on the GPU where /dev/kfd can be used, else nothing; cpu: what takes no GPU; gpu; off"`
	Command []string `yaml:"command" json:"command" jsonschema:"a program (a whole path, or a name that is looked up in the new prefix and the system) and its arguments, run before the switch and after it; empty: none"`
	Timeout Duration `yaml:"timeout" json:"timeout" jsonschema:"of each run of command"`
	Sandbox string   `yaml:"sandbox" json:"sandbox" jsonschema:"on: command runs in a cage, or not at all; off: it runs with all rights that rocm-nightly has"`
}

// Keep says how many generations stay.
type Keep struct {
	Last  int  `yaml:"last" json:"last" jsonschema:"the last so many, at least 2"`
	Days  int  `yaml:"days" json:"days" jsonschema:"those older than so many days go, also of the last; 0: not by age"`
	Bytes Size `yaml:"bytes" json:"bytes" jsonschema:"the oldest go while all of the install occupy more of the disk, also of the last; 0: not by size"`
}

// Host says what of an install's etc/ is linked to where shells and loaders look.
type Host struct {
	Install     string `yaml:"install" json:"install" jsonschema:"whose: a target or slot, such as gfx1151 or nightly-gfx1151; empty: the first install"`
	Etc         string `yaml:"etc" json:"etc" jsonschema:"where /etc is; empty: /etc for root, and for a user the places of their own"`
	Profile     bool   `yaml:"profile" json:"profile" jsonschema:"etc/profile.d/rocm-nightly.sh, for login shells"`
	Fish        bool   `yaml:"fish" json:"fish" jsonschema:"etc/env.fish, for every fish"`
	LDConfig    bool   `yaml:"ldconfig" json:"ldconfig" jsonschema:"etc/ld.so.conf.d/rocm-nightly.conf; ldconfig is run"`
	OpenCL      bool   `yaml:"opencl" json:"opencl" jsonschema:"etc/OpenCL/vendors/rocm-nightly.icd"`
	Modulefiles bool   `yaml:"modulefiles" json:"modulefiles" jsonschema:"etc/modulefiles/rocm-nightly, for environment-modules and Lmod"`
}

// Default returns what an empty file means, by the data that is built in.
func Default() *Config { return defaultOf(amd.Builtin()) }

// defaultOf returns what an empty file means where d is known of AMD.
func defaultOf(d *amd.Data) *Config {
	return &Config{
		AMD: d, GFX: gfx.New(d),
		Channels: channelsOf(d),
		Installs: []Install{{Target: "auto", Channel: "nightly"}},
		Policy: Policy{
			Prefer: "version", Settle: Duration(2 * time.Hour), StaleAfter: Patience{Auto: true},
			Deny: []string{}, Multiarch: "never", Verify: "observed", Quorum: 1,
		},
		Download: Download{Connections: 4, Retries: 10, IdleTimeout: Duration(time.Minute)},
		Unpack:   Unpack{MaxBytes: 200 << 30, MaxEntries: 1_000_000, MaxRatio: 200, Decompressor: "auto"},
		Repack:   Repack{Profile: "fhs", RunPath: "rpath", InterpreterPath: []string{}, AddRPath: []string{}, Omit: []Part{}},
		Env:      map[string]string{},
		Audit:    Audit{Scope: "host", Refuse: "regression", Allow: []Allow{}},
		Health:   Health{Smoke: "auto", Command: []string{}, Timeout: Duration(time.Minute), Sandbox: "on"},
		Activate: "auto",
		Dedup:    "auto",
		Keep:     Keep{Last: 3},
		Schedule: "CRON_TZ=UTC 30 6 * * *",
		Bump:     []Bump{},
		Trust:    []Trust{},
		Daemon: Daemon{
			Check: "CRON_TZ=UTC 12 * * * *", Window: Duration(6 * time.Hour), Splay: Duration(30 * time.Minute), Retry: Duration(10 * time.Minute),
			CatchUp: true, OnBattery: true, Priority: "normal",
		},
		Serve:  Serve{Listen: "127.0.0.1:7151", Hosts: []string{}},
		Notify: []Notify{},
	}
}

// channelsOf lists the indexes that the data knows, in its order.
func channelsOf(d *amd.Data) map[string]Channel {
	channels := make(map[string]Channel, len(d.Channels))
	for name, ch := range d.Channels {
		var c Channel
		for _, ix := range ch.Indexes {
			c.Indexes = append(c.Indexes, Index{
				URL: ix.URL, From: ix.From, Until: ix.Until, Frozen: ix.Frozen, Archive: ix.Archive, AllowHosts: ix.AllowHosts,
			})
		}
		channels[name] = c
	}
	return channels
}

// Ask lists the indexes of a channel to ask for what is wanted: archives only
// for versions that they may hold, or with all. The zero version and the empty
// series stand for whatever is newest.
func (c Channel) Ask(version release.Version, series string, all bool) []Index {
	var known amd.Channel
	for _, ix := range c.Indexes {
		known.Indexes = append(known.Indexes, amd.Index{URL: ix.URL, From: ix.From, Until: ix.Until, Archive: ix.Archive})
	}
	var asked []Index
	for _, want := range known.Ask(version, series, all) {
		i := slices.IndexFunc(c.Indexes, func(ix Index) bool { return ix.URL == want.URL })
		asked = append(asked, c.Indexes[i])
	}
	return asked
}

// RepackOf returns how install i is repacked.
func (c *Config) RepackOf(i Install) Repack {
	if i.Repack != nil {
		return *i.Repack
	}
	return c.Repack
}

// EnvOf returns the variables of install i: those of the top level, with its own
// over them.
func (c *Config) EnvOf(i Install) map[string]string {
	env := map[string]string{}
	maps.Copy(env, c.Env)
	maps.Copy(env, i.Env)
	return env
}

// AuditOf returns how install i is audited.
func (c *Config) AuditOf(i Install) Audit {
	if i.Audit != nil {
		return *i.Audit
	}
	return c.Audit
}

// KeepOf returns how many generations of install i stay.
func (c *Config) KeepOf(i Install) Keep {
	if i.Keep != nil {
		return *i.Keep
	}
	return c.Keep
}

// KeepTarballsOf returns how many tarballs of install i stay.
func (c *Config) KeepTarballsOf(i Install) int {
	if i.KeepTarballs != nil {
		return *i.KeepTarballs
	}
	return c.KeepTarballs
}

// ActivateOf returns when what install i has staged becomes active.
func (c *Config) ActivateOf(i Install) string {
	if i.Activate != "" {
		return i.Activate
	}
	return c.Activate
}

// ScheduleOf returns when install i is updated.
func (c *Config) ScheduleOf(i Install) string {
	if i.Schedule != "" {
		return i.Schedule
	}
	return c.Schedule
}
