package cage

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// confine does to this thread, and to what it starts, what a systemd unit with
// RestrictNamespaces=yes, NoNewPrivileges=yes and a SystemCallFilter= does. With
// "kill" what the filter does not have kills, with "errno" it fails, and with
// "landlock" Landlock's calls are let through.
func confine(unit string) error {
	if unit == "" {
		return nil
	}
	runtime.LockOSThread()
	action, ok := map[string]uint32{"kill": retKill, "errno": retEPERM, "landlock": retAllow}[unit]
	if !ok {
		return errors.New("no such unit: " + unit)
	}
	var a assembler
	a.load(offNumber)
	a.noBits(unix.SYS_CLONE, 0, unix.CLONE_NEWUSER|unix.CLONE_NEWNS|unix.CLONE_NEWNET)
	a.deny(retENOSYS, unix.SYS_CLONE3)
	for _, call := range []uintptr{unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_ADD_RULE, unix.SYS_LANDLOCK_RESTRICT_SELF} {
		a.deny(action, call)
	}
	a.ret(retAllow)
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return install(a.code)
}

// What becomes of a cage in the systemd units of this repository, as they are
// and as they were.
func TestInASystemdUnit(t *testing.T) {
	if os.Geteuid() != 0 {
		return // a user's units have no such directives that matter
	}
	caps := func(more string) []string {
		return []string{"setpriv", "--no-new-privs", "--bounding-set", "-all,+dac_override,+fowner,+chown" + more, "--inh-caps", "-all"}
	}
	landlock := mode{kind: Landlock}.has()
	for name, test := range map[string]struct {
		mode   mode
		reason string // "": it is run
	}{
		"as it is":              {mode{via: caps(",+setuid,+setgid"), unit: "landlock"}, ""},
		"without CAP_SETUID":    {mode{via: caps(""), unit: "landlock"}, "CapabilityBoundingSet="},
		"without landlock":      {mode{via: caps(",+setuid,+setgid"), unit: "errno"}, "Landlock"},
		"with a filter's knife": {mode{via: caps(",+setuid,+setgid"), unit: "kill"}, "SystemCallErrorNumber=EPERM"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.reason == "" && landlock {
				test.mode.name = name
				w := newWorld(t)
				a := test.mode.answer(t, Command{Path: w.tree + "/bin/rocminfo", Args: w.args, ReadOnly: []string{w.tree}, Scratch: w.scratch}, hooks{})
				if a.Result == nil || a.Result.Kind != Landlock {
					t.Fatalf("%+v", a)
				}
				for name, what := range outcome(t, a.Result.Stdout) {
					if strings.HasPrefix(what, "yes") {
						t.Errorf("%s: %s", name, what)
					}
				}
				w.check(t)
				return
			}
			a := test.mode.answer(t, Command{Path: "/bin/true"}, hooks{})
			if a.Result != nil || !strings.Contains(a.NotRun, test.reason) || !strings.Contains(a.NotRun, "namespaces") {
				t.Errorf("%+v", a)
			}
		})
	}
}

// Where a user may have no namespaces, in a chroot for one, Landlock does.
func TestFallback(t *testing.T) {
	m := mode{name: "no namespaces", unit: "landlock", user: true}
	a := m.answer(t, Command{Path: "/bin/true"}, hooks{})
	if !(mode{kind: Landlock}).has() {
		if a.NotRun == "" {
			t.Errorf("%+v", a)
		}
		return
	}
	if a.Result == nil || a.Result.Kind != Landlock {
		t.Errorf("%+v", a)
	}
	a = m.answer(t, Command{Path: "/bin/true"}, hooks{ABI: 2})
	if a.Result != nil || !strings.Contains(a.NotRun, "Linux 6.2") || !strings.Contains(a.NotRun, "no cage by namespaces") {
		t.Errorf("%+v", a)
	}
}
