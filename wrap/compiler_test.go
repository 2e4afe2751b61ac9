package wrap

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// amdConfig is AMD's rocm.cfg since August 2026, which ends without a newline.
const amdConfig = "$-Wl,--enable-new-dtags\n--rocm-path='<CFGDIR>/../../..'\n-frtlib-add-rpath"

// compilerTree writes a tree with a compiler in it and returns its directory and
// manifest. texts are the configuration files of lib/llvm/bin; clang is what the
// compiler's bytes hold.
func compilerTree(t testing.TB, texts map[string]string, clang string, more ...manifest.File) (string, []manifest.File) {
	t.Helper()
	dir := t.TempDir()
	files := append([]manifest.File{
		exe("lib/llvm/bin/clang", ""), lib("lib/libamdhip64.so.7", ""), lib("lib/llvm/lib/libomp.so", ""),
		lib("lib/llvm/lib/x86_64-unknown-linux-gnu/libc++.so.1", ""), file("lib/llvm/lib/clang/22/include/stddef.h", 0o444),
		file("lib/llvm/lib/clang/22/lib/x86_64-unknown-linux-gnu/libclang_rt.builtins.a", 0o444),
	}, more...)
	for name := range texts {
		files = append(files, file("lib/llvm/bin/"+name, 0o444))
	}
	for _, f := range files {
		writeEntry(t, dir, f)
	}
	for name, text := range texts {
		overwrite(t, filepath.Join(dir, "lib/llvm/bin", name), text)
	}
	overwrite(t, filepath.Join(dir, "lib/llvm/bin/clang"), clang)
	return dir, files
}

func overwrite(t testing.TB, name, text string) {
	t.Helper()
	if err := os.Chmod(name, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// compilerPlan is what CompilerPaths plans, applied when write is set.
func compilerPlan(t testing.TB, dir string, files []manifest.File, place string, write bool) (texts map[string]string, left []FileLeft) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	edits, left, err := CompilerPaths(root, "", files, place)
	if err != nil {
		t.Fatal(err)
	}
	texts = map[string]string{}
	for _, e := range edits {
		texts[filepath.Base(e.Path)] = string(e.Data)
		if write {
			overwrite(t, filepath.Join(dir, e.Path), string(e.Data))
		}
	}
	return texts, left
}

func TestCompilerPaths(t *testing.T) {
	aliases := map[string]string{"rocm.cfg": amdConfig, "clang.cfg": "@rocm.cfg", "clang++.cfg": "@rocm.cfg", "clang-22.cfg": "@rocm.cfg", "flang.cfg": "@rocm.cfg", "clang-cl.cfg": "@rocm.cfg"}
	const want = "$-Wl,--enable-new-dtags\n--rocm-path='<CFGDIR>/../../..'\n# rocm-nightly, instead of: -frtlib-add-rpath\n" +
		"$-Wl,-rpath,/opt/rocm/lib\n$-Wl,-rpath,/opt/rocm/lib/llvm/lib/x86_64-unknown-linux-gnu\n"
	sanitizers := lib("lib/llvm/lib/clang/22/lib/linux/libclang_rt.asan-x86_64.so", "")
	const noOpenMP = "# rocm-nightly, added:\n-fno-openmp-implicit-rpath\n# rocm-nightly: end\n@rocm.cfg"
	for _, tt := range []struct {
		name, clang string
		texts, want map[string]string
	}{
		{"as AMD's is", "-frtlib-add-rpath\x00", aliases, map[string]string{"rocm.cfg": want + "# rocm-nightly: end"}},
		{"a clang with its own path for OpenMP", "x-fno-openmp-implicit-rpath\x00", aliases, map[string]string{
			"rocm.cfg":  want + "$-Wl,-rpath,/opt/rocm/lib/llvm/lib\n$-Wl,-rpath,/opt/rocm/lib/llvm/lib/clang/22/lib/linux\n# rocm-nightly: end",
			"clang.cfg": noOpenMP, "clang++.cfg": noOpenMP, "clang-22.cfg": noOpenMP}},
		{"a name that only begins so", "fno-openmp-implicit-rpath-x\x00", aliases, map[string]string{"rocm.cfg": want + "# rocm-nightly: end"}},
		{"no run path asked for", "", map[string]string{"rocm.cfg": "--rocm-path='<CFGDIR>/../../..'\n"}, nil},
		{"in a comment", "", map[string]string{"rocm.cfg": "# -frtlib-add-rpath\n"}, nil},
		{"none at all", "fno-openmp-implicit-rpath\x00", map[string]string{"clang.cfg": "-O2\n"}, nil},
		{"in the style of the file", "", map[string]string{"rocm.cfg": "-Wl,--enable-new-dtags\n -frtlib-add-rpath \r\n-O2\n"}, map[string]string{
			"rocm.cfg": "-Wl,--enable-new-dtags\n# rocm-nightly, instead of:  -frtlib-add-rpath \n-Wl,-rpath,/opt/rocm/lib\n-Wl,-rpath,/opt/rocm/lib/llvm/lib/x86_64-unknown-linux-gnu\n# rocm-nightly: end\r\n-O2\n"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, files := compilerTree(t, tt.texts, tt.clang, sanitizers)
			got, left := compilerPlan(t, dir, files, "/opt/rocm", false)
			if len(left) != 0 || len(got) != len(tt.want) {
				t.Errorf("edits %q, left %v", got, left)
			}
			for name, text := range tt.want {
				if got[name] != text {
					t.Errorf("%s:\n%s\nnot\n%s", name, got[name], text)
				}
			}
		})
	}
}

// What the rule is not certain of stays as it is, and is named.
func TestCompilerPathsLeft(t *testing.T) {
	twin := file("lib/llvm/bin/other.cfg", 0o444)
	twin.Same = "lib/llvm/bin/rocm.cfg"
	for name, tt := range map[string]struct {
		text, place, reason string
		more                []manifest.File
	}{
		"beside another option": {"-O2 -frtlib-add-rpath\n", "/p", "not known", nil},
		"twice":                 {"-frtlib-add-rpath\n-frtlib-add-rpath\n", "/p", "not known", nil},
		"the other way":         {"-fno-rtlib-add-rpath\n# -frtlib-add-rpath\n-Xclang -frtlib-add-rpath\n", "/p", "not known", nil},
		"a continued line":      {"-O2 \\\n-frtlib-add-rpath\n", "/p", "continued", nil},
		"colon":                 {amdConfig, "/a:b", "colon", nil},
		"loader's name":         {amdConfig, "/a/$ORIGIN", "loader", nil},
		"loader's name, braced": {amdConfig, "/a/${LIB}", "loader", nil},
		"compiler's name":       {amdConfig, "/a/<CFGDIR>", "CFGDIR", nil},
		"hard links":            {amdConfig, "/p", "several names", []manifest.File{twin}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, files := compilerTree(t, map[string]string{"rocm.cfg": tt.text}, "", tt.more...)
			edits, left := compilerPlan(t, dir, files, tt.place, false)
			if len(edits) != 0 || len(left) != 1 || !strings.Contains(left[0].Reason, tt.reason) {
				t.Errorf("edits %q, left %v", edits, left)
			}
		})
	}
}

// Whatever the file and the places, the second place leaves no trace of the
// first, the same place changes nothing, and what came can be had again.
func TestCompilerPathsAgain(t *testing.T) {
	line := rapid.SampledFrom([]string{"-frtlib-add-rpath", "$-Wl,--enable-new-dtags", "--rocm-path='<CFGDIR>/../../..'", "", "# rocm-nightly: end", "# rocm-nightly, added:", "-O2 \\", " -g\t", "# rocm-nightly, instead of: -x"})
	place := rapid.StringMatching(`/[a-z$ ',"\\#@-]{1,12}`)
	dir, files := compilerTree(t, map[string]string{"rocm.cfg": "", "clang.cfg": ""}, "fno-openmp-implicit-rpath\x00")
	rapid.Check(t, func(rt *rapid.T) {
		texts := map[string]string{}
		for _, name := range []string{"rocm.cfg", "clang.cfg"} {
			texts[name] = strings.Join(rapid.SliceOfN(line, 0, 6).Draw(rt, name), rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(rt, "end"))
		}
		one, two := place.Draw(rt, "one"), place.Draw(rt, "two")
		result := func(places ...string) map[string]string {
			now := map[string]string{}
			for name, text := range texts {
				overwrite(t, filepath.Join(dir, "lib/llvm/bin", name), text)
				now[name] = text
			}
			for _, p := range places {
				edits, _ := compilerPlan(t, dir, files, p, true)
				for name, text := range edits {
					now[name] = text
				}
			}
			return now
		}
		direct, after, twice := result(two), result(one, two), result(two, two)
		for name, text := range texts {
			if direct[name] != after[name] || direct[name] != twice[name] {
				rt.Fatalf("%s: %q is\n%q\n%q by way of %s\n%q", name, text, direct[name], after[name], one, twice[name])
			}
			if plain := plainConfig(text); plainConfig(direct[name]) != plain && !strings.Contains(text, "rocm-nightly") {
				rt.Fatalf("%s: %q came back as %q", name, text, plainConfig(direct[name]))
			}
		}
	})
}

// Real compilers read the final prefix as it was meant.
func TestCompilersReadTheConfiguration(t *testing.T) {
	if _, err := exec.LookPath("readelf"); err != nil {
		t.Skip("no readelf here: Debian has it in the package binutils")
	}
	tested := false
	for name, config := range map[string]string{"clang-16": "-frtlib-add-rpath\n-Wl,--enable-new-dtags\n", "clang-22": amdConfig} {
		clang, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		tested = true
		t.Run(name, func(t *testing.T) {
			for _, place := range []string{"/opt/rocm", "/a b'c\"d\\e", "/comma,and blank\t#", "/p$ORI$x@y", "/größer"} {
				dir, files := compilerTree(t, map[string]string{"rocm.cfg": config}, "")
				compilerPlan(t, dir, files, place, true)
				src, out := filepath.Join(dir, "m.c"), filepath.Join(dir, "m")
				overwriteNew(t, src, "int main(void) { return 0; }\n")
				args := []string{"--config=" + filepath.Join(dir, "lib/llvm/bin/rocm.cfg"), src, "-o", out, "-Wl,-rpath,/mine"}
				if text, err := exec.Command(clang, args...).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, text)
				}
				text, err := exec.Command("readelf", "-dW", out).Output()
				lib := place + "/lib:" + place + "/lib/llvm/lib/x86_64-unknown-linux-gnu"
				if err != nil || !bytes.Contains(text, []byte("["+lib+":/mine]")) && !bytes.Contains(text, []byte("[/mine:"+lib+"]")) {
					t.Errorf("%s: no %s in\n%s", place, lib, text)
				}
			}
		})
	}
	if !tested {
		t.Skip("no clang here: Debian has it in the packages clang-16 and clang-22")
	}
}

func overwriteNew(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestPerPrefix(t *testing.T) {
	for p, want := range map[string]bool{
		"lib/llvm/bin/rocm.cfg": true, "lib/llvm/bin/clang++.cfg": true, "llvm/bin/rocm.cfg": true,
		"lib/llvm/bin/clang": false, "lib/rocm.cfg": false, "bin/rocminfo": false, "lib/llvm/bin/x/rocm.cfg": false,
	} {
		if PerPrefix(p) != want {
			t.Errorf("PerPrefix(%s) is %v", p, !want)
		}
	}
}

// The place that stands in the configuration is no leak, wherever it is.
func TestCompilerPathIsNoLeak(t *testing.T) {
	for _, place := range []string{"/opt/rocm", "/__w/build/stage/lib"} {
		dir, files := compilerTree(t, map[string]string{"rocm.cfg": amdConfig}, "")
		texts, _ := compilerPlan(t, dir, files, place, false)
		s := NewScripts(ScriptOptions{})
		out, rules, err := s.Edit("lib/llvm/bin/rocm.cfg", 0o444, []byte(texts["rocm.cfg"]))
		if err != nil || string(out) != texts["rocm.cfg"] || len(rules) != 0 {
			t.Errorf("%s: %v, %v:\n%s", place, rules, err, out)
		}
	}
	data := "-I/opt/rocm/include\n# rocm-nightly, added:\n-L/opt/rocm/lib\n# rocm-nightly: end\n-L/opt/rocm/lib\n# rocm-nightly, added:\n-L/opt/rocm/lib\n"
	out, _, err := NewScripts(ScriptOptions{}).Edit("lib/llvm/bin/x.cfg", 0o444, []byte(data))
	if err != nil || strings.Count(string(out), "<CFGDIR>") != 3 {
		t.Errorf("%v:\n%s", err, out)
	}
	if i := slices.Index(strings.Split(string(out), "\n"), "-L/opt/rocm/lib"); i != 2 {
		t.Errorf("line %d", i)
	}
}

// Marks within marks could mean either line: such a file stays as it is.
func TestMarksThatDoNotBelongTogether(t *testing.T) {
	for _, text := range []string{
		"# rocm-nightly, instead of: -x\n# rocm-nightly, instead of: -frtlib-add-rpath\n# rocm-nightly: end\n# rocm-nightly: end\n",
		"-frtlib-add-rpath\n# rocm-nightly, added:\n",
	} {
		dir, files := compilerTree(t, map[string]string{"rocm.cfg": text}, "")
		edits, left := compilerPlan(t, dir, files, "/opt/rocm", true)
		if len(edits) != 0 || len(left) != 1 || left[0].Path != "lib/llvm/bin/rocm.cfg" {
			t.Errorf("%q: edited %q, left %+v", text, edits, left)
		}
	}
}
