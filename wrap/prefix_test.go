package wrap

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// probe is a program of the tree that tells what it was called with.
const probe = `#!/bin/sh
printf 'args:%s\n' "$#"
for a; do printf '<%s>\n' "$a"; done
printf 'self=%s\nrocm=%s\nhip=%s\nllvm=%s\ncache=%s\ncwd=%s\n' \
	"$0" "${ROCM_PATH-unset}" "${HIP_PATH-unset}" "${LLVM_PATH-unset}" "${AMD_COMGR_CACHE_DIR-unset}" "$(pwd -P)"
while IFS= read -r line; do printf 'in:%s\n' "$line"; done
exit 37
`

// oddName is a program's name that every careless quoting trips over.
const oddName = `o'd "d$(x)` + "`y`" + `&\;*`

// newPrefix writes a small tree below a new directory and returns the directory,
// free of links, with the tree's manifest.
func newPrefix(t testing.TB, name string) (string, []manifest.File) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	prefix := filepath.Join(base, name)
	files := []manifest.File{
		{Path: "opt", Kind: manifest.Dir, MTime: 5}, {Path: "opt/rocm", Kind: manifest.Dir, MTime: 6},
		file("bin/probe", 0o755), file("bin/"+oddName, 0o755), file("bin/notes.txt", 0o644), file("bin/data", 0o755),
		exe("bin/rocminfo", ""), lib("bin/plugin.so", ""), file("bin/MIOpen/CTest.cmake", 0o644),
		sym("bin/again", "probe"), sym("bin/amdclang", "../lib/llvm/bin/clang-22"), sym("bin/dead", "nothing"),
		file("libexec/smi/probe", 0o755), sym("bin/smi", "../libexec/smi/probe"),
		exe("lib/llvm/bin/clang-22", ""), sym("lib/llvm/bin/clang++", "clang-22"), file("lib/llvm/amdgcn/bitcode/ocml.bc", 0o644),
		lib("lib/opencl/libamdocl64.so", ""), file("lib/pkgconfig/hip.pc", 0o644), file("include/hip.h", 0o644),
		sym("lib64", "lib"), file(".info/version", 0o644), file(".kpack/blas_lib_gfx1151.kpack", 0o644),
		file("share/doc/hip/LICENSE.txt", 0o644), file("share/doc/hip/README", 0o644), file("share/licenses/rocm/terms", 0o644), file("LICENSE", 0o644),
		file("share/man/man1/x.1", 0o644), file("etc/tree.conf", 0o644), file("etc/profile.d/tree.sh", 0o644),
	}
	for i := range files {
		f := &files[i]
		if i >= 2 {
			f.Path = "opt/rocm/" + f.Path
			f.MTime = int64(1_700_000_000 + i)
		}
		writeEntry(t, prefix, *f)
	}
	return prefix, files
}

func file(name string, mode manifest.Mode) manifest.File {
	return manifest.File{Path: name, Kind: manifest.Regular, Mode: mode}
}

func writeEntry(t testing.TB, prefix string, f manifest.File) {
	t.Helper()
	p := filepath.Join(prefix, f.Path)
	content := "\x7fELF"
	if f.ELF == nil {
		if content = "data\n"; filepath.Base(f.Path) == "probe" || filepath.Base(f.Path) == oddName {
			content = probe
		}
	}
	var err error
	switch f.Kind {
	case manifest.Dir:
		err = os.MkdirAll(p, 0o755)
	case manifest.Symlink:
		err = errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.Symlink(f.Link, p))
	default:
		err = errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(content), fs.FileMode(f.Mode)))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// finish runs Finish on a prefix, or fails the test.
func finish(t testing.TB, prefix string, files []manifest.File, o Options) []manifest.File {
	t.Helper()
	root, err := os.OpenRoot(prefix)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if o.FinalPrefix == "" {
		o.FinalPrefix = prefix
	}
	made, err := Finish(context.Background(), root, files, o)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// shells are the POSIX shells of this machine that can run a wrapper.
func shells(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for name, args := range map[string][]string{
		"dash": nil, "bash": nil, "busybox": {"sh"}, "zsh": {"--emulate", "sh"}, "ksh": nil, "ksh93": nil, "mksh": nil,
	} {
		if p, err := exec.LookPath(name); err == nil {
			found[name] = append([]string{p}, args...)
		}
	}
	if len(found) == 0 {
		t.Skip("no shell here: Debian has dash, bash and busybox in packages of these names")
	}
	return found
}

// run starts a command and returns what it printed and its exit status.
func run(t *testing.T, cmd *exec.Cmd) (string, int) {
	t.Helper()
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if errs.Len() > 0 {
		t.Logf("stderr: %s", errs.String())
	}
	return string(out) + errs.String(), cmd.ProcessState.ExitCode()
}
