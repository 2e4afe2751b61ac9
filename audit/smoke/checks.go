package smoke

import (
	"context"
	"embed"
	"path/filepath"
	"regexp"
)

// sources are compiled by the tree's own compiler.
//
//go:embed src
var sources embed.FS

// A Kind is one of the checks, and what it proves when it is passed.
type Kind struct {
	Name   string
	Mode   string // CPU or GPU
	Proves string
}

// Checks lists the checks in the order of a report.
func Checks() []Kind {
	return []Kind{
		{"rocminfo", CPU, "the loader starts it with all its libraries, and it ends by itself with words that it is known for; without a GPU its exit status is not 0"},
		{"hipconfig", CPU, "`hipconfig --version` prints a version"},
		{"clang", CPU, "`lib/llvm/bin/clang --version` prints a version of clang"},
		{"amdclang++", CPU, "`bin/amdclang++ --version` does"},
		{"hipcc", CPU, "`bin/hipcc --version` prints the version of HIP and of its clang"},
		{"device-code", CPU, "the compiler, asked for nothing but the target, finds its device libraries, and makes a code object for that target"},
		{"opencl", CPU, "so it does for a kernel in OpenCL C"},
		{"hip-clang", CPU, "a HIP program, host and device, compiles and links with `amdclang++` (`clang++` where there is none) and nothing but the target; it has device code, and its run path, if it has one, names the place where this tree is used, no generation"},
		{"hip-clang-run", CPU, "that program starts, loads this tree's HIP runtime, and says that there is no GPU"},
		{"hip-hipcc", CPU, "a HIP program compiles and links with `hipcc`"},
		{"hip-hipcc-run", CPU, "and starts likewise"},
		{"hip-load", CPU, "a program that knows nothing but its path opens the HIP runtime, with every symbol of every library that it needs, and is told that there is no GPU"},
		{"hiprtc", CPU, "the runtime compiler makes a code object for the target: it needs comgr, its own headers and the device libraries of this tree, which a mix of two ROCms gets wrong"},
		{"gpu-vector-add", GPU, "a kernel runs on the GPU, and each of 4096 sums is right"},
		{"gpu-math", GPU, "one with a function of the device libraries, shared memory, barriers and atomics does"},
		{"gpu-sgemm", GPU, "rocBLAS multiplies matrices in single precision, and each element is right"},
		{"gpu-hgemm", GPU, "and in half precision"},
	}
}

// program is one that is started to see whether it starts.
type program struct {
	check   string
	file    string
	args    []string
	words   *regexp.Regexp // what it prints when it is itself
	anyExit bool           // its exit status says something about the machine
	same    bool           // it prints the same in each environment
	needs   string         // what must be in the tree for it to be more than a stub
}

// programs are rocminfo and what prints its version. The words of rocminfo are
// those of its source: what it says of the kernel module, of /dev/kfd, of groups,
// and the status that ROCr gave it.
func (r *run) programs(ctx context.Context) error {
	for _, p := range []program{
		{
			check: "rocminfo", file: "bin/rocminfo", anyExit: true,
			words: regexp.MustCompile(`ROCk module is NOT loaded|ROCk module (version \S+ )?is loaded|Unable to open /dev/kfd|(is not member of|not a member of) .*group|hsa api call failure|hsa_init|HSA_STATUS_ERROR|HSA System Attributes|Runtime Version:`),
		},
		{check: "hipconfig", file: "bin/hipconfig", args: []string{"--version"}, words: regexp.MustCompile(`(?m)^\d+\.\d+`), same: true},
		{check: "clang", file: "lib/llvm/bin/clang", args: []string{"--version"}, words: regexp.MustCompile(`clang version \d+`), same: true},
		{check: "amdclang++", file: "bin/amdclang++", args: []string{"--version"}, words: regexp.MustCompile(`clang version \d+`), same: true, needs: "lib/llvm/bin/clang"},
		{check: "hipcc", file: "bin/hipcc", args: []string{"--version"}, words: regexp.MustCompile(`(?s)HIP version: *\d.*clang version \d+`), same: true, needs: "lib/llvm/bin/clang"},
	} {
		first := ""
		err := r.each(ctx, Check{Name: p.check}, func(env string) verdict { return r.program(ctx, p, env, &first) })
		if err != nil {
			return err
		}
	}
	return nil
}

// program starts p. first is what it printed in the environment before.
func (r *run) program(ctx context.Context, p program, env string, first *string) verdict {
	file, v, ok := r.find(p.file, p.needs)
	if !ok {
		return v
	}
	j, err := r.job(r.environment(env, p.check))
	if err != nil {
		return broken(err)
	}
	res, err := r.cpu(ctx, j, file, p.args...)
	if err != nil {
		return broken(err)
	}
	if v, ok := r.ended(res, env); !ok {
		return v
	}
	said := string(res.Stdout) + "\n" + string(res.Stderr)
	if res.ExitCode != 0 && !p.anyExit {
		return failed("exit status %d: %s", res.ExitCode, errorLine(said))
	}
	words := p.words.FindString(said)
	if words == "" {
		return failed("exit status %d, and nothing of what it is known to say", res.ExitCode)
	}
	if p.same && *first != "" && *first != string(res.Stdout) {
		return failed("it says something else than in an empty environment: %s", short(lastLine(string(res.Stdout))))
	}
	*first = string(res.Stdout)
	return passed("%s", short(lastLine(words)))
}

// systemRE matches where a system has the interpreters that it can install.
var systemRE = regexp.MustCompile(`^/(usr|bin|sbin|nix/store|gnu/store)/`)

// find returns the path of a program of the tree; a verdict where it is not
// there, or this machine lacks the interpreter of the script that it is.
func (r *run) find(name, needs string) (file string, v verdict, ok bool) {
	file, ok = r.tree.program(name)
	if !ok {
		return "", notThere("the tree has no %s", name), false
	}
	if needs != "" && !r.tree.entry(needs) {
		return "", notThere("the tree has no %s, which %s needs", needs, name), false
	}
	switch i := r.tree.interpreter(name); {
	case i == "":
	case filepath.IsAbs(i) && !systemRE.MatchString(i):
		return "", failed("%s is a script for %s, which is no place of this system's programs: repack rewrites those of the machine that built it", name, i), false
	default:
		return "", notThere("%s is a script for %s, which this machine does not have: install it", name, i), false
	}
	return file, verdict{}, true
}
