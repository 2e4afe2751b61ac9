package wrap

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// wrapperCase is one way to call a wrapper. BASE is the directory that holds the
// prefix, PREFIX the prefix itself.
type wrapperCase struct {
	name  string
	call  string // path of the wrapper; one with no slash is looked for in PATH
	dir   string
	env   []string
	links map[string]string // made first, relative to BASE
	want  []string          // lines of the output
}

var wrapperCases = []wrapperCase{
	{name: "absolute, empty environment", call: "PREFIX/bin/probe",
		want: []string{"self=ROOT/bin/probe", "rocm=ROOT", "hip=ROOT", "llvm=unset", "cache=unset"}},
	{name: "odd name", call: "PREFIX/bin/" + oddName, want: []string{"self=ROOT/bin/" + oddName}},
	{name: "other name of a program", call: "PREFIX/bin/again", want: []string{"self=ROOT/bin/again"}},
	{name: "link to a program elsewhere in the tree", call: "PREFIX/bin/smi", env: []string{"ROCM_PATH=/x"}, want: []string{"self=ROOT/bin/smi", "rocm=ROOT"}},
	{name: "relative", call: "../bin/probe", dir: "PREFIX/share", want: []string{"rocm=ROOT", "cwd=PREFIX/share"}},
	{name: "CDPATH", call: "bin/probe", dir: "PREFIX", env: []string{"CDPATH=/usr:/"}, want: []string{"rocm=ROOT"}},
	{name: "through PATH", call: "probe", dir: "/", env: []string{"PATH=PREFIX/bin:/bin:/usr/bin"}, want: []string{"rocm=ROOT", "cwd=/"}},
	{name: "link to the wrapper", call: "BASE/somewhere", links: map[string]string{"somewhere": "PREFIX/bin/probe"}, want: []string{"rocm=ROOT"}},
	{name: "chain of links", call: "BASE/l1", links: map[string]string{"l1": "l2", "l2": "PREFIX/bin/probe"}, want: []string{"rocm=ROOT"}},
	{name: "current", call: "BASE/current/bin/probe", links: map[string]string{"current": "PREFIX"}, want: []string{"rocm=ROOT", "self=ROOT/bin/probe"}},
	{name: "link to bin", call: "BASE/tools/probe", links: map[string]string{"tools": "PREFIX/bin"}, want: []string{"rocm=ROOT"}},
	{name: "foreign ROCm", call: "PREFIX/bin/probe", env: []string{"ROCM_PATH=/x", "HIP_PATH=/y", "LLVM_PATH=/z"},
		want: []string{"rocm=ROOT", "hip=ROOT", "llvm=unset"}},
	{name: "kept environment", call: "PREFIX/bin/probe", env: []string{"ROCM_PATH=/x", "LLVM_PATH=/z", "ROCM_NIGHTLY_KEEP_ENV=1"},
		want: []string{"rocm=/x", "hip=ROOT", "llvm=/z"}},
	{name: "cache in HOME", call: "PREFIX/bin/probe", env: []string{"HOME=BASE"},
		want: []string{"cache=BASE/.cache/rocm-nightly/comgr-10.2.0a20260930-" + strings.Repeat("a", 12)}},
	{name: "cache in XDG", call: "PREFIX/bin/probe", env: []string{"HOME=BASE", "XDG_CACHE_HOME=/c"},
		want: []string{"cache=/c/rocm-nightly/comgr-10.2.0a20260930-" + strings.Repeat("a", 12)}},
	{name: "no HOME on disk", call: "PREFIX/bin/probe", env: []string{"HOME=/nonexistent"}, want: []string{"cache=unset"}},
	{name: "the user's cache", call: "PREFIX/bin/probe", env: []string{"HOME=BASE", "AMD_COMGR_CACHE_DIR=/mine"}, want: []string{"cache=/mine"}},
	{name: "another release's cache", call: "PREFIX/bin/probe", env: []string{"HOME=BASE", "AMD_COMGR_CACHE_DIR=/c/rocm-nightly/comgr-7.9"},
		want: []string{"cache=BASE/.cache/rocm-nightly/comgr-10.2.0a20260930-" + strings.Repeat("a", 12)}},
	{name: "another release's cache, and no HOME", call: "PREFIX/bin/probe", env: []string{"AMD_COMGR_CACHE_DIR=/c/rocm-nightly/comgr-7.9"}, want: []string{"cache=unset"}},
	{name: "the user's empty cache", call: "PREFIX/bin/probe", env: []string{"HOME=BASE", "AMD_COMGR_CACHE_DIR="}, want: []string{"cache="}},
}

func TestWrappers(t *testing.T) {
	args := []string{"", "a b", "new\nline", "$HOME", "*", "--", "'\""}
	for name, shell := range shells(t) {
		t.Run(name, func(t *testing.T) {
			prefix, files := newPrefix(t, "pre fix $x'&")
			// A first line can hold one argument: a shell that needs more is
			// started through a script of its own.
			o := Options{Version: "10.2.0a20260930", Digest: "sha256:" + strings.Repeat("a", 64), Shell: shellFile(t, shell)}
			finish(t, prefix, files, o)
			for _, tt := range wrapperCases {
				t.Run(tt.name, func(t *testing.T) { tt.check(t, prefix, args) })
			}
		})
	}
}

// shellFile is a path that runs a shell and can stand in a first line.
func shellFile(t *testing.T, shell []string) string {
	t.Helper()
	if len(shell) == 1 {
		return shell[0]
	}
	p := filepath.Join(t.TempDir(), "sh")
	text := "#!/bin/sh\nexec " + strings.Join(shell, " ") + " \"$@\"\n"
	if err := os.WriteFile(p, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

func (tt wrapperCase) check(t *testing.T, prefix string, args []string) {
	t.Helper()
	base := filepath.Dir(prefix)
	fill := strings.NewReplacer("ROOT", prefix+"/opt/rocm", "PREFIX", prefix, "BASE", base)
	for link, target := range tt.links {
		if err := os.Symlink(fill.Replace(target), filepath.Join(base, link)); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{}
	for _, e := range tt.env {
		env = append(env, fill.Replace(e))
	}
	call := fill.Replace(tt.call)
	cmd := exec.Command(call, args...)
	if !strings.Contains(call, "/") {
		cmd = exec.Command("/bin/sh", append([]string{"-c", `exec "$0" "$@"`, call}, args...)...)
	}
	cmd.Env, cmd.Dir = env, fill.Replace(tt.dir)
	cmd.Stdin = strings.NewReader("one\ntwo\n")
	out, code := run(t, cmd)
	if code != 37 {
		t.Errorf("exit status %d", code)
	}
	head := "args:7\n<>\n<a b>\n<new\nline>\n<$HOME>\n<*>\n<-->\n<'\">\n"
	if !strings.HasPrefix(out, head) || !strings.HasSuffix(out, "\nin:one\nin:two\n") {
		t.Errorf("arguments or input changed:\n%s", out)
	}
	for _, want := range tt.want {
		if !strings.Contains(out, "\n"+fill.Replace(want)+"\n") {
			t.Errorf("lacks %q:\n%s", fill.Replace(want), out)
		}
	}
}

// A prefix that is moved as a whole works at once.
func TestMovedPrefix(t *testing.T) {
	prefix, files := newPrefix(t, "old")
	finish(t, prefix, files, Options{})
	moved := filepath.Join(filepath.Dir(prefix), "new place")
	if err := os.Rename(prefix, moved); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(moved + "/bin/probe")
	cmd.Env = []string{}
	out, code := run(t, cmd)
	if code != 37 || !strings.Contains(out, "\nrocm="+moved+"/opt/rocm\n") {
		t.Errorf("%d: %s", code, out)
	}
}

// A wrapper that was copied out of its prefix says what to do.
func TestCopiedWrapper(t *testing.T) {
	prefix, files := newPrefix(t, "p")
	finish(t, prefix, files, Options{})
	data, err := os.ReadFile(prefix + "/bin/probe")
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "probe")
	if err := os.WriteFile(copied, data, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, code := run(t, exec.Command(copied)); code != 127 || !strings.Contains(out, "symbolic link") {
		t.Errorf("%d: %s", code, out)
	}
}

// The common path starts no program of its own: with a PATH that leads nowhere
// and a shell that would report a failed command it still runs.
func TestWrapperNeedsNoProgram(t *testing.T) {
	text := wrapperText("x", Options{Shell: "/bin/sh", Readlink: "readlink", Version: "1"})
	before, _, _ := strings.Cut(text, "while [ -L")
	_, after, _ := strings.Cut(text, "\ndone\n")
	for _, word := range []string{"dirname", "basename", "readlink", "realpath", "env "} {
		if strings.Contains(before+after, word) {
			t.Errorf("the common path has %s", word)
		}
	}
}

func TestProgramsAreToldFromLibraries(t *testing.T) {
	facts := exe("", "").ELF
	for name, want := range map[string]bool{
		"tool": true, "tool.sort": true, "x.so.d": true, "a.so1": true, "so": true,
		"plugin.so": false, "plugin.so.1": false, "plugin.so.1.22.333": false,
	} {
		files := []manifest.File{{Path: "opt/rocm/bin/" + name, Kind: manifest.Regular, Mode: 0o755, ELF: facts}}
		got, err := newLayout(newTree(files, treeDir)).isProgram("bin", name, nil)
		if got != want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// What is put into a wrapper is not read for marks again.
func TestWrapperOfHostileOptions(t *testing.T) {
	o := Options{Shell: "/x/@program@/@cache@", Readlink: "/y/@shell@/@key@", Version: "1"}
	text := wrapperText("@shell@@readlink@", o)
	for _, want := range []string{"#!/x/@program@/@cache@\n", "$('/y/@shell@/@key@' -- ", "/bin/'@shell@@readlink@' \"$@\"\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
