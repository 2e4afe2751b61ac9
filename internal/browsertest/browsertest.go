package browsertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Check is one thing that a script looked at.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"` // what is wrong
}

// Run runs a script of Node's with what it needs, as JSON in its one argument, and
// returns what it checked, one JSON object a line of its output. The script finds
// the directory of playwright-core and axe-core in "modules", the browser in
// "chromium", and its flags in "flags". The test is skipped where a tool is missing.
func Run(ctx context.Context, t testing.TB, script string, input map[string]any) []Check {
	t.Helper()
	for _, tool := range []string{"chromium", "node", "go", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is missing", tool)
		}
	}
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		t.Fatalf("browsertest: find the module: %v", err)
	}
	dir, err := exec.Command(filepath.Join(strings.TrimSpace(string(root)), "scripts", "browser.sh"), "--print").Output()
	if err != nil {
		t.Skip("playwright-core and axe-core are not installed: run scripts/browser.sh")
	}
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is missing")
	}
	input["modules"], input["chromium"], input["flags"] = filepath.Join(strings.TrimSpace(string(dir)), "node_modules"), browser, flags()
	arg, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "node", script, string(arg))
	// Its profile, and what it leaves behind when it is killed, goes with the test.
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "TMPDIR="+t.TempDir())
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	runErr := cmd.Run()
	var checks []Check
	for line := range strings.Lines(out.String()) {
		var c Check
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Errorf("browsertest: %s says %q: %v", script, line, err)
			continue
		}
		checks = append(checks, c)
	}
	if runErr != nil {
		t.Fatalf("browsertest: %s: %v\n%s", script, runErr, fmt.Sprintf("%.4000s", errs.String()))
	}
	return checks
}

// flags make the browser one that asks nobody for anything.
func flags() []string {
	return []string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"}
}
