package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// put writes files of a test, NAME to text, and returns their directory.
func put(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Everything that is wrong is said at once, in the order of the files, each with the
// place that set it last.
func TestEveryComplaintHasItsPlace(t *testing.T) {
	dir := put(t, map[string]string{
		"config.yaml": "keep:\n  last: 1\npolicy: {prefer: newest, quorum: 0}\ninstalls:\n  - target: gforce\n    repack: {add_rpath: [/a, 'b:c']}\n  - target: gfx1100\n    env:\n      A.B: c\n",
		"config.d/10-more.yaml": `
bump:
  - name: a
    token_env: A
    token_file: /b
policy:
  prefer: oldest
channels:
  nightly:
    indexes:
      - {url: "http://example.org/"}
`,
	})
	c, _, err := Load(Places{Search: []string{filepath.Join(dir, "config.yaml")}, Environ: []string{"ROCM_NIGHTLY__DEDUP=magic", "ROCM_NIGHTLY__TRUST=[{url: b}]"}})
	if err == nil {
		t.Fatalf("taken: %+v", c)
	}
	got := strings.ReplaceAll(err.Error(), dir+"/", "")
	want := []string{
		"things are wrong with the config:",
		"config.yaml:2:9: keep.last: 1: at least 2",
		"config.yaml:3:34: policy.quorum: 0 is less than 1",
		"config.yaml:5:13: installs[0].target: \"gforce\"",
		"config.yaml:6:30: installs[0].repack.add_rpath[1]:",
		"config.yaml:8:5: installs[1].env: \"A.B\" is no name",
		"config.d/10-more.yaml:3:5: bump[0].url: missing",
		"config.d/10-more.yaml:3:5: bump[0].files: missing",
		"config.d/10-more.yaml:4:16: bump[0].token: is in several places",
		"config.d/10-more.yaml:7:11: policy.prefer: \"oldest\"",
		"config.d/10-more.yaml:11:9: channels.nightly.indexes[0]: http:// to example.org",
		"$ROCM_NIGHTLY__DEDUP: dedup: \"magic\"",
		"$ROCM_NIGHTLY__TRUST: trust[0]: \"b\" is neither",
	}
	lines := strings.Split(got, "\n")
	if len(lines) != len(want) {
		t.Errorf("%d lines, not %d", len(lines), len(want))
	}
	for i := range min(len(lines), len(want)) {
		if !strings.Contains(lines[i], want[i]) {
			t.Errorf("got  %s\nwant %s", lines[i], want[i])
		}
	}
	var all *Error
	if !errors.As(err, &all) || all.Complaints[0].Key != "keep.last" || all.Complaints[0].Line != 2 {
		t.Errorf("%#v", err)
	}
}

func TestSourceAndLocate(t *testing.T) {
	dir := put(t, map[string]string{"config.yaml": "keep: {last: 4}\npolicy: {series: '10.2'}\n", "config.d/a.yaml": "\nkeep: {days: 9}\n"})
	c, _, err := Load(Places{Search: []string{filepath.Join(dir, "config.yaml")}, Environ: []string{"ROCM_NIGHTLY__POLICY__SERIES=10.3", "PATH=/bin"}})
	if err != nil || c.Keep.Last != 4 || c.Keep.Days != 9 || c.Policy.Series != "10.3" {
		t.Fatalf("%v, %+v", err, c)
	}
	for key, want := range map[string]string{"keep.last": "/config.yaml:1:14", "keep.days": "/config.d/a.yaml:2:14", "policy.series": "$ROCM_NIGHTLY__POLICY__SERIES", "root": ""} {
		if got := c.Source(key); !strings.HasSuffix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %s", key, got)
		}
	}
	if err := c.Locate("root", errors.New("is odd")); err.Error() != "root: is odd" {
		t.Error(err)
	}
	if c.Locate("root", nil) != nil || Together([]error{nil}) != nil {
		t.Error("nothing is something")
	}
	if got := c.Overrides(); len(got) != 1 || got[0] != "ROCM_NIGHTLY__POLICY__SERIES" {
		t.Error(got)
	}
}

// A later word of the top level reaches the installs of an earlier file.
func TestInstallsInheritTheLastWord(t *testing.T) {
	dir := put(t, map[string]string{"config.yaml": "installs: [{target: gfx1151, keep: {days: 3}}]\n", "config.d/a.yaml": "keep: {last: 9}\n"})
	c, _, err := Load(Places{Search: []string{filepath.Join(dir, "config.yaml")}, Environ: []string{"ROCM_NIGHTLY__KEEP__BYTES=1GiB"}})
	if err != nil {
		t.Fatal(err)
	}
	if k := c.KeepOf(c.Installs[0]); k != (Keep{Last: 9, Days: 3, Bytes: 1 << 30}) {
		t.Errorf("%+v", k)
	}
}

// Anchors work; what grows without end does not.
func TestAliases(t *testing.T) {
	c := Default()
	if err := Decode(c, "x", []byte("keep: &k {last: 4}\ninstalls:\n  - {target: gfx1151, keep: *k}\n  - {target: gfx1100, keep: *k}\n")); err != nil || c.KeepOf(c.Installs[1]).Last != 4 {
		t.Fatalf("%v", err)
	}
	bomb := "bump:\n  - check: &a0 [[a, a, a, a, a, a, a, a, a, a]]\n"
	for i := range 8 {
		bomb += fmt.Sprintf("  - check: &a%d [%s*a%d]\n", i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), i)
	}
	for name, text := range map[string]string{
		"aliases of aliases":  bomb,
		"lists in lists":      "installs: " + strings.Repeat("[", 200_000),
		"sections":            "installs: " + strings.Repeat("{a: ", 100_000),
		"dashes":              "installs:\n  " + strings.Repeat("- ", 100_000) + "a\n",
		"nested within bound": "installs: " + strings.Repeat("[", 400) + strings.Repeat("]", 400) + "\n",
	} {
		begun := time.Now()
		if err := Decode(Default(), "x", []byte(text)); err == nil {
			t.Errorf("%s: taken", name)
		} else if len(err.Error()) > 10_000_000 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("%s: %s", name, took)
		}
	}
}

func TestBounds(t *testing.T) {
	many := map[string]string{"config.yaml": ""}
	for i := range maxDropIns + 1 {
		many[fmt.Sprintf("config.d/%03d.yaml", i)] = ""
	}
	dir := put(t, many)
	if _, _, err := Load(Places{Search: []string{filepath.Join(dir, "config.yaml")}}); err == nil || !strings.Contains(err.Error(), "101 files, more than 100") {
		t.Error(err)
	}
	dir = put(t, map[string]string{"config.yaml": strings.Repeat("# much\n", maxFile/7+1)})
	if _, _, err := Load(Places{Explicit: filepath.Join(dir, "config.yaml")}); err == nil || !strings.Contains(err.Error(), "larger than 1048576") {
		t.Error(err)
	}
}
