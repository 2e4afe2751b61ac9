package wrap

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tramp is a Python program that sh is to start.
func tramp(python string) string {
	return "#!/bin/sh\n'''exec' " + python + " \"$0\" \"$@\"\n' '''\nprint(1)\n"
}

func TestTrampoline(t *testing.T) {
	for _, tt := range []struct{ name, in, want, reason string }{
		{"plain", tramp("/__w/b/venv/bin/python3.12"), tramp("python3"), ""},
		{"quoted, with arguments", tramp(`"/opt/python/cp312/bin/python3" -E -s`), tramp(`"python3" -E -s`), ""},
		{"of the host", tramp("/usr/bin/python3.11"), "", ""},
		{"odd quotes", tramp(`"/__w/b/python3'`), "", ""},
		{"no name", tramp("/__w/b/-x"), "", "no usable name"},
		{"further below", strings.Replace(tramp("/__w/p"), "\n", "\n\n", 1), "", ""},
		{"of another shell", strings.Replace(tramp("/__w/p"), "/sh", "/bash -e", 1), "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) { checkEdit(t, NewScripts(ScriptOptions{}), tt.in, tt.want, tt.reason) })
	}
	has := map[string]bool{"/n/python3": true, "/n/sh": true}
	o := ScriptOptions{Profile: Nix, InterpreterPath: []string{"/n"}, Lookup: func(abs string) bool { return has[abs] }}
	sh := strings.NewReplacer("#!/bin/sh", "#!/n/sh")
	t.Run("nix", func(t *testing.T) {
		checkEdit(t, NewScripts(o), tramp("/__w/b/python3.12"), sh.Replace(tramp("/n/python3")), "")
	})
	t.Run("nix without it", func(t *testing.T) {
		checkEdit(t, NewScripts(o), tramp("/__w/b/ruby"), sh.Replace(tramp("/__w/b/ruby")), "not in the interpreter path")
	})
}

// Such a program runs, and gets its arguments.
func TestTrampolineRuns(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3 here: Debian has it in the package python3-minimal")
	}
	text := tramp(`"/__w/`+strings.Repeat("x", 300)+`/python3.12" -E`) + "import sys\nprint(sys.argv[1:])\n"
	out, _, err := NewScripts(ScriptOptions{}).Edit("bin/x", 0o755, []byte(text))
	name := filepath.Join(t.TempDir(), "x y")
	if err := errors.Join(err, os.WriteFile(name, out, 0o755)); err != nil {
		t.Fatal(err)
	}
	if got, code := run(t, exec.Command("sh", name, "a b", "")); code != 0 || got != "1\n['a b', '']\n" {
		t.Errorf("%d %q\n%s", code, got, out)
	}
}
