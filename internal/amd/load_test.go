package amd

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// put writes a file of a test, "" for none, and returns its name.
func put(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "amd.yaml")
	if content == "" {
		return name
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// asOf returns the built-in file with another version, and old for new in it.
func asOf(version string, replace ...string) string {
	src := string(bytes.Replace(builtin, []byte("version: "+Builtin().Version), []byte("version: "+version), 1))
	return strings.NewReplacer(replace...).Replace(src)
}

func TestLoadWithoutFiles(t *testing.T) {
	for _, absent := range []string{"", put(t, "")} {
		d, files, err := Load(absent, absent)
		if err != nil || len(files) != 0 || d.Version != Builtin().Version {
			t.Errorf("%v, %v", files, err)
		}
	}
}

func TestLoadTakesOnlyANewerDistroFile(t *testing.T) {
	for version, taken := range map[string]bool{
		"2026.9.9": false, "2026.10.0": false, "2026.10.1": false, "2026.10": false, // nine is less than ten
		"2026.10.2": true, "2026.10.10": true, "2026.10.1.1": true, "2027.1": true,
	} {
		name := put(t, asOf(version, "nightly.repo.amd.com", "nightly.example.org"))
		d, files, err := Load(name, "")
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Contains(d.Channels["nightly"].Indexes[0].URL, "example.org")
		if got != taken || slices.Contains(files, name) != taken {
			t.Errorf("%s: taken is %v, files %v", version, got, files)
		}
	}
}

func TestLoadLaysTheAdminFileOver(t *testing.T) {
	admin := put(t, `
channels:
  nightly: {stale_after: 48h}
  dev: {indexes: [{url: "file:///srv/mirror/", from: 10.10, allow_hosts: ["*.example.org", "cdn.example.org:8443"]}]}
families:
  gfx126X-all: [gfx1260, gfx1261]
products:
  Our Workstation: gfx1201
  radeon rx7900-xt: gfx1101
targets:
  gfx1103: {kernel: 6.10}
  gfx1260: {nearest: [gfx1261]}
  gfx1030: {nearest: []}
deny:
  - {pattern: "*-10.2.0a20260915.tar.gz", reason: broke our build}
allow: ["therock-dist-linux-gfx115[01]-7.14.0a20260609.tar.gz"]
`)
	d, files, err := Load("", admin)
	if err != nil || !slices.Equal(files, []string{admin}) {
		t.Fatalf("%v, %v", files, err)
	}
	base := Builtin()
	nightly := d.Channels["nightly"]
	if nightly.StaleAfter != 48*time.Hour || nightly.Retention != 120 || len(nightly.Indexes) != len(base.Channels["nightly"].Indexes) {
		t.Errorf("%+v", nightly)
	}
	dev := d.Channels["dev"]
	if len(dev.Indexes) != 1 || dev.Indexes[0].From != "10.10" || dev.Retention != 30 || dev.StaleAfter != 96*time.Hour {
		t.Errorf("%+v", dev)
	}
	if len(d.Families) != len(base.Families)+1 || len(d.Families["gfx126X-all"]) != 2 {
		t.Error(d.Families)
	}
	if d.Products["Our Workstation"] != "gfx1201" || d.Products["RX 7900 XTX"] != "gfx1100" {
		t.Error(d.Products)
	}
	hawk := d.Targets["gfx1103"]
	if hawk.Kernel != "6.10" || !hawk.Integrated || !slices.Equal(hawk.Nearest, base.Targets["gfx1103"].Nearest) {
		t.Errorf("%+v", hawk)
	}
	if navi := d.Targets["gfx1030"]; len(navi.Nearest) != 0 || navi.Kernel == "" {
		t.Errorf("%+v", navi)
	}
	if len(d.Deny) != len(base.Deny) || d.Deny[len(d.Deny)-1].Reason != "broke our build" || slices.Contains(d.Patterns(), base.Deny[0].Pattern) {
		t.Error(d.Deny)
	}
}

func TestTheAdminRewritesAProduct(t *testing.T) {
	d, _, err := Load("", put(t, "products: {rx7900-xt: gfx1101}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, both := d.Products["RX 7900 XT"]; both || d.Products["rx7900-xt"] != "gfx1101" {
		t.Error("one product has two targets")
	}
}

func TestAllowAll(t *testing.T) {
	d, _, err := Load("", put(t, "allow: ['*']\ndeny: [{pattern: x*, reason: y}]"))
	if err != nil || len(d.Deny) != 1 || d.Deny[0].Pattern != "x*" {
		t.Errorf("%+v, %v", d.Deny, err)
	}
}

func TestAnAdminFileOfNothing(t *testing.T) {
	for _, nothing := range []string{" ", "# later\n", "---\n", "\xef\xbb\xbf", "schema: 1\n", "{}"} {
		if d, _, err := Load("", put(t, nothing)); err != nil || len(d.Products) != len(Builtin().Products) {
			t.Errorf("%q: %v", nothing, err)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ admin, want string }{
		"an unknown key":           {"channels:\n  nightly:\n    index: []\n", "[3:5] unknown field"},
		"an unknown key of a list": {"channels:\n  dev:\n    indexes:\n      - url: https://a/\n        form: 10.1\n", "[5:9] unknown field"},
		"a key twice":              {"deny: []\ndeny: []\n", "[2:1]"},
		"no YAML":                  {"channels: [\n", "["},
		"two documents":            {"schema: 1\n---\nschema: 1\n", "more than one"},
		"a list":                   {"- a\n", "[1:1]"},
		"a newer schema":           {"schema: 2\nhosts: []\n", "update rocm-nightly"},
		"another schema":           {"schema: -1\n", "not a schema"},
		"no such channel":          {"channels: {weekly: {retention: 1}}", "no such channel"},
		"no indexes":               {"channels: {dev: {indexes: []}}", "no indexes"},
		"retention":                {"channels: {dev: {retention: -1}}", "retention"},
		"no duration":              {"channels: {dev: {stale_after: soon}}", "[1:"},
		"no unit":                  {"channels:\n  dev: {stale_after: 96}", "[2:22]"},
		"plain http":               {"channels: {dev: {indexes: [{url: http://mirror.example.org/}]}}", "[1:34] channels.dev.indexes.0.url"},
		"no address":               {"channels: {dev: {indexes: [{url: mirror}]}}", "https://host/path/"},
		"a password":               {"channels: {dev: {indexes: [{url: https://u:p@mirror/}]}}", "\"https://xxxxx@mirror/\" is not of the form https://host/path/"},
		"an index twice":           {"channels: {dev: {indexes: [{url: https://a/}, {url: https://a/}]}}", "dev.indexes.1.url: \"https://a/\" is there twice"},
		"a product of two targets": {"products: {RX 1: gfx1100, rx-1: gfx1101}", "products.rx-1: is gfx1101 here, and gfx1100 as \"RX 1\""},
		"from":                     {"channels: {dev: {indexes: [{url: https://a/, from: ten}]}}", "[1:"},
		"an empty route":           {"channels: {dev: {indexes: [{url: https://a/, from: 10.1, until: 10.1.0.dev0}]}}", "is not after from"},
		"a route backwards":        {"channels: {dev: {indexes: [{url: https://a/, from: 10.10, until: 10.9}]}}", "is not after from"},
		"a day":                    {"channels: {dev: {indexes: [{url: https://a/, ended: yesterday}]}}", "ended"},
		"a redirect host":          {"channels: {dev: {indexes: [{url: https://a/, allow_hosts: [\"https://b\"]}]}}", "allow_hosts.0"},
		"a slug":                   {"families: {gfx110Y-all: [gfx1100]}", "not a slug"},
		"an empty family":          {"families: {gfx110X-all: []}", "no targets"},
		"a target":                 {"families: {gfx110X-all: [gfx1100, navi31]}", "navi31"},
		"a product":                {"products: {Voodoo 2: glide}", "glide"},
		"a kernel":                 {"targets: {gfx1100: {kernel: latest}}", "kernel"},
		"near itself":              {"targets: {gfx1100: {nearest: [gfx1100]}}", "near itself"},
		"a pattern":                {"deny: [{pattern: \"[a\", reason: b}]", "pattern"},
		"no reason":                {"deny: [{pattern: a}]", "reason"},
	} {
		file := put(t, tt.admin)
		_, _, err := Load("", file)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "move") {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: more than a line: %v", name, err)
		}
	}
}

func TestLoadRefusesHalfADistroFile(t *testing.T) {
	for src, want := range map[string]string{
		"schema: 1\nversion: 2030.1\n":                   "nightly is missing",
		asOf("soon"):                                     "version",
		asOf("2030.1", "  bkc:", "  weekly:"):            "bkc is missing",
		asOf("2030.1", "schema: 1", "schema: 7"):         "schema 7",
		asOf("2030.1", "retention: 120", "retain: 120"):  "unknown field",
		strings.Replace(asOf("1"), "schema: 1\n", "", 1): "schema",
		" ": "schema",
	} {
		if _, _, err := Load(put(t, src), ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

func TestLoadRefusesWhatIsNoFileOfOurs(t *testing.T) {
	big := put(t, "# "+strings.Repeat("x", maxSize))
	dir := t.TempDir()
	for name, want := range map[string]string{big: "larger than", dir: "not a regular file"} {
		if _, _, err := Load(name, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, err := Load("", name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What would take the parser minutes and gigabytes is refused first.
func TestLoadRefusesDepth(t *testing.T) {
	for _, unit := range []string{"[\n", "{a: ", "- ", "? ", "&a ", "[\"]\",\n"} {
		src := strings.Repeat(unit, (maxSize-1)/len(unit))
		if _, _, err := Load("", put(t, src)); err == nil || !strings.Contains(err.Error(), "deeply") {
			t.Errorf("%q: %.200v", unit, err)
		}
	}
}

// Brackets that are open at once are limited well below those in all.
func TestLoadRefusesOpenBrackets(t *testing.T) {
	deep := strings.Repeat("[\n", maxDepth+1) + strings.Repeat("]\n", maxDepth+1)
	if _, _, err := Load("", put(t, "allow:\n"+deep)); err == nil || !strings.Contains(err.Error(), "[102:1]") || !strings.Contains(err.Error(), "deeply") {
		t.Errorf("%.200v", err)
	}
}

func TestADistroFileAllows(t *testing.T) {
	d, _, err := Load(put(t, asOf("2030.1")+"\nallow: ['*']\n"), "")
	if err != nil || len(d.Deny) != 0 || d.Allow != nil {
		t.Errorf("%+v, %v, %v", d.Deny, d.Allow, err)
	}
}

func TestAskArchives(t *testing.T) {
	nightly := Builtin().Channels["nightly"]
	for _, tt := range []struct {
		version, series string
		all             bool
		want            int
	}{
		{"", "", false, 2},
		{"", "", true, 4},
		{"10.2.0a20260930", "", false, 2},
		{"7.12.0a20260121", "", false, 4},
		{"7.14.0a20260701", "", false, 2},
		{"", "10.2", false, 2},
		{"", "10", false, 2},
		{"", "7.12", false, 4},
		{"", "7", false, 4},
		{"", "7.14.0", false, 4},
		{"", "7.15", false, 2},
		{"10.2.0a20260930", "7", false, 2}, // the version decides
		{"", "seven", false, 4},
	} {
		var v release.Version
		if tt.version != "" {
			v = version(t, tt.version)
		}
		if got := nightly.Ask(v, tt.series, tt.all); len(got) != tt.want {
			t.Errorf("%+v: %v", tt, addresses(got))
		}
	}
}

// Bounds sort rightly by the plain order of versions.
func TestBounds(t *testing.T) {
	for bound, tt := range map[string]struct{ in, out string }{
		"10.1":            {"10.1.0.dev0+0123456789abcdef0123456789abcdef01234567", "10.0.9"},
		"10":              {"10.0.0rc0", "7.15.0"},
		"10.10":           {"10.10.0a20270101", "10.9.0"},
		"10.0.0":          {"10.0.0rc0", "7.15.0a20260728"},
		"10.1.0a20260823": {"10.1.0a20260823+bkc.20260824", "10.1.0a20260822"},
	} {
		if ix := (Index{From: bound}); !ix.Holds(version(t, tt.in)) || ix.Holds(version(t, tt.out)) {
			t.Errorf("from %s: %s is out or %s is in", bound, tt.in, tt.out)
		}
		if ix := (Index{Until: bound}); ix.Holds(version(t, tt.in)) || !ix.Holds(version(t, tt.out)) {
			t.Errorf("until %s: %s is in or %s is out", bound, tt.in, tt.out)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("channels: {nightly: {stale_after: 48h}}"))
	f.Add([]byte("deny: [{pattern: '*', reason: x}]\nallow: ['*']"))
	f.Add([]byte("targets: {gfx1100: {kernel: 6.10, nearest: [gfx1102]}}"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("? - - - : x"))
	f.Fuzz(func(t *testing.T, src []byte) {
		for _, whole := range []bool{false, true} {
			got, err := decode("amd.yaml", src, whole)
			if err != nil {
				continue
			}
			if problems := check(got.data, whole); len(problems) > 0 {
				t.Fatalf("%+v were let through", problems)
			}
			d := Builtin()
			if err := got.layOver(d); err == nil {
				d.Hosts()
			}
		}
	})
}

// A variable has a name that a shell takes, a value, and somebody who says so.
func TestVariablesOfTargets(t *testing.T) {
	for text, want := range map[string]string{
		"{A: {value: '1', source: here}}":         "",
		"{A: {value: '', source: not needed}}":    "",
		"{A: {value: '1'}}":                       "a source is missing",
		"{A: {value: '1', source: ' '}}":          "a source is missing",
		"{LD_PRELOAD: {value: /x, source: here}}": "loader",
		"{'A B': {value: x, source: here}}":       "no name",
		"{A: {value: \"a\\nb\", source: here}}":   "control character",
		"{A: {value: x, who: me, source: here}}":  "unknown field",
	} {
		d, _, err := Load("", put(t, "targets: {gfx906: {env: "+text+"}}\n"))
		if want == "" {
			if err != nil || d.Targets["gfx906"].Env["A"].Source == "" || d.Targets["gfx906"].Name == "" {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if v := Builtin().Targets["gfx906"].Env["HSA_OVERRIDE_GFX_VERSION"]; v.Value != "9.0.6" || v.Source == "" {
		t.Errorf("%+v", v)
	}
}
