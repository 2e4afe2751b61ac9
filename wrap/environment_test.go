package wrap

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// hostile is a final prefix that careless quoting trips over, and careless
// filling in of templates: it holds their marks.
const hostile = `/opt/my r'o"c$m!` + "`x`" + `\&;*(a)#[b]/NAME/@name@@dir@/@rocm@/@shell@@cache@@key@`

// sourced are the variables that an environment file sets.
const sourced = "ROCM_PATH HIP_PATH HIP_PLATFORM HIPCXX HIP_DEVICE_LIB_PATH PATH CMAKE_PREFIX_PATH PKG_CONFIG_PATH LD_LIBRARY_PATH"

// environmentPrefix is a finished prefix with a hostile final prefix.
func environmentPrefix(t *testing.T) string {
	t.Helper()
	prefix, files := newPrefix(t, "p")
	finish(t, prefix, files, Options{Version: "10.2.0a20260930", Target: "gfx1151", FinalPrefix: hostile})
	return prefix
}

// sourceTwice runs a script with a shell and the environment given, and returns
// the lines that `env` printed after the first and after the second sourcing.
func sourceTwice(t *testing.T, shell []string, script string, env ...string) (first, second map[string]string) {
	t.Helper()
	cmd := exec.Command(shell[0], append(shell[1:], "-c", script)...)
	cmd.Env = append([]string{"PATH=/usr/bin:/bin", "HOME=" + t.TempDir()}, env...)
	out, code := run(t, cmd)
	if code != 0 {
		t.Fatalf("exit status %d: %s", code, out)
	}
	one, two, ok := strings.Cut(out, "=====\n")
	if !ok {
		t.Fatalf("no mark in %s", out)
	}
	return envLines(one), envLines(two)
}

func envLines(text string) map[string]string {
	vars := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if strings.Contains(" "+sourced+" ", " "+name+" ") {
			vars[name] = value
		}
	}
	return vars
}

// wantEnvironment is what every shell should end with: own names variables that
// the user had set.
func wantEnvironment(own map[string]string) map[string]string {
	rocm := hostile + "/opt/rocm"
	want := map[string]string{
		"ROCM_PATH": rocm, "HIP_PATH": rocm, "HIP_PLATFORM": "amd", "HIPCXX": rocm + "/lib/llvm/bin/clang++",
		"HIP_DEVICE_LIB_PATH": rocm + "/lib/llvm/amdgcn/bitcode", "PATH": hostile + "/bin:/usr/bin:/bin",
		"CMAKE_PREFIX_PATH": rocm, "PKG_CONFIG_PATH": rocm + "/lib/pkgconfig", "LD_LIBRARY_PATH": rocm + "/lib",
	}
	for name, value := range own {
		want[name] = value
	}
	return want
}

func compareEnvironment(t *testing.T, when string, got, want map[string]string) {
	t.Helper()
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s: %s is %q, want %q", when, name, got[name], want[name])
		}
	}
}

// checkSourcing sources a file twice with and without values of the user's own.
func checkSourcing(t *testing.T, shell []string, script string) {
	t.Helper()
	first, second := sourceTwice(t, shell, script)
	compareEnvironment(t, "once", first, wantEnvironment(nil))
	compareEnvironment(t, "twice", second, wantEnvironment(nil))
	first, second = sourceTwice(t, shell, script, "ROCM_PATH=/mine", "CMAKE_PREFIX_PATH=/my own:/b", "LD_LIBRARY_PATH=/l")
	want := wantEnvironment(map[string]string{
		"ROCM_PATH": "/mine", "CMAKE_PREFIX_PATH": "/my own:/b:" + hostile + "/opt/rocm", "LD_LIBRARY_PATH": "/l:" + hostile + "/opt/rocm/lib",
	})
	compareEnvironment(t, "once, with own values", first, want)
	compareEnvironment(t, "twice, with own values", second, want)
}

func TestEnvSh(t *testing.T) {
	prefix := environmentPrefix(t)
	script := "set -eu; . " + prefix + "/etc/env.sh; env; echo '====='; . " + prefix + "/etc/env.sh; env"
	for name, shell := range shells(t) {
		t.Run(name, func(t *testing.T) { checkSourcing(t, shell, script) })
	}
	if zsh, err := exec.LookPath("zsh"); err == nil {
		t.Run("zsh itself", func(t *testing.T) { checkSourcing(t, []string{zsh, "-f"}, script) })
	}
}

func TestEnvOfOtherShells(t *testing.T) {
	prefix := environmentPrefix(t)
	for shell, file := range map[string]string{"tcsh": "env.csh", "fish": "env.fish"} {
		t.Run(shell, func(t *testing.T) {
			p, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("no %s here: Debian has it in the package %s", shell, shell)
			}
			args := []string{p, "-f"}
			if shell == "fish" {
				args = []string{p, "--no-config"}
			}
			source := "source " + prefix + "/etc/" + file
			checkSourcing(t, args, source+"; env; echo '====='; "+source+"; env")
		})
	}
}

func TestProfile(t *testing.T) {
	prefix := environmentPrefix(t)
	source := ". " + prefix + "/etc/profile.d/rocm-nightly.sh; env"
	for name, shell := range shells(t) {
		t.Run(name, func(t *testing.T) {
			first, second := sourceTwice(t, shell, "set -eu; "+source+"; echo '====='; "+source)
			want := map[string]string{"PATH": "/usr/bin:/bin:" + hostile + "/bin", "ROCM_PATH": hostile + "/opt/rocm", "LD_LIBRARY_PATH": ""}
			compareEnvironment(t, "once", first, want)
			compareEnvironment(t, "twice", second, want)
		})
	}
}

func TestSetupHook(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here: Debian has it in the package bash")
	}
	prefix := environmentPrefix(t)
	source := "source " + prefix + "/nix-support/setup-hook; env"
	// What stdenv defines before it sources a hook.
	stdenv := `addToSearchPathWithCustomDelimiter() { if [[ -d "$3" || $3 == /opt/* ]]; then export "${2}=${!2:+${!2}$1}$3"; fi; }
addToSearchPath() { addToSearchPathWithCustomDelimiter ":" "$@"; }
`
	for name, before := range map[string]string{"plain": "", "stdenv": stdenv} {
		t.Run(name, func(t *testing.T) {
			script := "set -eu -o pipefail\n" + before + source + "; echo '====='; " + source
			first, second := sourceTwice(t, []string{bash}, script, "CMAKE_PREFIX_PATH=/a", "ROCM_PATH=/other")
			want := map[string]string{"ROCM_PATH": hostile + "/opt/rocm", "HIP_PATH": hostile + "/opt/rocm", "CMAKE_PREFIX_PATH": "/a:" + hostile + "/opt/rocm"}
			compareEnvironment(t, "once", first, want)
			compareEnvironment(t, "twice", second, want)
		})
	}
}

func TestRegisteredFiles(t *testing.T) {
	prefix, files := newPrefix(t, "p")
	finish(t, prefix, files, Options{FinalPrefix: "/final/", Version: "1", Target: "gfx1151"})
	for name, want := range map[string]string{
		"ld.so.conf.d/rocm-nightly.conf":  "/final/opt/rocm/lib\n",
		"OpenCL/vendors/rocm-nightly.icd": "/final/opt/rocm/lib/opencl/libamdocl64.so\n",
	} {
		if got, err := os.ReadFile(filepath.Join(prefix, "etc", name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got := ldConf("/a b"); !strings.HasPrefix(got, "#") {
		t.Errorf("a path with a space is written to ld.so.conf: %q", got)
	}
	lua, err := os.ReadFile(filepath.Join(prefix, "etc/modulefiles/rocm-nightly.lua"))
	if err != nil || !strings.Contains(string(lua), "prepend_path(\"PATH\", \"/final/bin\")\n") {
		t.Errorf("%s, %v", lua, err)
	}
	nu, err := os.ReadFile(filepath.Join(prefix, "etc/env.nu"))
	if err != nil || !strings.Contains(string(nu), "$env.ROCM_PATH = ($env.ROCM_PATH? | default \"/final/opt/rocm\")\n") {
		t.Errorf("%s, %v", nu, err)
	}
}

func TestQuotes(t *testing.T) {
	const s = "a'b\"c\\d!e\x01"
	for name, got := range map[string][2]string{
		"sh":   {quoteSh(s), `'a'\''b"c\d!e` + "\x01'"},
		"fish": {quoteFish(s), `'a\'b"c\\d!e` + "\x01'"},
		"csh":  {quoteCsh(s), `'a'\''b"c\d\!e` + "\x01'"},
		"lua":  {quoteLua(s), `"a'b\"c\\d!e\001"`},
		"nu":   {quoteNu(s), `"a'b\"c\\d!e\u{1}"`},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %s, want %s", name, got[0], got[1])
		}
	}
}
