package wrap

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/environ"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
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
	// Where the prefix is what it says, the driver is there.
	here, files := newPrefix(t, "here")
	finish(t, here, files, Options{})
	if icd, err := os.ReadFile(filepath.Join(here, "etc/OpenCL/vendors/rocm-nightly.icd")); err != nil {
		t.Error(err)
	} else if _, err := os.Stat(strings.TrimSuffix(string(icd), "\n")); err != nil {
		t.Error(err)
	}
	if got := ldConf("/a b"); !strings.HasPrefix(got, "#") {
		t.Errorf("a path with a space is written to ld.so.conf: %q", got)
	}
	for name, want := range map[string]string{
		"modulefiles/rocm-nightly/1":     "_rocm_nightly_list prepend-path PATH \"/final/bin\"\n",
		"modulefiles/rocm-nightly/1.lua": "list(prepend_path, \"PATH\", \"/final/bin\")\n",
		"env.nu":                         "  [\"ROCM_PATH\" \"/final/opt/rocm\"]\n",
		"env.csh":                        "'/final/etc/env-csh.sh'\n",
		"env.json":                       "\"cache\": \"1\",\n",
	} {
		if got, err := os.ReadFile(filepath.Join(prefix, "etc", name)); err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	env, err := environ.Read(prefix)
	if err != nil || env.Prefix != "/final" {
		t.Errorf("%v, %v", env, err)
	}
}

// What an install asks for is in every file that sets variables, under the name
// that it was given, and in place of ours; the user's value wins in each.
func TestOwnVariables(t *testing.T) {
	prefix, files := newPrefix(t, "p")
	finish(t, prefix, files, Options{Version: "1", FinalPrefix: hostile, Env: map[string]string{
		"HSA_OVERRIDE_GFX_VERSION": "9.0.6", "HIP_PLATFORM": "", "HIPCXX": "it's $mine", "HSA_ENABLE_SDMA": "0",
	}})
	want := map[string]string{"HSA_OVERRIDE_GFX_VERSION": "9.0.6", "HIP_PLATFORM": "", "HIPCXX": "it's $mine", "HSA_ENABLE_SDMA": "1", "ROCM_PATH": hostile + "/opt/rocm"}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here: Debian has it in the package bash")
	}
	for _, name := range []string{"etc/env.sh", "etc/profile.d/rocm-nightly.sh", "nix-support/setup-hook"} {
		script := "set -eu\n. " + prefix + "/" + name + "\n"
		for name := range want {
			script += "printf '" + name + "=%s\\n' \"${" + name + "-}\"\n"
		}
		cmd := exec.Command(bash, "-c", script)
		cmd.Env = []string{"PATH=/usr/bin:/bin", "HSA_ENABLE_SDMA=1"}
		out, code := run(t, cmd)
		for name, value := range want {
			if !strings.Contains(out, name+"="+value+"\n") {
				t.Errorf("%d: %s is not %q: %s", code, name, value, out)
			}
		}
	}
	for _, name := range []string{"etc/env.fish", "etc/env.nu", "etc/env-csh.sh", "etc/env.json", "etc/modulefiles/rocm-nightly/1", "etc/modulefiles/rocm-nightly/1.lua"} {
		if text, err := os.ReadFile(filepath.Join(prefix, name)); err != nil || !strings.Contains(string(text), "9.0.6") || strings.Contains(string(text), "HIP_PLATFORM") {
			t.Errorf("%s: %v, %s", name, err, text)
		}
	}
}

// ldconfig itself finds the libraries through our file.
func TestLdconfigReadsOurFile(t *testing.T) {
	ldconfig, err := exec.LookPath("/sbin/ldconfig")
	if err != nil {
		t.Skip("no ldconfig here: Debian has it in the package libc-bin")
	}
	dir := t.TempDir()
	rocm := filepath.Join(dir, "rocm")
	if err := errors.Join(os.MkdirAll(rocm+"/lib", 0o755), os.WriteFile(dir+"/conf", []byte(ldConf(rocm)), 0o644)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(ldconfig, "-v", "-N", "-X", "-C", dir+"/cache", "-f", dir+"/conf")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), rocm+"/lib: (from") {
		t.Errorf("%v: %s", err, out)
	}
}

// Of a bare tree the same files name the tree itself.
func TestSystemFiles(t *testing.T) {
	tree := []manifest.File{dir("lib"), exe("bin/rocminfo", ""), lib("lib/libamdocl64.so", "")}
	got, err := SystemFiles(tree, Options{FinalPrefix: "/opt/rocm/", Version: "1", Env: map[string]string{"HSA_ENABLE_SDMA": "0"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"ld.so.conf.d/rocm-nightly.conf":  "/opt/rocm/lib\n",
		"OpenCL/vendors/rocm-nightly.icd": "/opt/rocm/lib/libamdocl64.so\n",
		"profile.d/rocm-nightly.sh":       "export PATH=\"${PATH:+$PATH:}\"'/opt/rocm/bin' ;;",
	} {
		if !strings.Contains(got[name], want) {
			t.Errorf("%s: %s", name, got[name])
		}
	}
	if len(got) != 3 || !strings.Contains(got["profile.d/rocm-nightly.sh"], "HSA_ENABLE_SDMA='0'") {
		t.Errorf("%q", got)
	}
	if _, err := SystemFiles(tree, Options{FinalPrefix: "opt"}); err == nil {
		t.Error("a relative prefix is taken")
	}
}
