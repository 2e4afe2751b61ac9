package wrap

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// slot makes generations of a small prefix in a slot, of which the first is
// active, and returns the slot's directory.
func slot(t *testing.T, shell string, versions ...string) string {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(base, "slots", "x y")
	files := []manifest.File{
		{Path: "opt", Kind: manifest.Dir, Mode: 0o755}, {Path: "opt/rocm", Kind: manifest.Dir, Mode: 0o755},
		file("opt/rocm/bin/hipcc", 0o755), file("opt/rocm/bin/hipconfig", 0o755), file("opt/rocm/bin/hipconfig.pl", 0o755),
		file("opt/rocm/bin/hipconfigure", 0o755), file("opt/rocm/bin/probe", 0o755),
	}
	for _, v := range versions {
		prefix := filepath.Join(dir, "generations", v)
		for _, f := range files {
			writeEntry(t, prefix, f)
			if f.Kind == manifest.Regular {
				overwrite(t, filepath.Join(prefix, f.Path), probe)
				if err := os.Chmod(filepath.Join(prefix, f.Path), 0o755); err != nil {
					t.Fatal(err)
				}
			}
		}
		finish(t, prefix, files, Options{Shell: shell, FinalPrefix: dir + "/current"})
	}
	current(t, dir, "generations/"+versions[0])
	return dir
}

func current(t *testing.T, slot, target string) {
	t.Helper()
	link := filepath.Join(slot, "current")
	if err := os.Remove(link); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
}

// What records paths names the link while that leads to it; everything else its
// generation. The program itself is the generation's always.
func TestWrappersThatRecordPaths(t *testing.T) {
	for name, shell := range shells(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := slot(t, shellFile(t, shell), "V1", "V2")
			outside := filepath.Join(filepath.Dir(dir), "rocm")
			if err := os.Symlink(dir+"/current", outside); err != nil {
				t.Fatal(err)
			}
			told := func(call string, env ...string) string {
				cmd := exec.Command(call)
				cmd.Env = env
				out, code := run(t, cmd)
				rocm := value(out, "rocm")
				if code != 37 || len(env) == 0 && rocm != value(out, "hip") {
					t.Fatalf("%s: %d\n%s", call, code, out)
				}
				if self := value(out, "self"); !strings.HasPrefix(self, dir+"/generations/V") {
					t.Errorf("%s runs %s", call, self)
				}
				return strings.TrimPrefix(rocm, dir+"/")
			}
			for _, via := range []string{dir + "/current", outside, dir + "/generations/V1"} {
				for program, want := range map[string]string{
					"hipcc": "current/opt/rocm", "hipconfig": "current/opt/rocm", "hipconfig.pl": "current/opt/rocm",
					"hipconfigure": "generations/V1/opt/rocm", "probe": "generations/V1/opt/rocm",
				} {
					if got := told(via + "/bin/" + program); got != want {
						t.Errorf("%s/bin/%s: %s, not %s", via, program, got, want)
					}
				}
			}
			if got := told(dir + "/generations/V2/bin/hipcc"); got != "generations/V2/opt/rocm" {
				t.Errorf("what is not active says %s", got)
			}
			if got := told(dir+"/current/bin/hipcc", "ROCM_NIGHTLY_KEEP_ENV=1", "ROCM_PATH=/mine"); got != "/mine" {
				t.Errorf("the user's own: %s", got)
			}
			for _, target := range []string{"nothing", ".", "current", "generations/V2"} {
				current(t, dir, target)
				if got := told(dir + "/generations/V1/bin/hipcc"); got != "generations/V1/opt/rocm" {
					t.Errorf("current -> %s: %s", target, got)
				}
			}
		})
	}
}

// value is one line of what the probe prints.
func value(out, name string) string {
	_, rest, _ := strings.Cut(out, "\n"+name+"=")
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

// A hostile environment and odd places change nothing.
func TestWrappersInOddPlaces(t *testing.T) {
	for name, shell := range shells(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := slot(t, shellFile(t, shell), "V1")
			evil := filepath.Join(t.TempDir(), "evil")
			overwriteNew(t, evil, "cd() { echo hijacked; }\npwd() { echo hijacked; }\nROCM_PATH=/evil\n")
			link := filepath.Join(t.TempDir(), "a b")
			if err := os.Mkdir(link, 0o755); err != nil {
				t.Fatal(err)
			}
			for from, to := range map[string]string{"one": "two", "two": "../a b/three", "three": dir + "/current/bin/probe"} {
				if err := os.Symlink(to, filepath.Join(link, from)); err != nil {
					t.Fatal(err)
				}
			}
			want := dir + "/generations/V1/opt/rocm"
			for what, c := range map[string]struct {
				script, dir string
				env         []string
			}{
				"IFS":                {script: dir + "/current/bin/probe", env: []string{"IFS=/ntoc"}},
				"ENV":                {script: dir + "/current/bin/probe", env: []string{"ENV=" + evil}},
				"CDPATH":             {script: "./probe", dir: dir + "/current/bin", env: []string{"CDPATH=/:/usr"}},
				"posix":              {script: dir + "/current/bin/probe", env: []string{"POSIXLY_CORRECT=1", "SHELLOPTS=posix:nounset"}},
				"links of links":     {script: link + "/one"},
				"relative PATH":      {script: "probe", dir: dir, env: []string{"PATH=current/bin:/usr/bin:/bin"}},
				"empty PATH element": {script: "probe", dir: dir + "/current/bin", env: []string{"PATH=:/usr/bin:/bin"}},
				"PATH by a link":     {script: "one", dir: "/", env: []string{"PATH=" + link + ":/usr/bin:/bin"}},
			} {
				cmd := exec.Command("/bin/sh", "-c", `exec "$0" "$@"`, c.script, "x")
				cmd.Env, cmd.Dir = append([]string{"PATH=/usr/bin:/bin"}, c.env...), c.dir
				if out, code := run(t, cmd); code != 37 || value(out, "rocm") != want || !strings.HasPrefix(out, "args:1\n<x>\n") {
					t.Errorf("%s: %d\n%s", what, code, out)
				}
			}
			gone := filepath.Join(t.TempDir(), "gone")
			cmd := exec.Command("/bin/sh", "-c", `mkdir "$1" && cd "$1" && rmdir "$1" && exec "$0"`, dir+"/current/bin/probe", gone)
			cmd.Env = []string{"PATH=/usr/bin:/bin"}
			if out, code := run(t, cmd); code != 37 || value(out, "rocm") != want {
				t.Errorf("a directory that is gone: %d\n%s", code, out)
			}
		})
	}
}

// The wrapper is the program once it runs: a signal and its status are those of
// the program.
func TestWrapperIsGoneByExec(t *testing.T) {
	dir := slot(t, "/bin/sh", "V1")
	target := dir + "/generations/V1/opt/rocm/bin/probe"
	overwrite(t, target, "#!/bin/sh\necho $$\nread -r go\nkill -TERM $$\n")
	if err := os.Chmod(target, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(dir + "/current/bin/probe")
	cmd.Stdin = strings.NewReader("go\n")
	out, err := cmd.Output()
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if err == nil || !ok || status.Signal() != syscall.SIGTERM {
		t.Errorf("status %v, %v", cmd.ProcessState, err)
	}
	if pid := strings.TrimSpace(string(out)); pid != strconv.Itoa(cmd.Process.Pid) {
		t.Errorf("process %s, not %d", pid, cmd.Process.Pid)
	}
}

// Both ways in which others find a ROCm root from hipcc lead to one.
func TestRootFromHipcc(t *testing.T) {
	dir := slot(t, "/bin/sh", "V1")
	hipcc := dir + "/current/bin/hipcc"
	real, err := filepath.EvalSymlinks(hipcc)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{hipcc, real} {
		root := filepath.Dir(filepath.Dir(p))
		if _, err := os.Stat(filepath.Join(root, "bin/hipconfig")); err != nil {
			t.Error(err)
		}
		if root != dir+"/current" && root != dir+"/generations/V1" {
			t.Errorf("root %s", root)
		}
	}
}
