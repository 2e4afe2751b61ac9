package environ

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// hostile is the name of a prefix that careless quoting trips over, and careless
// filling in of templates: it holds their marks.
const hostile = `my r'o"c$m!` + "`x`" + `\&;*(a)#[b]{c}~%~ä/NAME/@tab@@prefix@@helper@`

// sample is an environment with its files in a directory of a hostile name.
func sample(t testing.TB, name string) *Environment {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	prefix := filepath.Join(base, name, hostile)
	rocm := prefix + "/opt/rocm"
	e := &Environment{
		Schema: Schema, About: "ROCm 10.2.0a20260930 gfx1151", Prefix: prefix,
		Set: []Variable{
			{"ROCM_PATH", rocm}, {"HIP_PATH", rocm}, {"HIP_PLATFORM", "amd"},
			{"HSA_OVERRIDE_GFX_VERSION", "9.0.6"}, {"ODD", `a 'b' "c" $d \e !f *` + " " + name},
		},
		Lists: []Search{
			{"PATH", prefix + "/bin", true}, {"CMAKE_PREFIX_PATH", rocm, false},
			{"PKG_CONFIG_PATH", rocm + "/lib/pkgconfig", false}, {"PKG_CONFIG_PATH", rocm + "/share/pkgconfig", false},
			{"LD_LIBRARY_PATH", rocm + "/lib", false},
		},
	}
	if err := e.Check(); err != nil {
		t.Fatal(err)
	}
	for name, text := range e.Files("/bin/sh", "10.2.0a20260930") {
		p := filepath.Join(prefix, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o444); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// shellUnder is one shell that is tried.
type shellUnder struct {
	kind    string // what Script takes
	command []string
	setup   string
}

// underTest are the shells of this machine.
func underTest(t *testing.T) map[string]shellUnder {
	t.Helper()
	strict := "set -euf\nIFS='/: 0'\n"
	found := map[string]shellUnder{}
	for name, s := range map[string]shellUnder{
		"dash":       {"sh", []string{"dash"}, strict},
		"bash":       {"bash", []string{"bash", "--norc"}, strict + "set -o pipefail\n"},
		"bash posix": {"sh", []string{"bash", "--posix"}, strict},
		"busybox":    {"sh", []string{"busybox", "sh"}, strict},
		"ksh93":      {"ksh", []string{"ksh93"}, strict},
		"mksh":       {"mksh", []string{"mksh"}, strict},
		"zsh":        {"zsh", []string{"zsh", "-f"}, "set -euf\nIFS='/: 0'\n"},
		"zsh odd":    {"zsh", []string{"zsh", "-f"}, "setopt err_exit no_unset extended_glob ksh_arrays sh_word_split glob_subst null_glob\n"},
		"fish":       {"fish", []string{"fish", "--no-config"}, ""},
		"fish odd":   {"fish", []string{"fish", "--no-config"}, "set -g IFS ''\nset -g name other\n"},
		"tcsh":       {"tcsh", []string{"tcsh", "-f"}, ""},
		"nu":         {"nu", []string{"nu", "-n"}, ""},
	} {
		p, err := exec.LookPath(s.command[0])
		if err != nil {
			if s.kind != "nu" { // Debian has no package of it
				t.Run(name, func(t *testing.T) { t.Skipf("no %s here: Debian has it in the package %s", s.command[0], s.command[0]) })
			}
			continue
		}
		s.command = append([]string{p}, s.command[1:]...)
		found[name] = s
	}
	if len(found) == 0 {
		t.Skip("no shell here: Debian has dash, bash and busybox in packages of these names")
	}
	return found
}

func (s shellUnder) source(e *Environment) string {
	switch s.kind {
	case "fish":
		return "source " + quoteFish(e.Prefix+"/etc/env.fish")
	case "tcsh":
		return "source " + quoteCsh(e.Prefix+"/etc/env.csh")
	case "nu":
		return "source " + quoteNu(e.Prefix+"/etc/env.nu")
	}
	return ". " + QuoteSh(e.Prefix+"/etc/env.sh")
}

func (s shellUnder) assign(name, value string) string {
	return strings.TrimSuffix(assign(s.kind, name, value), "\n")
}

// session runs lines in a shell, with the environment written to a file wherever
// a line says "dump", and returns what was written, without what shells set for
// themselves.
func (s shellUnder) session(t *testing.T, env []string, lines ...string) [][]string {
	t.Helper()
	dir := t.TempDir()
	n := 0
	text := s.setup
	for _, line := range lines {
		if line == "dump" {
			file := filepath.Join(dir, fmt.Sprintf("dump%d", n))
			line = "/usr/bin/env -0 > " + file
			if s.kind == "nu" {
				line = "^/usr/bin/env -0 | save -f " + file
			}
			n++
		}
		text += line + "\n"
	}
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(s.command[0], append(slices.Clone(s.command[1:]), script)...)
	cmd.Env = append([]string{"HOME=" + dir, "TERM=dumb"}, env...)
	out, err := cmd.CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Fatalf("%v: %s", err, out)
	}
	var dumps [][]string
	for i := range n {
		data, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("dump%d", i)))
		if err != nil {
			t.Fatal(err)
		}
		var vars []string
		for kv := range bytes.SplitSeq(bytes.TrimSuffix(data, []byte{0}), []byte{0}) {
			name, _, _ := strings.Cut(string(kv), "=")
			if slices.Contains([]string{"_", "SHLVL", "PWD", "OLDPWD", "FILE_PWD", "CURRENT_FILE", "NU_VERSION"}, name) {
				continue
			}
			vars = append(vars, string(kv))
		}
		slices.Sort(vars)
		dumps = append(dumps, vars)
	}
	return dumps
}

func sorted(env []string) []string { return slices.Sorted(slices.Values(env)) }

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	for _, kv := range got {
		if !slices.Contains(want, kv) {
			t.Errorf("%s: there is\n\t%q", what, kv)
		}
	}
	for _, kv := range want {
		if !slices.Contains(got, kv) {
			t.Errorf("%s: there is no\n\t%q", what, kv)
		}
	}
}

// starts are environments to begin with.
func starts(e *Environment) map[string][]string {
	rocm := e.Prefix + "/opt/rocm"
	return map[string][]string{
		"nothing": {"PATH=/usr/bin:/bin"},
		"own values": {"PATH=/usr/bin:/bin", "ROCM_PATH=/mine ä", "HIP_PLATFORM=", "CMAKE_PREFIX_PATH=/my own:/b", "LD_LIBRARY_PATH=",
			"PKG_CONFIG_PATH=/a", "HSA_OVERRIDE_GFX_VERSION=11.0.0"},
		"ours already": {"PATH=/usr/bin:" + e.Prefix + "/bin:/bin", "LD_LIBRARY_PATH=/l:" + rocm + "/lib:/m", "CMAKE_PREFIX_PATH=" + rocm,
			"ROCM_PATH=" + rocm, "PKG_CONFIG_PATH=" + rocm + "/share/pkgconfig"},
	}
}

// In every shell entering does what Enter does, twice is as good as once, and
// leaving gives back the environment that was there before, byte for byte.
func TestEnterTwiceAndLeave(t *testing.T) {
	e := sample(t, "a")
	for name, s := range underTest(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for start, env := range starts(e) {
				got := s.session(t, env, "dump", s.source(e), "dump", s.source(e), "dump", "rocm_nightly_leave", "dump")
				same(t, start+", entered", got[1], sorted(e.Enter(got[0])))
				same(t, start+", entered twice", got[2], got[1])
				same(t, start+", left", got[3], got[0])
			}
		})
	}
}

// What the user changes while an environment is entered is the user's.
func TestLeaveKeepsWhatWasAddedMeanwhile(t *testing.T) {
	e := sample(t, "a")
	rocm := e.Prefix + "/opt/rocm"
	for name, s := range underTest(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := s.session(t, []string{"PATH=/usr/bin:/bin", "LD_LIBRARY_PATH=/l"}, "dump", s.source(e),
				s.assign("PATH", "/first:"+e.Prefix+"/bin:/usr/bin:/bin:/last dir"), s.assign("HIP_PATH", "/changed"),
				s.assign("LD_LIBRARY_PATH", "/x*:/l:"+rocm+"/lib:/y"), s.assign("CMAKE_PREFIX_PATH", rocm+":/new"),
				"rocm_nightly_leave", "dump")
			want := slices.DeleteFunc(slices.Clone(got[0]), func(kv string) bool {
				return strings.HasPrefix(kv, "PATH=") || strings.HasPrefix(kv, "LD_LIBRARY_PATH=")
			})
			want = append(want, "PATH=/first:/usr/bin:/bin:/last dir", "HIP_PATH=/changed", "LD_LIBRARY_PATH=/x*:/l:/y", "CMAKE_PREFIX_PATH=/new")
			same(t, "left", got[1], want)
		})
	}
}

// Entering another prefix leaves the first, whichever shell entered that.
func TestEnteringAnotherLeavesTheFirst(t *testing.T) {
	a, b := sample(t, "a"), sample(t, "b")
	for name, s := range underTest(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := []string{"PATH=/usr/bin:/bin", "CMAKE_PREFIX_PATH=/mine"}
			got := s.session(t, env, "dump", s.source(a), s.source(b), "dump", "rocm_nightly_leave", "dump")
			same(t, "in the second", got[1], sorted(b.Enter(got[0])))
			same(t, "left", got[2], got[0])
			got = s.session(t, a.Enter(env), s.source(b), "dump")
			inner := slices.DeleteFunc(got[0], func(kv string) bool { return !slices.Contains(b.Enter(env), kv) })
			same(t, "entered elsewhere", inner, sorted(b.Enter(env)))
		})
	}
}

// What `env` and `env --leave` print does the same when it is evaluated.
func TestScriptsForEval(t *testing.T) {
	e := sample(t, "a")
	env := []string{"PATH=/usr/bin:/bin", "CMAKE_PREFIX_PATH=/mine", "HSA_OVERRIDE_GFX_VERSION="}
	for name, s := range underTest(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			enter, err := e.Script(s.kind, env)
			if err != nil {
				t.Fatal(err)
			}
			leave, err := LeaveScript(s.kind, e.Enter(env))
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			for name, text := range map[string]string{"enter": enter, "leave": leave} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			eval := map[string]string{"fish": "/bin/cat %s | source", "tcsh": "eval \"`/bin/cat %s`\"", "nu": "source %s"}[s.kind]
			if eval == "" {
				eval = `eval "$(/bin/cat %s)"`
			}
			got := s.session(t, env, "dump", fmt.Sprintf(eval, dir+"/enter"), "dump", fmt.Sprintf(eval, dir+"/leave"), "dump")
			same(t, "entered", got[1], sorted(e.Enter(got[0])))
			same(t, "left", got[2], got[0])
		})
	}
}

// Nothing but rocm_nightly_leave stays behind.
func TestNoHelperStays(t *testing.T) {
	e := sample(t, "a")
	list := map[string]string{"sh": "set", "bash": "set", "ksh": "set; typeset +f", "mksh": "set; typeset +f", "zsh": "set; print -l ${(k)functions}", "fish": "set; functions -a", "tcsh": "set; alias"}
	for name, s := range underTest(t) {
		if name == "zsh odd" || list[s.kind] == "" {
			continue
		}
		out := func(lines string) map[string]bool {
			cmd := exec.Command(s.command[0], append(slices.Clone(s.command[1:]), "-c", lines+"\n"+list[s.kind])...)
			cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=/"}
			text, err := cmd.Output()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			found := map[string]bool{}
			for line := range strings.Lines(string(text)) {
				if strings.HasPrefix(line, "_rocm_nightly") {
					found[line] = true
				}
			}
			return found
		}
		if left := out(s.source(e)); len(left) > 0 {
			t.Errorf("%s: %v", name, slices.Collect(maps.Keys(left)))
		}
	}
}
