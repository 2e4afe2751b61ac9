package demo

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// sources are the programs of a night. They need a C library and nothing else.
//
//go:embed src/*.c
var sources embed.FS

// addPrograms adds the programs, compiled if that can be, else taken from this
// machine. work is an empty directory.
func (n *night) addPrograms(ctx context.Context, work, compiler string) error {
	if compiler == "none" {
		return n.addHostProgram(ctx)
	}
	found, err := findCompiler(compiler)
	if err == nil {
		err = n.addCompiled(ctx, work, found)
	}
	switch {
	case err == nil, ctx.Err() != nil, compiler != "":
		return err
	}
	// No compiler, or one without a C library or for another machine.
	if herr := n.addHostProgram(ctx); herr != nil {
		return errors.Join(herr, err)
	}
	return nil
}

func findCompiler(name string) (string, error) {
	if name != "" {
		return exec.LookPath(name)
	}
	if runtime.GOARCH != "amd64" {
		return "", errors.New("AMD's programs are for x86-64")
	}
	for _, name := range []string{"cc", "gcc", "clang"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no C compiler on PATH (cc, gcc or clang)")
}

// object is one thing to link.
type object struct {
	source  string   // in src
	out     string   // path in the tree
	soname  string   // "" for a program
	runPath string   // DT_RUNPATH; "" for none
	link    []string // paths in the tree of the libraries that it needs
}

// objects returns what is compiled, libraries before what needs them. As in
// AMD's trees, the run paths hold the builder's directory, and one of them
// (libhello's) lacks the directory that it needs, so that rocm-hello starts
// only when that is repaired.
func objects() []object {
	const greet = "lib/rocm_sysdeps/lib/librocm_sysdeps_greet.so.1"
	return []object{
		{source: "greet.c", out: greet, soname: "librocm_sysdeps_greet.so.1"},
		{source: "greet.c", out: "lib/libfoo.so.1.0.0", soname: "libfoo.so.1", runPath: "$ORIGIN"},
		{
			source: "hello.c", out: "lib/libhello.so.1.0", soname: "libhello.so.1",
			runPath: "$ORIGIN:" + stage + "/lib/rocm_sysdeps/lib", link: []string{greet},
		},
		{
			source: "blas.c", out: kernelName, soname: "libdemo_blas.so.1",
			runPath: "$ORIGIN:$ORIGIN/rocm_sysdeps/lib:" + stage + "/lib", link: []string{greet},
		},
		{
			source: "main.c", out: "bin/rocm-hello", runPath: "$ORIGIN/../lib:" + stage + "/lib",
			link: []string{"lib/libhello.so.1.0", kernelName},
		},
	}
}

// addCompiled compiles the programs in work and adds them.
func (n *night) addCompiled(ctx context.Context, work, compiler string) error {
	if err := os.CopyFS(work, sources); err != nil {
		return err
	}
	built := make(map[string][]byte)
	for _, o := range objects() {
		if err := os.MkdirAll(filepath.Join(work, filepath.Dir(o.out)), 0o755); err != nil {
			return err
		}
		if err := n.compile(ctx, work, compiler, o); err != nil {
			return err
		}
		data, err := os.ReadFile(filepath.Join(work, o.out))
		if err != nil {
			return err
		}
		built[o.out] = data
	}
	late, err := MoveProgramHeaders(built[kernelName], LateOptions{
		KpackRef: KpackRef(kernelName, "../.kpack/demo_lib_@GFXARCH@.kpack"),
	})
	if err != nil {
		return err
	}
	built[kernelName] = late
	for name, data := range built {
		n.tree.File(name, 0o755, data)
	}
	n.tree.Link("lib/libfoo.so.1", "lib/libfoo.so.1.0.0")
	n.tree.Symlink("lib/libhello.so.1", "libhello.so.1.0")
	n.tree.Symlink("lib/libhello.so", "libhello.so.1")
	n.tree.Symlink("lib/libdemo_blas.so.1", "libdemo_blas.so.1.0")
	return nil
}

func (n *night) compile(ctx context.Context, work, compiler string, o object) error {
	args := []string{
		"-O1", "-s", "-Wl,--build-id=none",
		"-DROCM_VERSION=\"" + n.name.Version.String() + "\"", "-DDEMO_GPU=\"" + n.gpus[0] + "\"",
		"-o", o.out, "src/" + o.source,
	}
	if o.soname != "" {
		args = append(args, "-shared", "-fPIC", "-Wl,-soname,"+o.soname)
	} else {
		args = append(args, "-fPIE", "-pie", "-Wl,-rpath-link,lib/rocm_sysdeps/lib")
	}
	if o.runPath != "" {
		args = append(args, "-Wl,--enable-new-dtags", "-Wl,-rpath,"+o.runPath)
	}
	args = append(args, o.link...)
	cmd := exec.CommandContext(ctx, compiler, args...)
	cmd.Dir = work
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compile %s with %s: %w: %.400s", o.source, compiler, err, strings.TrimSpace(string(out)))
	}
	return nil
}
