package smoke

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/cage"
	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
)

// What a process on a GPU may use: ROCr and rocBLAS start threads, and the
// runtime's own copies of kernels are large.
const (
	gpuMemory    = 16 << 30 // bytes
	gpuProcesses = 1024
)

// served is a GPU of this machine that the tree is for.
type served struct {
	gfx.GPU
	index    int    // among the GPUs of the machine, as ROCR_VISIBLE_DEVICES counts
	target   string // what its code is compiled for
	override string // HSA_OVERRIDE_GFX_VERSION, where target is a substitute; else ""
}

// Usable reports whether this process may use GPUs: whether it can open
// /dev/kfd.
func Usable() error { return usable("/dev/kfd") }

func usable(kfd string) error {
	f, err := os.OpenFile(kfd, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// served lists the GPUs that the tree has code for, or, where it has none for
// any, those that it can serve as a substitute. A GPU that is there to light a
// desktop is left out beside others.
func (r *run) served() []served {
	var list []served
	for i, g := range r.o.Machine.GPUs {
		if slices.Contains(r.serves, g.Target) {
			list = append(list, served{g, i, g.Target, ""})
		}
	}
	if len(list) == 0 && r.o.GFX != nil {
		for i, g := range r.o.Machine.GPUs {
			if near, ok := r.o.GFX.Nearest(g.Target, r.serves); ok && slices.Contains(r.serves, near.Target) {
				list = append(list, served{g, i, near.Target, near.Override})
			}
		}
	}
	main := slices.DeleteFunc(slices.Clone(list), func(s served) bool { return !slices.Contains(r.o.Machine.Taken, s.Target) })
	if len(main) > 0 {
		return main
	}
	return list
}

// gpus computes on each GPU that the tree serves. Where there is none, a run in
// mode Auto has nothing more to say.
func (r *run) gpus(ctx context.Context) error {
	list := r.served()
	why := ""
	if err := usable(r.o.kfd); err != nil {
		why = fmt.Sprintf("%v: is the amdgpu module loaded, and is this user in the groups render and video?", err)
	} else if len(list) == 0 {
		why = "this machine has no GPU that the tree is for"
		if len(r.serves) > 0 {
			why += " (" + strings.Join(r.serves, ", ") + ")"
		}
	}
	if why != "" {
		if r.o.Mode == Auto {
			return nil
		}
		return r.try(ctx, Check{Name: "gpu-vector-add", Environment: Empty}, func() verdict { return notRun("%s", why) })
	}
	for _, g := range list {
		if err := r.onOne(ctx, g); err != nil {
			return err
		}
	}
	return nil
}

// onOne makes the checks of one GPU: the kernels and rocBLAS, a process for
// each.
func (r *run) onOne(ctx context.Context, g served) error {
	node := g.Node
	for _, process := range []struct {
		checks [2]string
		start  func(context.Context, served) attempt
	}{
		{[2]string{"vector-add", "math"}, r.kernels},
		{[2]string{"sgemm", "hgemm"}, r.blas},
	} {
		var a attempt
		for i, what := range process.checks {
			c := Check{Name: "gpu-" + what, Environment: Empty, Target: g.target, GPU: &node}
			err := r.try(ctx, c, func() verdict {
				if i == 0 {
					a = process.start(ctx, g)
					a.command = r.command
				}
				r.last, r.command = a.res, a.command
				return r.judgeGPU(a, what, process.checks[:i], i == len(process.checks)-1)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// attempt is one process on a GPU.
type attempt struct {
	verdict // of what came before the process; of no status when it was started
	res     *cage.Result
	command string
}

// kernels runs the kernels of kernel.hip.
func (r *run) kernels(ctx context.Context, g served) attempt {
	j, hip, v, ok := r.child(ctx)
	if !ok {
		return attempt{verdict: v}
	}
	k, err := r.job(nil, "kernel.hip")
	if err != nil {
		return attempt{verdict: broken(err)}
	}
	if v, ok := r.kernel(ctx, k, Empty, g.target); !ok {
		return attempt{verdict: v}
	}
	code, err := product(k.dir, "kernel.co")
	if err == nil {
		err = put(j.dir, "kernel.co", code, 0o644)
	}
	if err != nil {
		return attempt{verdict: broken(err)}
	}
	return r.onDevice(ctx, j, g, "kernel", r.o.kfd, hip, j.dir+"/kernel.co")
}

// blas multiplies matrices with rocBLAS.
func (r *run) blas(ctx context.Context, g served) attempt {
	blas, ok := r.tree.library("librocblas")
	if !ok {
		return attempt{verdict: notThere("the tree has no lib/librocblas.so")}
	}
	j, hip, v, ok := r.child(ctx)
	if !ok {
		return attempt{verdict: v}
	}
	return r.onDevice(ctx, j, g, "blas", r.o.kfd, hip, blas)
}

// child makes the program that drives HIP.
func (r *run) child(ctx context.Context) (j *job, hip string, v verdict, ok bool) {
	hip, ok = r.tree.library(hipRuntime)
	if !ok {
		return nil, "", notThere("the tree has no lib/%s.so", hipRuntime), false
	}
	j, err := r.job(nil, "child.c")
	if err != nil {
		return nil, "", broken(err), false
	}
	v, ok = r.childBinary(ctx, j)
	return j, hip, v, ok
}

// onDevice starts the program with the GPU let in, and it alone visible.
func (r *run) onDevice(ctx context.Context, j *job, g served, args ...string) attempt {
	const override, visible = "HSA_OVERRIDE_GFX_VERSION=", "ROCR_VISIBLE_DEVICES="
	j.env = slices.DeleteFunc(slices.Clone(r.o.GPUEnv), func(v string) bool { return strings.HasPrefix(v, visible) })
	if g.override != "" && !slices.ContainsFunc(j.env, func(v string) bool { return strings.HasPrefix(v, override) }) {
		j.env = append(j.env, override+g.override)
	}
	j.env = append(j.env, visible+strconv.Itoa(g.index))
	c := cage.Command{Devices: append([]string{r.o.kfd}, r.o.render...), Memory: gpuMemory, Processes: gpuProcesses, Timeout: gpuTimeout}
	if r.o.Timeout > 0 {
		c.Timeout = r.o.Timeout
	}
	res, err := r.start(ctx, j, c, j.dir+"/child", args...)
	if err != nil {
		return attempt{verdict: brokenOwn(err)}
	}
	return attempt{res: res}
}

// judgeGPU judges one computation of a process. before are those that came
// earlier in it: what ended the process is held against the first that has no
// result, and what happened after the last result, against the last.
func (r *run) judgeGPU(a attempt, what string, before []string, last bool) verdict {
	if a.status != "" {
		return a.verdict
	}
	l := lines(a.res.Stdout)
	if l.has("wrong", what) {
		return failed("%s of the values computed are wrong", short(word(l.rest("wrong", what), 1)))
	}
	done := l.has("pass", what)
	if done && (!last || l.last("end") != "" && a.res.ExitCode == 0 && a.res.Signal == "") {
		return passed("every value is right")
	}
	for _, b := range before {
		if !l.has("pass", b) && !l.has("wrong", b) {
			return notRun("the process ended before it came to this")
		}
	}
	if at := l.last("denied"); at != "" {
		return notRun("the user that checks are run as may not open %s: put it into the groups render and video", short(word(at, 0)))
	}
	if v, ok := r.ended(a.res, Empty); !ok {
		v.detail += at(l)
		return v
	}
	switch {
	case l.last("none") != "":
		return failed("the runtime finds no GPU: %s", short(l.last("none")))
	case l.last("error") != "":
		return failed("%s", short(l.last("error")))
	}
	return failed("exit status %d%s", a.res.ExitCode, at(l))
}

// at says what the process was doing.
func at(l said) string {
	step := l.last("step")
	if step == "" {
		return ""
	}
	return ", at " + short(word(step, 0))
}

// word is one of the words of a line, "?" where there are not so many: a line
// may be anybody's.
func word(line string, i int) string {
	if f := strings.Fields(line); i < len(f) {
		return f[i]
	}
	return "?"
}

// rest is what came after the last line of a word that begins with what.
func (l said) rest(word, what string) (rest string) {
	for _, line := range l {
		if line.word == word && strings.HasPrefix(line.rest, what+" ") {
			rest = line.rest
		}
	}
	return rest
}
