package systemd_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/systemd"
)

// shipped lists the files that match a pattern.
func shipped(t *testing.T, patterns ...string) []string {
	t.Helper()
	var all []string
	for _, p := range patterns {
		names, err := fs.Glob(systemd.Files, p)
		if err != nil || len(names) == 0 {
			t.Fatalf("no %s: %v", p, err)
		}
		all = append(all, names...)
	}
	return all
}

func text(t *testing.T, name string) string {
	t.Helper()
	b, err := fs.ReadFile(systemd.Files, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// laid puts a set where systemd of a machine finds it, with a program that is there.
func laid(t *testing.T, o systemd.Options) (dir string, files []systemd.File) {
	t.Helper()
	o.Exec = []string{"/bin/true"}
	files, err := systemd.Set(o)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for _, f := range files {
		path := filepath.Join(dir, string(f.Kind), f.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(f.Text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir, files
}

func analyze(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is missing: apt install systemd")
	}
	return path
}

// TestUnitsAreClean: systemd-analyze verify has nothing to say of any unit, alone or
// with the drop-ins of `init systemd`.
func TestUnitsAreClean(t *testing.T) {
	program := analyze(t)
	for name, o := range map[string]systemd.Options{
		"daemon": {Daemon: true}, "timer": {}, "everything": {Laptop: true, GPU: true, Root: "/srv"},
		"daemon with a GPU": {Daemon: true, GPU: true, Root: "/srv", Textfile: "/var/lib/node 100%"},
		"user's daemon":     {User: true, Daemon: true}, "user's timer": {User: true, Laptop: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, files := laid(t, o)
			args := []string{"verify", "--man=no", "--recursive-errors=no"}
			if o.User {
				args = append(args, "--user")
			}
			for _, f := range files {
				if (f.Kind == systemd.SystemUnit || f.Kind == systemd.UserUnit) && !strings.Contains(f.Path, "/") {
					args = append(args, filepath.Join(dir, string(f.Kind), f.Path))
				}
			}
			cmd := exec.Command(program, args...)
			cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
			out, err := cmd.CombinedOutput()
			if err != nil || len(out) > 0 {
				t.Errorf("%s: %v\n%s", strings.Join(args, " "), err, out)
			}
		})
	}
}

// TestExposureIsTwoAtMost: what systemd-analyze security counts of each service.
func TestExposureIsTwoAtMost(t *testing.T) {
	program := analyze(t)
	for _, name := range shipped(t, "*.service") {
		out, err := exec.Command(program, "security", "--offline=yes", "--no-pager", "--threshold=20", name).CombinedOutput()
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		t.Log(lines[len(lines)-1])
	}
}

// TestEveryHoleIsExplained: what systemd-analyze counts against the daemon and prune is
// in the table of docs/systemd.md.
func TestEveryHoleIsExplained(t *testing.T) {
	program := analyze(t)
	doc, err := os.ReadFile("../docs/systemd.md")
	if err != nil {
		t.Fatal(err)
	}
	table := strings.ReplaceAll(string(doc), `\|`, "|") // as cells of a table have it
	hole := regexp.MustCompile(`(?m)^✗ (\S+)`)
	for _, name := range shipped(t, "*.service") {
		cmd := exec.Command(program, "security", "--offline=yes", "--no-pager", name)
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "SYSTEMD_COLORS=0")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		found := hole.FindAllStringSubmatch(string(out), -1)
		if len(found) == 0 {
			t.Errorf("%s has no hole at all? %s", name, out)
		}
		for _, m := range found {
			if !strings.Contains(table, "`"+m[1]+"`") {
				t.Errorf("%s: docs/systemd.md does not explain %s", name, m[1])
			}
		}
	}
}

// TestNothingRunsAsRoot: every service of the system has the service's user, and only
// prune has capabilities: to see, none to change.
func TestNothingRunsAsRoot(t *testing.T) {
	for _, name := range shipped(t, "*.service") {
		s := text(t, name)
		want := "\nCapabilityBoundingSet=\n"
		if name == "rocm-nightly-prune.service" {
			want = "\nCapabilityBoundingSet=CAP_SYS_PTRACE CAP_DAC_READ_SEARCH\n"
		}
		for _, line := range []string{"\nUser=rocm-nightly\n", "\nNoNewPrivileges=yes\n", want} {
			if !strings.Contains(s, line) {
				t.Errorf("%s lacks %q", name, line)
			}
		}
	}
	if !strings.Contains(text(t, "rocm-nightly.service"), "\nConflicts=rocm-nightly-update.timer ") {
		t.Error("the daemon and the timer would both update")
	}
}

// TestFaultsAreNotTakenForAWrongConfig: Go exits 2 when it panics or is asked to abort by
// the watchdog, which is what a wrong config exits with; such a unit is not started again.
func TestFaultsAreNotTakenForAWrongConfig(t *testing.T) {
	for _, name := range shipped(t, "*.service", "user/*.service") {
		s := text(t, name)
		if strings.Contains(s, "\nRestartPreventExitStatus=2") != strings.Contains(s, "\nEnvironment=GOTRACEBACK=crash\n") {
			t.Errorf("%s: RestartPreventExitStatus=2 goes with GOTRACEBACK=crash", name)
		}
	}
}

// TestSetIsWhatPackagesShip: the same text, but for the mark and the program.
func TestSetIsWhatPackagesShip(t *testing.T) {
	for _, o := range []systemd.Options{{Daemon: true}, {}, {User: true, Daemon: true}, {User: true}} {
		o.Exec = []string{"/opt/my tools/rocm-nightly", "--config", "/etc/$x 5%.yaml"}
		files, err := systemd.Set(o)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			name := f.Path
			switch f.Kind {
			case systemd.UserUnit:
				name = "user/" + name
			case systemd.SysUsers:
				name = "sysusers.d/" + name
			}
			const want = `ExecStart="/opt/my tools/rocm-nightly" --config "/etc/$$x 5%%.yaml" `
			if strings.Contains(text(t, name), "ExecStart=") && !strings.Contains(f.Text, "\n"+want) {
				t.Errorf("%s does not begin %s", f.Path, want)
			}
			if got := strings.Replace(f.Text, want, "ExecStart=/usr/bin/rocm-nightly ", 1); got != systemd.Mark+text(t, name) {
				t.Errorf("%s is not what is shipped:\n%s", f.Path, got)
			}
		}
	}
}

// TestSetRefusesWhatNoUnitCanHold: nothing of a path becomes a line of a unit.
func TestSetRefusesWhatNoUnitCanHold(t *testing.T) {
	good := []string{"/usr/bin/rocm-nightly"}
	for name, o := range map[string]systemd.Options{
		"no program":      {},
		"relative":        {Exec: []string{"rocm-nightly"}},
		"line in exec":    {Exec: []string{"/x\nUser=root"}},
		"line in root":    {Exec: good, Root: "/srv\nUser=root"},
		"line in numbers": {Exec: good, Textfile: "/srv\nUser=root"},
		"line in link":    {Exec: good, Links: []systemd.Link{{Path: "/opt/rocm\nf /etc/x", Target: "/srv"}}},
		"no target":       {Exec: good, Links: []systemd.Link{{Path: "/opt/rocm"}}},
		"zero in a word":  {Exec: append(good, "a\x00b")},
	} {
		if files, err := systemd.Set(o); err == nil {
			t.Errorf("%s: %v", name, files)
		}
	}
}
