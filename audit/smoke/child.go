package smoke

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/patchelf"
)

// hipRuntime is the library that every HIP program needs.
const hipRuntime = "libamdhip64"

// loader is the interpreter of the tree's programs where nothing else is known:
// that of the x86-64 psABI.
const loader = "/lib64/ld-linux-x86-64.so.2"

// childBinary makes the program that loads and drives HIP, in j, out of
// child.c: it includes nothing, and is linked with this machine's libc by path,
// so that no header, start-up file or linker of the machine is needed.
func (r *run) childBinary(ctx context.Context, j *job) (verdict, bool) {
	clang, v, ok := r.find(rawClang, "")
	if !ok {
		return v, false
	}
	lld, v, ok := r.find("lib/llvm/bin/ld.lld", "")
	if !ok {
		return v, false
	}
	interp, libs := r.libc()
	if len(libs) == 0 {
		return notThere("there is no libc.so.6 beside %s", interp), false
	}
	v, ok = r.compile(ctx, j, Empty, clang, "-c", "--target=x86_64-unknown-linux-gnu", "-ffreestanding", "-nostdinc", "-fno-stack-protector", "-fPIE", "-O1", "child.c", "-o", "child.o")
	if !ok {
		return v, false
	}
	return r.compile(ctx, j, Empty, lld, append([]string{"-pie", "-dynamic-linker", interp, "-o", "child", "child.o"}, libs...)...)
}

// libc returns the loader that the tree's programs name, and the C library
// beside it. Before glibc 2.34 dlopen was in libdl.
func (r *run) libc() (interp string, libs []string) {
	interp = loader
	if f, size, err := regular(r.tree.root, rawClang); err == nil {
		if e, err := patchelf.Parse(f, size); err == nil && filepath.IsAbs(e.Interp) {
			interp = e.Interp
		}
		f.Close()
	}
	real, err := filepath.EvalSymlinks(interp)
	if err != nil {
		return interp, nil
	}
	for _, name := range []string{"libc.so.6", "libdl.so.2"} {
		file := filepath.Join(filepath.Dir(real), name)
		if _, err := os.Stat(file); err == nil {
			libs = append(libs, file)
		}
	}
	if len(libs) > 0 && filepath.Base(libs[0]) != "libc.so.6" {
		return interp, nil
	}
	return interp, libs
}

// load opens the HIP runtime by its path, with every symbol resolved, and asks
// for the number of devices. Its libraries are found by its own run path alone:
// the program has none.
func (r *run) load(ctx context.Context) error {
	return r.each(ctx, Check{Name: "hip-load"}, func(env string) verdict {
		j, lib, v, ok := r.child(ctx)
		if !ok {
			return v
		}
		j.env = r.environment(env, "hip-load")
		res, err := r.cpu(ctx, j, j.dir+"/child", "load", lib)
		if err != nil {
			return brokenOwn(err)
		}
		l := lines(res.Stdout)
		if v, ok := r.ended(res, env); !ok {
			return v
		}
		switch {
		case l.last("none") != "":
			return passed("it says: %s", l.last("none"))
		case l.last("pass") != "" && res.ExitCode == 0:
			return passed("it finds %s", l.last("pass"))
		case l.last("error") != "":
			return failed("%s", short(l.last("error")))
		}
		return failed("exit status %d%s", res.ExitCode, at(l))
	})
}

// rtc compiles at run time, for each target. Where HIP has no library for that
// alone, its runtime has it.
func (r *run) rtc(ctx context.Context) error {
	return r.eachTarget(ctx, Check{Name: "hiprtc"}, func(env, target string) verdict {
		lib, own := r.tree.library("libhiprtc")
		ok := own
		if !own {
			lib, ok = r.tree.library(hipRuntime)
		}
		if !ok {
			return notThere("the tree has no lib/libhiprtc.so and no lib/%s.so", hipRuntime)
		}
		j, err := r.job(nil, "child.c")
		if err != nil {
			return broken(err)
		}
		if v, ok := r.childBinary(ctx, j); !ok {
			return v
		}
		j.env = r.environment(env, "hiprtc")
		res, err := r.cpu(ctx, j, j.dir+"/child", "rtc", lib, "--offload-arch="+target)
		if err != nil {
			return brokenOwn(err)
		}
		l := lines(res.Stdout)
		if !own && l.has("error", "dlsym") {
			return notThere("%s has no runtime compiler", filepath.Base(lib))
		}
		if v, ok := r.ended(res, env); !ok {
			v.detail += at(l)
			return v
		}
		if res.ExitCode != 0 || !l.has("pass", "rtc") {
			return failed("exit status %d%s: %s", res.ExitCode, at(l), errorLine(string(res.Stdout)+"\n"+string(res.Stderr)))
		}
		if v, ok := made(j, target); !ok {
			return v
		}
		return passed("a code object for %s", target)
	})
}

// line is one that child.c or hello.hip printed: a word, and what comes after.
type line struct{ word, rest string }

// said is all of them.
type said []line

var lineRE = regexp.MustCompile(`(?m)^smoke: ([a-z]+) (.*)$`)

func lines(out []byte) (l said) {
	for _, m := range lineRE.FindAllSubmatch(out, -1) {
		l = append(l, line{string(m[1]), strings.TrimSpace(string(m[2]))})
	}
	return l
}

// last returns what came after the last line of a word, "" if there is none.
func (l said) last(word string) (rest string) {
	for _, line := range l {
		if line.word == word {
			rest = line.rest
		}
	}
	return rest
}

// has reports whether a line of word begins with what.
func (l said) has(word, what string) bool {
	for _, line := range l {
		if line.word == word && (line.rest == what || strings.HasPrefix(line.rest, what+" ")) {
			return true
		}
	}
	return false
}
