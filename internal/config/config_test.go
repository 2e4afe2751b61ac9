package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/amd"
)

const shipped = "../../config.yaml"

func TestShippedConfigIsTheDefaults(t *testing.T) {
	src, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	got := &Config{Channels: channelsOf(amd.Builtin())}
	if err := Decode(got, shipped, src); err != nil {
		t.Fatal(err)
	}
	want := Default()
	got.AMD, got.GFX = want.AMD, want.GFX
	if !reflect.DeepEqual(got, want) {
		t.Errorf("config.yaml says\n%+v\nthe defaults are\n%+v", got, want)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
}

// examples returns the blocks of lines that begin with a single #, uncommented.
func examples(src string) []string {
	var blocks []string
	open := false
	for line := range strings.Lines(src) {
		text, is := strings.CutPrefix(line, "# ")
		switch {
		case !is:
			open = false
		case !open:
			blocks, open = append(blocks, text), true
		default:
			blocks[len(blocks)-1] += text
		}
	}
	return blocks
}

func TestShippedExamplesDecode(t *testing.T) {
	src, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	blocks := examples(string(src))
	if len(blocks) < 9 {
		t.Fatalf("only %d examples found", len(blocks))
	}
	for _, block := range blocks {
		c := Default()
		if err := Decode(c, shipped, []byte(block)); err != nil {
			t.Errorf("%v in\n%s", err, block)
		}
		if err := c.Validate(); err != nil {
			t.Errorf("%v in\n%s", err, block)
		}
		if reflect.DeepEqual(c, Default()) {
			t.Errorf("changes nothing:\n%s", block)
		}
	}
}

func TestInstallInheritsTheTopLevel(t *testing.T) {
	c := Default()
	err := Decode(c, "x", []byte(`
keep: {last: 7}
repack: {run_path: runpath}
installs:
  - target: gfx1151
    keep: {}
  - target: gfx1100
    keep: {last: 2}
    repack: {add_rpath: [/x]}
    schedule: "0 1 * * *"
`))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	one, two := c.Installs[0], c.Installs[1]
	if one.Channel != "nightly" || c.KeepOf(one).Last != 7 || c.RepackOf(one).RunPath != "runpath" || c.ScheduleOf(one) != c.Schedule {
		t.Errorf("%+v", one)
	}
	if r := c.RepackOf(two); r.RunPath != "runpath" || r.Profile != "fhs" || len(r.AddRPath) != 1 || c.KeepOf(two).Last != 2 || c.ScheduleOf(two) != "0 1 * * *" {
		t.Errorf("%+v", r)
	}
	if len(c.Channels) != 6 {
		t.Errorf("%d channels", len(c.Channels))
	}
}

func TestDecodeSaysWhere(t *testing.T) {
	for src, want := range map[string]string{
		"rooot: /x\n":                                 "file.yaml:1:1: rooot: there is no such key (did you mean root?)",
		"policy:\n  setle: 2h\n":                      "file.yaml:2:3: policy.setle: there is no such key (did you mean settle?)",
		"keep_tarball: 3\n":                           "(did you mean keep_tarballs?)",
		"series: 10.2\n":                              "file.yaml:1:1: series: there is no such key (did you mean policy.series?)",
		"keep:\n  policy: {}\n":                       "(policy stands at the top level)",
		"zzzzzzz: 1\n":                                "file.yaml:1:1: zzzzzzz: there is no such key",
		"policy: {settle: soon}\n":                    "file.yaml:1:18: policy.settle: \"soon\" is not a duration",
		"policy: {stale_after: never}\n":              "file.yaml:1:23: policy.stale_after: \"never\" is not a duration such as 90s, 2h or 96h, nor auto",
		"policy: {stale_after: 96}\n":                 "1:23: policy.stale_after",
		"policy: {stale_after: [96h]}\n":              "1:23: policy.stale_after: a sequence is no plain value",
		"policy: {stale_after: 1.5}\n":                "1:23: policy.stale_after",
		"unpack: {max_bytes: 3 parsecs}\n":            "1:21: unpack.max_bytes: \"3 parsecs\"",
		"download: {rate_limit: -1}\n":                "1:24: download.rate_limit",
		"download: {connections: many}\n":             "1:25: download.connections: is no whole number",
		"root_alone: maybe\n":                         "1:13: root_alone: is neither true nor false",
		"root: {a: b}\n":                              "root: a mapping is no plain value",
		"root: [a]\n":                                 "root: a sequence is no plain value",
		"installs: {target: a}\n":                     "installs: is no list",
		"keep: 3\n":                                   "1:7: keep: is no section: write lines of key: value under keep",
		"- a\n":                                       "1:1: is no section: write lines of key: value under the config",
		"installs: [{target: a, keep: {bytes: x}}]\n": "1:38: installs[0].keep.bytes",
		"installs:\n  - target: a\n    x: 1\n":        "3:5: installs[0].x: there is no such key",
		"a: 1\n---\nb: 2\n":                           "more than one",
		"root: [\n":                                   "file.yaml:1:",
		"root: a\nroot: b\n":                          "file.yaml:2:1",
		"root: a\n\"root\": b\n":                      "file.yaml:2:1",
		"installs:\n  - target: gfx1151\n    keep: {last: 3, lost: 2}\n":    "3:21: installs[0].keep.lost: there is no such key (did you mean last?)",
		"keep:\r\n  last:\t\tx\r\n":                                         "2:10: keep.last: is no whole number",
		"# é\nkeep: {last: 3, days:\tx}\n":                                  "2:23: keep.days: is no whole number",
		"# c\r\n\r\nkeep: # why\r\n  # more\r\n  last: # x\r\n    nope\r\n": "6:5: keep.last: is no whole number",
		"%YAML 1.2\n---\nkeep: {last: x}\n":                                 "3:14: keep.last: is no whole number",
		"policy:\n  deny:\n  -\t{a: b}\n":                                   "3:5: policy.deny[0]",
		"root: a\x00b\n":                                                    "file.yaml: byte 7 is zero",
		"root: \xff\n":                                                      "file.yaml: this is no UTF-8",
		"root: !!binary aGk=\n":                                             "tags such as",
		"keep: &k {last: 4}\ninstalls: [{<<: *k}]\n":                        "2:13: << is not supported",
		"keep: *k\n":          "1:7: *k stands for nothing",
		"installs: &a [*a]\n": "*a stands for nothing",
	} {
		err := Decode(Default(), "file.yaml", []byte(src))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "file.yaml") {
			t.Errorf("%q: %v", src, err)
		}
	}
}

// What looks like a number is read as it is written: 7.10 is a series that
// was published, 7.1 another.
func TestVersionsAreReadAsWritten(t *testing.T) {
	c := Default()
	src := "policy: {series: 7.10, deny: [7.10, 10.0]}\nchannels: {nightly: {indexes: [{url: 'https://x/', from: 7.10, until: 10.10}]}}\nunpack: {max_ratio: 150.50}\n"
	if err := Decode(c, "x", []byte(src)); err != nil {
		t.Fatal(err)
	}
	ix := c.Channels["nightly"].Indexes[0]
	if c.Policy.Series != "7.10" || c.Policy.Deny[0] != "7.10" || c.Policy.Deny[1] != "10.0" || ix.From != "7.10" || ix.Until != "10.10" || c.Unpack.MaxRatio != 150.5 {
		t.Errorf("%+v, %+v, %v", c.Policy, ix, c.Unpack.MaxRatio)
	}
	if err := Decode(c, "x", []byte("policy: {stale_after: , settle: null}\n")); err != nil || !c.Policy.StaleAfter.Auto || c.Policy.Settle == 0 {
		t.Errorf("%+v, %v", c.Policy, err)
	}
}

func TestValidate(t *testing.T) {
	for src, want := range map[string]string{
		"root: relative":            "root",
		"policy: {prefer: newest}":  "policy.prefer",
		"policy: {deny: ['[']}":     "policy.deny[0]",
		"keep: {last: 1}":           "keep.last",
		"keep: {last: 3, days: -1}": "keep.days",
		"channels: {nightly: {indexes: [{url: 'http://x/y'}]}}":                                        "insecure",
		"channels: {nightly: {indexes: []}}":                                                           "channels.nightly",
		"channels: {nightly: {indexes: [{url: 'file://x/y'}]}}":                                        "mirror on disk",
		"channels: {nightly: {indexes: [{url: 'ftp://x/y'}]}}":                                         "neither https nor file",
		"channels: {weekly: {indexes: [{url: 'https://x/'}]}}":                                         "weekly",
		"installs: [{target: gfx1151}, {target: GFX1151}]":                                             "twice",
		"installs: [{target: gfx1151}, {target: Strix Halo}]":                                          "twice",
		"installs: [{target: gforce}]":                                                                 "installs[0].target",
		"health: {smoke: sometimes}":                                                                   "health.smoke",
		"health: {timeout: 0s}":                                                                        "health.timeout",
		"health: {timeout: 48h}":                                                                       "health.timeout",
		"health: {sandbox: auto}":                                                                      "health.sandbox",
		"health: {command: ['']}":                                                                      "health.command",
		"health: {command: [/usr/bin/../check]}":                                                       "health.command",
		"activate: later":                                                                              "activate: \"later\" is not one of auto, idle, manual",
		"installs: [{target: gfx1151, activate: now}]":                                                 "installs[0].activate",
		"installs: [{target: gfx1151, channel: x}]":                                                    "installs[0].channel",
		"installs: [{target: gfx1151, link: opt}]":                                                     "installs[0].link",
		"installs: [{target: gfx1151, link: /opt/rocm}, {target: gfx1100, link: /opt/rocm/}]":          "installs[1].link",
		"root: /srv/r/\ninstalls: [{target: gfx1151, link: /srv/r/x}]":                                 "installs[0].link: /srv/r/x is inside root",
		"host: {etc: etc}":                                                                             "host.etc",
		"host: {install: gfx1100}\ninstalls: [{target: gfx1151}]":                                      "host.install: \"gfx1100\" is none of the installs: nightly-gfx1151",
		"channels: {nightly: {indexes: [{url: 'https://x/', from: 10.2, until: 10.1}]}}":               "indexes[0].until",
		"channels: {nightly: {indexes: [{url: 'file:///x/', from: zz}]}}":                              "indexes[0].from",
		"channels: {nightly: {indexes: [{url: 'https://a:secret@x/'}, {url: 'https://a:secret@x/'}]}}": "indexes[1]: https://xxxxx@x/ is there twice",
		"trust: [{url: 'https://me:secret@x/l'}, {url: 'https://me:secret@x/l'}]":                      "trust[1].url",
		"trust: [{url: /srv/l}, {url: 'file:///srv/l'}]":                                               "trust[1].url",
		"trust: [{url: 'https://x/l'}, {url: 'https://X:443/l'}]":                                      "trust[1].url",
		"trust: [{key: ''}]":                                                                           "trust[0].url: is missing",
		"policy: {series: 10.2.x}":                                                                     "policy.series",
		"policy: {series: v10.2}":                                                                      "policy.series",
		"repack: {profile: nix}":                                                                       "interpreter_path",
		"repack: {add_rpath: ['a:b']}":                                                                 "add_rpath",
		"unpack: {max_ratio: .inf}":                                                                    "unpack.max_ratio: +Inf is not between 1 and 1000000",
		"download: {connections: 0}":                                                                   "connections",
		"health: {command: [./true]}":                                                                  "health.command",
		"dedup: magic":                                                                                 "dedup",
		"bump: [{name: a, forge: git, url: 'https://me:secret@x/', files: [{path: f, format: nix, target: gfx1151, set: {a: b}}]}]": "token_env",
		"bump: [{name: a, forge: git, url: x, files: [{path: ../f, format: nix, target: gfx1151, set: {a: b}}]}]":                   "inside the repository",
	} {
		c := Default()
		if err := Decode(c, "x", []byte(src)); err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", src, err)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error tells the secret: %v", src, err)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write := func(name, body string) string {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	main := write("config.yaml", "keep: {last: 4}\nschedule: '0 1 * * *'\ninstalls: [{target: gfx1151, keep: {last: 7}, audit: {refuse: never}, repack: {run_path: runpath}}]\n")
	write("config.d/20-b.yaml", "schedule: '0 3 * * *'\n")
	write("config.d/30-c.yaml", "policy: {series: '10.2'}\n")
	write("config.d/10-a.yaml", "schedule: '0 2 * * *'\n")
	write("config.d/ignored.txt", "x: y\n")
	write("config.d/.hidden.yaml", "x: y\n")
	c, files, err := Load(Places{Search: []string{filepath.Join(dir, "x/none"), main}})
	if err != nil || c.Keep.Last != 4 || c.Schedule != "0 3 * * *" || len(files) != 4 {
		t.Fatalf("%+v, %v, %v", c, files, err)
	}
	// A drop-in about something else leaves an install's own sections alone.
	if in := c.Installs[0]; in.Keep.Last != 7 || in.Audit.Refuse != "never" || in.Audit.Scope != "host" || in.Repack.RunPath != "runpath" {
		t.Errorf("%+v", in)
	}
	odd := write("config.d/40-d.yml", "keep: {last: 9}\n")
	if _, _, err := Load(Places{Search: []string{main}}); err == nil || !strings.Contains(err.Error(), odd) {
		t.Errorf("a drop-in was passed over: %v", err)
	}
	c, files, err = Load(Places{Search: []string{filepath.Join(dir, "x/none")}})
	if err != nil || len(files) != 0 || !reflect.DeepEqual(c, Default()) {
		t.Fatalf("%v, %v", files, err)
	}
	if _, _, err := Load(Places{Explicit: filepath.Join(dir, "none")}); err == nil {
		t.Error("an explicit file that is not there was not missed")
	}
	named := DefaultPlaces("", func(k string) string { return map[string]string{"ROCM_NIGHTLY_DATA": filepath.Join(dir, "none")}[k] }, 1000)
	if _, _, err := Load(named); err == nil || !strings.Contains(err.Error(), "ROCM_NIGHTLY_DATA") {
		t.Errorf("data that was named and is not there was not missed: %v", err)
	}
}

// Sections whose names are the user's own are laid over each other as all others are.
func TestMapsAreLaidOverEachOther(t *testing.T) {
	dir := put(t, map[string]string{
		"config.yaml":      "env: {A: a, B: b}\n",
		"config.d/10.yaml": "env: {B: c}\nchannels: {dev: {indexes: [{url: 'https://example.org/'}]}}\n",
		"config.d/20.yaml": "env:\nchannels:\n",
	})
	c, _, err := Load(Places{Search: []string{filepath.Join(dir, "config.yaml")}, Environ: []string{"ROCM_NIGHTLY__ENV={C: d}"}})
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"A": "a", "B": "c", "C": "d"}; !reflect.DeepEqual(c.Env, want) {
		t.Errorf("%v, want %v", c.Env, want)
	}
	if len(c.Channels) != len(Default().Channels) || c.Channels["dev"].Indexes[0].URL != "https://example.org/" {
		t.Errorf("%v", c.Channels)
	}
}

// A config that a link should lead to and does not is not passed over for another.
func TestALinkThatLeadsNowhere(t *testing.T) {
	dir := put(t, map[string]string{"etc/config.yaml": "keep: {last: 4}\n"})
	own := filepath.Join(dir, "config.yaml")
	if err := os.Symlink(filepath.Join(dir, "gone"), own); err != nil {
		t.Fatal(err)
	}
	_, _, err := Load(Places{Search: []string{own, filepath.Join(dir, "etc/config.yaml")}})
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), own) {
		t.Errorf("%v", err)
	}
}

func TestDefaultPlaces(t *testing.T) {
	env := func(kv map[string]string) func(string) string { return func(k string) string { return kv[k] } }
	if p := DefaultPlaces("", env(map[string]string{"HOME": "/home/u"}), 1000); p.Search[0] != "/home/u/.config/rocm-nightly/config.yaml" {
		t.Errorf("%+v", p)
	}
	if p := DefaultPlaces("", env(map[string]string{"HOME": "/root", "XDG_CONFIG_HOME": "/x"}), 0); len(p.Search) != 1 || p.Search[0] != "/etc/rocm-nightly/config.yaml" {
		t.Errorf("%+v", p)
	}
	if p := DefaultPlaces("", env(map[string]string{"ROCM_NIGHTLY_CONFIG": "/c"}), 1000); p.Explicit != "/c" {
		t.Errorf("%+v", p)
	}
}

func TestUnits(t *testing.T) {
	for in, want := range map[string]Size{"0": 0, "200GiB": 200 << 30, "50MB": 50e6, "1 KiB": 1024, "17": 17} {
		var s Size
		if err := s.UnmarshalText([]byte(in)); err != nil || s != want {
			t.Errorf("%q: %d, %v", in, s, err)
		}
		var again Size
		if err := again.UnmarshalText([]byte(s.String())); err != nil || again != s {
			t.Errorf("%q prints as %q: %v", in, s, err)
		}
	}
	for _, in := range []string{"", "-1", "1e9", "GiB", "999999999999999TiB"} {
		var s Size
		if err := s.UnmarshalText([]byte(in)); err == nil {
			t.Errorf("%q is %d", in, s)
		}
	}
	var d Duration
	if err := d.UnmarshalText([]byte("96h")); err != nil || time.Duration(d) != 96*time.Hour {
		t.Errorf("%v, %v", d, err)
	}
	if err := d.UnmarshalText([]byte("-1h")); err == nil {
		t.Error("a negative duration was taken")
	}
}

func FuzzDecode(f *testing.F) {
	src, err := os.ReadFile(shipped)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(src)
	f.Add([]byte("installs:\n  - target: gfx1151\n    keep: {last: 3}\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		c := Default()
		if Decode(c, "fuzz", src) == nil {
			c.Validate()
		}
	})
}
