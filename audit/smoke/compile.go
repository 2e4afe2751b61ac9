package smoke

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/rocm-nightly/rocm-nightly/internal/cage"
)

// The compiler by its own names, and by the one that users are told.
const (
	rawClang   = "lib/llvm/bin/clang"
	rawClangXX = "lib/llvm/bin/clang++"
	amdClangXX = "bin/amdclang++"
)

// cpu runs a program of the tree without a GPU.
func (r *run) cpu(ctx context.Context, j *job, file string, args ...string) (*cage.Result, error) {
	return r.start(ctx, j, cage.Command{}, file, args...)
}

// compile runs a compiler that has to succeed.
func (r *run) compile(ctx context.Context, j *job, env, file string, args ...string) (verdict, bool) {
	res, err := r.cpu(ctx, j, file, args...)
	if err != nil {
		return broken(err), false
	}
	if v, ok := r.ended(res, env); !ok {
		return v, false
	}
	if res.ExitCode != 0 {
		return failed("exit status %d: %s", res.ExitCode, errorLine(string(res.Stderr)+"\n"+string(res.Stdout))), false
	}
	return verdict{}, true
}

// eachTarget makes a check for each target in each environment.
func (r *run) eachTarget(ctx context.Context, c Check, do func(env, target string) verdict) error {
	if len(r.targets) == 0 {
		return r.each(ctx, c, func(string) verdict {
			return notRun("nothing tells what GPU this tree is for: name it with --arch")
		})
	}
	for _, t := range r.targets {
		c.Target = t
		if err := r.each(ctx, c, func(env string) verdict { return do(env, t) }); err != nil {
			return err
		}
		if r.once() {
			return nil
		}
	}
	return nil
}

// deviceCode compiles HIP kernels that include nothing. The compiler is left to
// find its device libraries, which is what breaks.
func (r *run) deviceCode(ctx context.Context) error {
	return r.eachTarget(ctx, Check{Name: "device-code"}, func(env, target string) verdict {
		j, err := r.job(r.environment(env, "device-code"), "kernel.hip")
		if err != nil {
			return broken(err)
		}
		if v, ok := r.kernel(ctx, j, env, target); !ok {
			return v
		}
		return passed("a code object for %s", target)
	})
}

// kernel makes kernel.co of kernel.hip, in j.
func (r *run) kernel(ctx context.Context, j *job, env, target string) (verdict, bool) {
	file, v, ok := r.find(rawClangXX, "")
	if !ok {
		return v, false
	}
	// With -c what a configuration file has for the linker of the host, which there
	// is none of, is no second thing to make.
	args := []string{"-c", "-x", "hip", "--cuda-device-only", "--offload-arch=" + target, "-nogpuinc", "--no-gpu-bundle-output", "-O2"}
	if isa := r.tree.isa(target); isa != 0 {
		args = append(args, fmt.Sprintf("-DSMOKE_ISA=%d", isa))
	}
	v, ok = r.compile(ctx, j, env, file, append(args, "kernel.hip", "-o", "kernel.co")...)
	if !ok {
		return v, false
	}
	return made(j, target)
}

// made judges the code object that was to be made in j.
func made(j *job, target string) (verdict, bool) {
	b, err := product(j.dir, "kernel.co")
	if err == nil {
		err = codeObject(b, target)
	}
	if err != nil {
		return failed("%v", err), false
	}
	return verdict{}, true
}

// openCL compiles a kernel in OpenCL C.
func (r *run) openCL(ctx context.Context) error {
	return r.eachTarget(ctx, Check{Name: "opencl"}, func(env, target string) verdict {
		file, v, ok := r.find(rawClang, "")
		if !ok {
			return v
		}
		j, err := r.job(r.environment(env, "opencl"), "kernel.cl")
		if err != nil {
			return broken(err)
		}
		v, ok = r.compile(ctx, j, env, file, "-x", "cl", "-target", "amdgcn-amd-amdhsa", "-mcpu="+target, "-O2", "kernel.cl", "-o", "kernel.co")
		if !ok {
			return v
		}
		if v, ok := made(j, target); !ok {
			return v
		}
		return passed("a code object for %s", target)
	})
}

// hip builds a program for host and device, with each compiler, and starts it.
func (r *run) hip(ctx context.Context) error {
	clang := amdClangXX
	if !r.tree.has(clang) {
		clang = rawClangXX
	}
	host := r.host(ctx)
	for _, c := range []struct {
		name, file string
		more       []string
	}{{"hip-clang", clang, []string{"--hip-link"}}, {"hip-hipcc", "bin/hipcc", nil}} {
		var built build
		err := r.each(ctx, Check{Name: c.name}, func(env string) verdict {
			b := r.build(ctx, c.name, c.file, env, host, c.more)
			if env == Empty {
				built = b
			}
			return b.verdict
		})
		if err != nil {
			return err
		}
		if !slices.Contains(r.o.Environments, Empty) {
			continue
		}
		err = r.try(ctx, Check{Name: c.name + "-run", Environment: Empty}, func() verdict { return r.runBuilt(ctx, built) })
		if err != nil {
			return err
		}
	}
	return nil
}

// build is a program that was to be made, and where.
type build struct {
	verdict
	job     *job
	program *hipProgram
}

func (r *run) build(ctx context.Context, name, compiler, env string, host func() (verdict, bool), more []string) build {
	file, v, ok := r.find(compiler, rawClang)
	if !ok {
		return build{verdict: v}
	}
	if !r.tree.has("include/hip/hip_runtime.h") {
		return build{verdict: notThere("the tree has no include/hip/hip_runtime.h")}
	}
	if len(r.targets) == 0 {
		return build{verdict: notRun("nothing tells what GPU this tree is for: name it with --arch")}
	}
	if v, ok := host(); !ok {
		return build{verdict: v}
	}
	j, err := r.job(r.environment(env, name), "hello.hip")
	if err != nil {
		return build{verdict: broken(err)}
	}
	args := []string{"-O1"}
	for _, t := range r.targets {
		args = append(args, "--offload-arch="+t)
	}
	args = append(append(args, "hello.hip"), append(more, "-o", "hello")...)
	if v, ok := r.compile(ctx, j, env, file, args...); !ok {
		return build{verdict: v}
	}
	b, err := product(j.dir, "hello")
	if err != nil {
		return build{verdict: failed("%v", err)}
	}
	p, err := r.hipProgram(b)
	if err != nil {
		return build{verdict: failed("%v", err)}
	}
	// What GNU ld makes is not executable in a cage that forbids chmod.
	if err := put(j.dir, "hello", b, 0o755); err != nil {
		return build{verdict: broken(err)}
	}
	path := "its run path is " + p.path
	if p.path == "" {
		path = "it has no run path: who runs it sets LD_LIBRARY_PATH"
	}
	return build{passed("a program that needs %s; %s", p.runtime, path), j, p}
}

// runBuilt starts what was built.
func (r *run) runBuilt(ctx context.Context, b build) verdict {
	switch {
	case b.program != nil:
	case b.status == Failed:
		return notRun("the program was not built")
	default:
		return b.verdict
	}
	j := *b.job
	if !b.program.leads {
		// Without a run path, or with that of the place where the tree will be.
		j.env = []string{"LD_LIBRARY_PATH=" + r.tree.rocm + "/lib"}
	}
	res, err := r.cpu(ctx, &j, j.dir+"/hello")
	if err != nil {
		return brokenOwn(err)
	}
	if v, ok := r.ended(res, Empty); !ok {
		return v
	}
	l := lines(res.Stdout)
	switch {
	case res.ExitCode == 0 && l.last("none") != "":
		return passed("it says: %s", l.last("none"))
	case res.ExitCode == 0 && l.last("pass") != "":
		return passed("it ran its kernel: %s", l.last("pass"))
	}
	return failed("exit status %d: %s", res.ExitCode, errorLine(string(res.Stdout)+"\n"+string(res.Stderr)))
}

var (
	headersRE = regexp.MustCompile(`'[a-z_./+]+' file not found`)
	// The compiler brings these itself, whatever the machine has.
	ownHeadersRE = regexp.MustCompile(`'(std(arg|bool|def)\.h|float\.h|__[a-z_./]+)' file not found`)
	linkRE       = regexp.MustCompile(`(?i)cannot (find|open) \S*crt\w*\.o|(cannot find|unable to find library) -l(stdc\+\+|m|gcc|gcc_s|c)\b|unable to execute command: (Executable "ld"|posix_spawn)|no such file or directory: '\S*crt`)
)

// host returns a function that tells whether this machine has what the host part
// of a HIP program needs. Where plain C++ does not compile with the compiler's
// configuration files, and does without them, those are at fault, and the check
// itself shall say so.
func (r *run) host(ctx context.Context) func() (verdict, bool) {
	var done, ok bool
	var v verdict
	return func() (verdict, bool) {
		if !done {
			done = true
			v, ok = r.askHost(ctx)
		}
		return v, ok
	}
}

func (r *run) askHost(ctx context.Context) (verdict, bool) {
	file, v, ok := r.find(rawClangXX, "")
	if !ok {
		return v, false
	}
	for _, more := range [][]string{nil, {"--no-default-config"}} {
		j, err := r.job(nil, "host.cpp")
		if err != nil {
			return broken(err), false
		}
		res, err := r.cpu(ctx, j, file, append(more, "host.cpp", "-o", "host")...)
		if err != nil {
			return broken(err), false
		}
		said := string(res.Stderr)
		switch {
		case res.ExitCode == 0:
			return verdict{}, true // with more: the configuration files are at fault
		case ownHeadersRE.MatchString(said):
			return verdict{}, true // a header of the tree: the check itself will miss it
		case headersRE.MatchString(said):
			v = notThere("no C++ headers on this machine (%s): install g++ (Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++)", headersRE.FindString(said))
		case linkRE.MatchString(said):
			v = notThere("no C++ libraries or no linker on this machine (%s): install g++ (Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++)", short(linkRE.FindString(said)))
		default:
			return verdict{}, true // something else is wrong: the check itself will meet it
		}
	}
	return v, false
}
