package environ

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// moduleCommands are the programs behind `module`, by who made them. Debian has
// them in packages that exclude each other.
func moduleCommands(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for name, places := range map[string][]string{
		"environment-modules": {"/usr/lib/x86_64-linux-gnu/modulecmd.tcl", "/usr/share/Modules/libexec/modulecmd.tcl", "/usr/lib/aarch64-linux-gnu/modulecmd.tcl"},
		"lmod":                {"/usr/share/lmod/lmod/libexec/lmod", "/opt/lmod/usr/share/lmod/lmod/libexec/lmod"},
	} {
		for _, p := range places {
			if _, err := os.Stat(p); err == nil {
				found[name] = p
				break
			}
		}
		if found[name] == "" {
			t.Run(name, func(t *testing.T) { t.Skipf("no %s here: Debian has it in the package %s", name, name) })
		}
	}
	if len(found) == 0 {
		t.Skip("no module command here: Debian has environment-modules and lmod")
	}
	return found
}

// withoutModules leaves out what a module command keeps for itself.
func withoutModules(env []string) []string {
	return slices.DeleteFunc(env, func(kv string) bool {
		for _, own := range []string{"MODULE", "_LMFILES_", "LOADEDMODULES", "_ModuleTable", "LMOD", "__MODULES", "__LMOD", "LUA_", "MODULESHOME", "_ModuleTable_Sz_"} {
			if strings.HasPrefix(kv, own) {
				return true
			}
		}
		return false
	})
}

func TestModules(t *testing.T) {
	e := sample(t, "a")
	// The command itself reads marks of its own in the path of modules.
	plain := t.TempDir()
	if err := os.CopyFS(plain, os.DirFS(e.Prefix+"/etc/modulefiles")); err != nil {
		t.Fatal(err)
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here: Debian has it in the package bash")
	}
	b := sample(t, "b")
	for name, text := range b.Files("/bin/sh", "9") {
		if module, ok := strings.CutPrefix(name, "etc/modulefiles/"); ok {
			if err := os.WriteFile(plain+"/"+module, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, command := range moduleCommands(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shellUnder{"bash", []string{bash, "--norc"}, moduleSetup(command, plain)}
			for start, env := range starts(e) {
				got := s.session(t, append(slices.Clone(env), "LC_ALL=C.UTF-8"), "dump", "module load rocm-nightly/10.2.0a20260930", "dump", "module load rocm-nightly/10.2.0a20260930", "dump", "module unload rocm-nightly", "dump",
					"module load rocm-nightly/10.2.0a20260930", "dump", "export HIP_PATH=/changed PATH=/x:$PATH:/y", "module unload rocm-nightly", "dump")
				before, loaded := withoutModules(got[0]), withoutModules(got[1])
				want := wantModule(e, before)
				if start != "ours already" { // their entry is where it was
					same(t, start+", loaded", withoutOwn(loaded), want)
				}
				same(t, start+", loaded twice", withoutModules(got[2]), loaded)
				if start == "own values" { // they unset a search path that is empty
					before = slices.DeleteFunc(before, func(kv string) bool { return kv == "LD_LIBRARY_PATH=" })
				}
				same(t, start+", unloaded", withoutModules(got[3]), before)
				same(t, start+", loaded by version", withoutModules(got[4]), loaded)
				path, _ := vars(before).get("PATH")
				changed := slices.DeleteFunc(slices.Clone(before), func(kv string) bool {
					return strings.HasPrefix(kv, "PATH=") || strings.HasPrefix(kv, "HIP_PATH=")
				})
				same(t, start+", unloaded after changes", withoutModules(got[5]), append(changed, "HIP_PATH=/changed", "PATH=/x:"+path+":/y"))
			}
			// A second one takes the place of the first, or is refused: never both.
			two := s.session(t, []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"}, "module load rocm-nightly/10.2.0a20260930; module load rocm-nightly/9 >/dev/null 2>&1 || true", "dump")
			if value, _ := vars(two[0]).get("ROCM_PATH"); value != e.Prefix+"/opt/rocm" && value != b.Prefix+"/opt/rocm" {
				t.Errorf("ROCM_PATH is %q", value)
			}
			if value, _ := vars(two[0]).get("PATH"); strings.Count(value, "@helper@") != 1 {
				t.Errorf("PATH is %q", value)
			}
			avail, err := exec.Command(bash, "--norc", "-c", s.setup+command+" bash -t avail 2>&1").CombinedOutput()
			if n := strings.Count(string(avail), "rocm-nightly/10.2.0a20260930"); err != nil || n != 1 {
				t.Errorf("it is there %d times, %v: %s", n, err, avail)
			}
		})
	}
}

func moduleSetup(command, modules string) string {
	return "module() { eval \"$(" + command + " bash \"$@\")\"; }\nmodule use " + modules + "\n"
}

// Each file alone does the same in Lmod, but for names that it does not quote
// itself when it translates from Tcl.
func TestLmodReadsTheTclFileToo(t *testing.T) {
	command := moduleCommands(t)["lmod"]
	bash, err := exec.LookPath("bash")
	if err != nil || command == "" {
		t.Skip("no bash or lmod here: Debian has them in packages of these names")
	}
	e := sample(t, "a").At("/srv/my rocm")
	e.Set = slices.DeleteFunc(e.Set, func(v Variable) bool { return v.Name == "ODD" })
	plain := t.TempDir()
	if err := os.Mkdir(plain+"/rocm-nightly", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(plain+"/rocm-nightly/1", []byte(e.Tcl()), 0o644); err != nil {
		t.Fatal(err)
	}
	s := shellUnder{"bash", []string{bash, "--norc"}, moduleSetup(command, plain)}
	for start, env := range starts(e) {
		got := s.session(t, append(slices.Clone(env), "LC_ALL=C.UTF-8"), "dump", "module load rocm-nightly", "dump", "module unload rocm-nightly", "dump")
		before := withoutModules(got[0])
		if start != "ours already" {
			same(t, start+", loaded", withoutOwn(withoutModules(got[1])), wantModule(e, before))
		}
		if start == "own values" {
			before = slices.DeleteFunc(before, func(kv string) bool { return kv == "LD_LIBRARY_PATH=" })
		}
		same(t, start+", unloaded", withoutModules(got[2]), before)
	}
}

// wantModule is Enter without its record.
func wantModule(e *Environment, env []string) []string {
	want := withoutRecord(e.Enter(env))
	var own []string
	for _, kv := range want {
		if strings.HasPrefix(kv, "ROCM_NIGHTLY_MODULE=") {
			own = append(own, kv)
		}
	}
	return slices.DeleteFunc(want, func(kv string) bool { return slices.Contains(own, kv) })
}

func withoutRecord(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		return strings.HasPrefix(kv, Name+"=") || strings.HasPrefix(kv, UndoName+"=")
	})
}

func withoutOwn(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return strings.HasPrefix(kv, OwnName+"=") })
}
