package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// asked has the config's health command say when it was asked of what, and fail
// where that is what is given here.
func (a *axe) asked(t *testing.T, fails string) (log func() string) {
	t.Helper()
	path := filepath.Join(a.dir, "asked")
	script := filepath.Join(a.dir, "health.sh")
	text := fmt.Sprintf("#!/bin/sh\ntest -d \"$ROCM_NIGHTLY_PREFIX\" || exit 9\nsaid=\"$ROCM_NIGHTLY_PHASE $ROCM_NIGHTLY_VERSION\"\necho \"$said\" >>%s\ntest \"$said\" != %q\n", path, fails)
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	a.health = fmt.Sprintf(`{smoke: "off", command: [%s], sandbox: "off"}`, script)
	a.configure(t, "")
	return func() string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
}

// TestPromiseWhatFailsAfterTheSwitchIsRolledBackOnce: a night that passes its
// check and fails it once it is current is left again, once, and not tried again.
func TestPromiseWhatFailsAfterTheSwitchIsRolledBackOnce(t *testing.T) {
	a := newAxe(t, 2)
	a.install(t, 0)
	good, bad := axeNight(0), axeNight(1)
	said := a.asked(t, "after "+bad)
	a.do(t, nil, "update", "--no-bump").want(t, 4, "", "went back to "+good)
	want := "before " + bad + "\nafter " + bad + "\nafter " + good + "\n"
	if said() != want || a.active() != good {
		t.Errorf("%s is active, asked:\n%swant:\n%s", a.active(), said(), want)
	}
	a.do(t, nil, "update", "--no-bump").want(t, 0, "", "")
	if said() != want || a.active() != good {
		t.Errorf("the next run: %s is active, asked:\n%s", a.active(), said())
	}
	a.do(t, nil, "status").want(t, 0, bad, "")
	a.publish(t, 2)
	a.do(t, nil, "update", "--no-bump").want(t, 0, "installed "+axeNight(2), "")
	a.look(t, "went back, and on")
}

// TestPromiseWhatIsInUseSurvivesPruning: what a process has open or has leased,
// and what a hold is about, stays; once nobody uses it, it goes.
func TestPromiseWhatIsInUseSurvivesPruning(t *testing.T) {
	a := newAxe(t, 5)
	a.install(t, 0)
	a.install(t, 1)
	user := a.sleeper(t, a.slot("generations", axeNight(0)))
	other := a.sleeper(t, a.dir)
	a.do(t, nil, "lease", "--version", axeNight(1), "--pid", fmt.Sprint(other.Process.Pid)).want(t, 0, axeNight(1), "")
	for n := 2; n < 5; n++ {
		a.install(t, n)
	}
	a.stays(t, 0, 1, 3, 4)
	a.do(t, nil, "prune", "--last", "1").want(t, 0, "", "")
	a.do(t, nil, "remove", axeNight(0)).want(t, 1, "", fmt.Sprint(user.Process.Pid))
	a.stays(t, 0, 1, 3, 4)

	a.do(t, nil, "use", axeNight(3)).want(t, 0, "", "")
	a.do(t, nil, "hold").want(t, 0, "", "")
	a.do(t, nil, "use", axeNight(4)).want(t, 0, "", "")
	a.do(t, nil, "use", axeNight(1)).want(t, 0, "", "")
	ended(t, user)
	ended(t, other)
	a.do(t, nil, "prune", "--last", "1").want(t, 0, "", "")
	a.stays(t, 1, 3, 4) // active, held, before
	a.do(t, nil, "unhold").want(t, 0, "", "")
	a.do(t, nil, "prune", "--last", "1").want(t, 0, "", "")
	a.stays(t, 1, 4)
}

// sleeper is a process that does nothing, in a directory.
func (a *axe) sleeper(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sleep", "600")
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func ended(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
}

// stays fails the test unless these nights are installed, and no other.
func (a *axe) stays(t *testing.T, nights ...int) {
	t.Helper()
	var want []string
	for _, n := range nights {
		want = append(want, axeNight(n))
	}
	entries, err := os.ReadDir(a.slot("generations"))
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, e := range entries {
		have = append(have, e.Name())
	}
	if fmt.Sprint(have) != fmt.Sprint(want) {
		t.Errorf("there are %v, want %v: %s", have, want, a.do(t, nil, "prune", "--dry-run").stdout)
	}
}
