package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rocm-nightly/rocm-nightly/internal/cage"
	"github.com/rocm-nightly/rocm-nightly/internal/demo"
)

func TestMain(m *testing.M) {
	if code, inside := cage.Main(); inside {
		os.Exit(code)
	}
	testscript.Main(m, map[string]func(){"rocm-nightly": main, "doctor-on": doctorOn})
}

// TestScripts runs testdata/*.txtar: what each verb does, as a user sees it.
// Scripts have six commands of their own, and the conditions [smallfs], [cage] and [root]:
//
//	night VERSION [DAYS-AGO [FAMILY]]  publish a night in $WORK/amd
//	serve                              serve $WORK/amd; $URL is the index
//	config [FILE]                      write config.yaml for $URL, then FILE's lines
//	corrupt MODE FILE                  truncate, flip, html or replace a file
//	readlink LINK TARGET               compare where a link points
//	hook FILE                          append what is posted to $HOOK to FILE; while it is absent the answer is 403
func TestScripts(t *testing.T) {
	bin := plainBinary(t)
	nights := &nightCache{dir: t.TempDir(), made: map[string]string{}}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+":"+env.Getenv("PATH"))
			return setupScript(env)
		},
		Condition: scriptCondition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"night":    nights.night,
			"serve":    serveNights,
			"config":   writeConfig,
			"corrupt":  corrupt,
			"readlink": readlink,
			"hook":     recordHook,
		},
	})
}

// plainBinary builds the program as users have it, and returns its directory. The
// test's own binary would do, but with the race detector it takes most of a second
// to start, more than a thousand times; what runs in parallel is in packages whose
// own tests have the detector.
func plainBinary(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(dir, "rocm-nightly"), ".").CombinedOutput()
	if err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	return dir
}

// scriptCondition knows [smallfs]: a file system can be mounted in a namespace
// of one's own; [cage]: programs of a tree can be run; and [root]: files can be given
// away.
func scriptCondition(cond string) (bool, error) {
	switch cond {
	case "smallfs":
	case "root":
		return os.Geteuid() == 0, nil
	case "cage":
		_, err := cage.Probe(context.Background())
		return err == nil, nil
	default:
		return false, fmt.Errorf("unknown condition %q", cond)
	}
	return exec.Command("unshare", unshareFlags(), "mount", "-t", "tmpfs", "none", "/mnt").Run() == nil, nil
}

// unshareFlags are those with which this user may mount.
func unshareFlags() string {
	if os.Geteuid() == 0 {
		return "-m"
	}
	return "-rm"
}

func setupScript(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, "home")
	env.Setenv("HOME", home)
	env.Setenv("XDG_CACHE_HOME", filepath.Join(home, ".cache"))
	env.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	env.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(home, ".gitconfig"))
	env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	env.Setenv("UNSHARE", unshareFlags())
	env.Setenv("ROCM_NIGHTLY_CONFIG", filepath.Join(env.WorkDir, "config.yaml"))
	env.Setenv("ROOT", filepath.Join(env.WorkDir, "root"))
	env.Setenv("SLOT", filepath.Join(env.WorkDir, "root/slots/nightly-gfx1151"))
	for name, dir := range map[string]string{"MACHINES": "../../audit/doctor/testdata", "TOPOLOGIES": "../../internal/gfx/testdata/kfd"} {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return err
		}
		env.Setenv(name, abs)
	}
	for _, dir := range []string{home, filepath.Join(env.WorkDir, "amd")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\nname = Test\nemail = test@localhost\n[init]\ndefaultBranch = main\n"), 0o644)
}

// nightCache makes each night once: compiling its programs takes a second.
type nightCache struct {
	mu   sync.Mutex
	dir  string
	made map[string]string
}

func (c *nightCache) night(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 3 {
		ts.Fatalf("usage: night VERSION [DAYS-AGO [FAMILY]]")
	}
	daysAgo, family := 1, "gfx1151"
	if len(args) > 1 {
		n, err := strconv.Atoi(args[1])
		ts.Check(err)
		daysAgo = n
	}
	if len(args) > 2 {
		family = args[2]
	}
	src, err := c.get(args[0], family)
	ts.Check(err)
	dst := ts.MkAbs(filepath.Join("amd", filepath.Base(src)))
	ts.Check(os.Link(src, dst+".tmp"))
	ts.Check(os.Rename(dst+".tmp", dst))
	data, err := os.ReadFile(dst)
	ts.Check(err)
	ts.Check(os.Remove(dst)) // a copy: scripts damage theirs
	ts.Check(os.WriteFile(dst, data, 0o644))
	when := time.Now().AddDate(0, 0, -daysAgo)
	ts.Check(os.Chtimes(dst, when, when))
}

func (c *nightCache) get(version, family string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := version + " " + family
	if path := c.made[key]; path != "" {
		return path, nil
	}
	path, err := demo.Night(context.Background(), c.dir, demo.NightOptions{Version: version, Family: family, Date: time.Date(2026, 9, 30, 0, 0, 0, 0, time.UTC)})
	c.made[key] = path
	return path, err
}

func serveNights(ts *testscript.TestScript, neg bool, args []string) {
	url, stop, err := demo.Serve(context.Background(), ts.MkAbs("amd"))
	ts.Check(err)
	ts.Defer(stop)
	ts.Setenv("URL", url)
}

func writeConfig(ts *testscript.TestScript, neg bool, args []string) {
	more := ""
	if len(args) > 0 {
		more = os.Expand(ts.ReadFile(args[0]), ts.Getenv)
	}
	text := fmt.Sprintf("root: %s\nchannels: {nightly: {indexes: [{url: %q}]}}\n", ts.Getenv("ROOT"), ts.Getenv("URL"))
	if !strings.Contains(more, "installs:") {
		text += "installs: [{target: gfx1151}]\n"
	}
	if !strings.Contains(more, "policy:") {
		text += "policy: {settle: 0s}\n"
	}
	if !strings.Contains(more, "download:") {
		text += "download: {retries: 0}\n"
	}
	ts.Check(os.WriteFile(ts.MkAbs("config.yaml"), []byte(text+more), 0o644))
}

func corrupt(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: corrupt truncate|flip|html|replace FILE")
	}
	name := ts.MkAbs(args[1])
	fi, err := os.Stat(name)
	ts.Check(err)
	data, err := os.ReadFile(name)
	ts.Check(err)
	switch args[0] {
	case "truncate":
		data = data[:len(data)/2]
	case "flip":
		data[len(data)/2] ^= 0xff
	case "html":
		data = []byte("<!DOCTYPE html><title>503 Service Unavailable</title>")
	case "replace": // another valid gzip member behind it: other bytes, same tree
		data = append(data, 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	default:
		ts.Fatalf("unknown mode %q", args[0])
	}
	ts.Check(os.WriteFile(name, data, 0o644))
	ts.Check(os.Chtimes(name, fi.ModTime(), fi.ModTime()))
}

func readlink(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: readlink LINK TARGET")
	}
	to, err := os.Readlink(ts.MkAbs(args[0]))
	ts.Check(err)
	if (to == args[1]) == neg {
		ts.Fatalf("%s points to %s", args[0], to)
	}
}
