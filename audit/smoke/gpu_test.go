package smoke

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/amd"
	"github.com/rocm-nightly/rocm-nightly/internal/cage"
	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
)

// standIn returns a tree with the corpus's compiler and stand-ins for the HIP
// runtime and rocBLAS, which compute on the processor, broken as the faults say.
func standIn(t *testing.T, hip, blas string) string {
	t.Helper()
	dir := clone(t)
	lib := filepath.Join(dir, "opt/rocm/lib")
	for _, name := range glob(t, lib, "libamdhip64.so*") {
		must(t, os.Remove(name))
	}
	compileC(t, "hip.c", filepath.Join(lib, "libamdhip64.so"), hip)
	if blas != "absent" {
		compileC(t, "rocblas.c", filepath.Join(lib, "librocblas.so"), blas)
	}
	return dir
}

func compileC(t *testing.T, source, out, fault string) {
	t.Helper()
	cmd := exec.Command("gcc", "-shared", "-fPIC", "-O1", "-fno-math-errno", "-DFAULT=\""+fault+"\"", "-Wl,-soname,"+filepath.Base(out), "-o", out, "testdata/standin/"+source)
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("gcc (Debian: apt install gcc): %v\n%s", err, b)
	}
}

// compiled is a Runner that runs each compilation once for all tests, and
// everything else in a cage.
type compiled struct {
	sync.Mutex
	made map[string][]byte
}

func (r *compiled) Run(ctx context.Context, c cage.Command) (*cage.Result, error) {
	at := slices.Index(c.Args, "-o")
	if at < 0 {
		return cage.Run(ctx, c)
	}
	out, key := filepath.Join(c.Scratch, c.Args[at+1]), filepath.Base(c.Path)+strings.Join(c.Args, " ")
	r.Lock()
	defer r.Unlock()
	if b, ok := r.made[key]; ok {
		return &cage.Result{Kind: "test"}, os.WriteFile(out, b, 0o755)
	}
	res, err := cage.Run(ctx, c)
	if err != nil || res.ExitCode != 0 {
		return res, err
	}
	b, err := os.ReadFile(out)
	if r.made == nil {
		r.made = map[string][]byte{}
	}
	r.made[key] = b
	return res, err
}

var compilations compiled

// machine is one with these GPUs, of which the first is the one to install for.
func machine(targets ...string) *gfx.Machine {
	m := &gfx.Machine{Taken: targets[:1]}
	for i, t := range targets {
		m.GPUs = append(m.GPUs, gfx.GPU{Node: i + 1, Target: t})
	}
	return m
}

// onStandIn are options with which a machine without a GPU seems to have one:
// what is opened in place of /dev/kfd can be opened by everybody.
func onStandIn(m *gfx.Machine) Options {
	return Options{Mode: GPU, Machine: m, GFX: gfx.New(amd.Builtin()), Timeout: 20 * time.Second, kfd: "/dev/null", render: []string{}, Runner: &compilations}
}

// Each way in which a GPU's runtime and libraries fail gets its verdict, and
// nothing but a right result is passed.
func TestGPU(t *testing.T) {
	pass := []string{"gpu-vector-add gfx1030 passed", "gpu-math gfx1030 passed", "gpu-sgemm gfx1030 passed", "gpu-hgemm gfx1030 passed"}
	kernel := func(add, math string) []string {
		return []string{"gpu-vector-add gfx1030 " + add, "gpu-math gfx1030 " + math}
	}
	for _, tt := range []struct {
		name, hip, blas string
		want            []string // of the kernels only, unless there are four
		detail          string   // of the first that is not passed
	}{
		{"sound", "", "", pass, ""},
		{"no rocBLAS", "", "absent", append(kernel(Passed, Passed), "gpu-sgemm gfx1030 not-there", "gpu-hgemm gfx1030 not-there"), "librocblas.so"},
		{"no device", "none", "", kernel(Failed, NotRun), "finds no GPU"},
		{"a sum is wrong", "add", "", kernel(Failed, Passed), "1 of the values"},
		{"a sum is not a number", "nan", "", kernel(Failed, Passed), "1 of the values"},
		{"an atomic is lost", "sum", "", kernel(Passed, Failed), "1 of the values"},
		{"a crash", "crash", "", kernel(Failed, NotRun), "SIGSEGV, at vector-add"},
		{"a crash in the second kernel", "math", "", kernel(Passed, Failed), "SIGABRT, at math"},
		{"a crash at the end", "exit", "", kernel(Passed, Failed), "SIGSEGV"},
		{"no memory", "memory", "", kernel(Failed, NotRun), "hipMalloc 2"},
		{"a code object that is not taken", "image", "", kernel(Failed, NotRun), "hipModuleLoadData 200"},
		{"a wrong product", "", "sgemm", append(kernel(Passed, Passed), "gpu-sgemm gfx1030 failed", "gpu-hgemm gfx1030 passed"), "1 of the values"},
		{"a product of zeros", "", "hgemm", append(kernel(Passed, Passed), "gpu-sgemm gfx1030 passed", "gpu-hgemm gfx1030 failed"), "of the values"},
		{"rocBLAS does not start", "", "handle", append(kernel(Passed, Passed), "gpu-sgemm gfx1030 failed", "gpu-hgemm gfx1030 not-run"), "rocblas_create_handle 6"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := onStandIn(machine("gfx1030"))
			if len(tt.want) == 2 {
				o.only = []string{"gpu-vector-add", "gpu-math"}
			}
			rep := runChecks(t, standIn(t, tt.hip, tt.blas), o)
			judged(t, rep, tt.want, tt.detail)
		})
	}
}

func judged(t *testing.T, rep *Report, lines []string, detail string) {
	t.Helper()
	for i := range rep.Checks {
		rep.Checks[i].Environment = ""
	}
	want(t, rep, lines...)
	for _, c := range rep.Checks {
		if c.Status != Passed {
			if !strings.Contains(c.Detail, detail) {
				t.Errorf("%s: %q does not say %q", c.Name, c.Detail, detail)
			}
			return
		}
	}
}

// What the tree's linker leaves where the code object is put is not followed.
func TestGPUPlantedLink(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secret, []byte("untouched"), 0o644))
	o, planted := onStandIn(machine("gfx1030")), false
	o.Runner = runnerFunc(func(ctx context.Context, c cage.Command) (*cage.Result, error) {
		res, err := compilations.Run(ctx, c)
		if slices.Contains(c.Args, "child") {
			planted = true
			must(t, os.Symlink(secret, filepath.Join(c.Scratch, "kernel.co")))
		}
		return res, err
	})
	o.only = []string{"gpu-vector-add"}
	judged(t, runChecks(t, standIn(t, "", "absent"), o), []string{"gpu-vector-add gfx1030 passed"}, "")
	if b, err := os.ReadFile(secret); err != nil || string(b) != "untouched" || !planted {
		t.Errorf("%.40q, %v, planted: %v", b, err, planted)
	}
}

// A kernel that does not come back is ended.
func TestGPUHang(t *testing.T) {
	o := onStandIn(machine("gfx1030"))
	o.Timeout, o.only = 2*time.Second, []string{"gpu-vector-add", "gpu-math"}
	rep := runChecks(t, standIn(t, "hang", "absent"), o)
	judged(t, rep, []string{"gpu-vector-add gfx1030 failed", "gpu-math gfx1030 not-run"}, "did not end within 2s, at vector-add")
}

// Of several GPUs only those that the tree serves are used, each by the number
// that ROCr counts it by.
func TestGPUOfSeveral(t *testing.T) {
	o := onStandIn(machine("gfx1201", "gfx1030"))
	o.only = []string{"gpu-vector-add"}
	rep := runChecks(t, standIn(t, "second", "absent"), o)
	judged(t, rep, []string{"gpu-vector-add gfx1030 passed"}, "")
	if g := rep.Checks[0].GPU; g == nil || *g != 2 {
		t.Errorf("GPU %v", g)
	}
}

// A tree for gfx1030 serves a gfx1035 with an override, and a gfx1030 without.
func TestGPUSubstitute(t *testing.T) {
	dir := standIn(t, "override", "absent")
	o := onStandIn(machine("gfx1035"))
	o.only = []string{"gpu-vector-add"}
	o.Targets = []string{"gfx1030"}
	judged(t, runChecks(t, dir, o), []string{"gpu-vector-add gfx1030 passed"}, "")
	o.Machine = machine("gfx1030")
	judged(t, runChecks(t, dir, o), []string{"gpu-vector-add gfx1030 failed"}, "finds no GPU")
	o.GPUEnv = []string{"HSA_OVERRIDE_GFX_VERSION=10.3.0", "ROCR_VISIBLE_DEVICES=7"} // as its users have it
	judged(t, runChecks(t, dir, o), []string{"gpu-vector-add gfx1030 passed"}, "")
}

// Without a GPU that the tree is for nothing is run: asked for the GPU a report
// says why, and auto has nothing to say.
func TestNoGPU(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "bin"), 0o755))
	o := Options{Mode: GPU, Targets: []string{"gfx1030"}, Machine: machine("gfx1201"), GFX: gfx.New(amd.Builtin()), kfd: "/dev/null", Runner: nobody(t)}
	judged(t, runChecks(t, dir, o), []string{"gpu-vector-add not-run"}, "no GPU that the tree is for (gfx1030)")
	o.kfd = filepath.Join(dir, "kfd")
	judged(t, runChecks(t, dir, o), []string{"gpu-vector-add not-run"}, "no such file")
	o.Mode, o.Environments = Auto, []string{Empty}
	for _, c := range runChecks(t, dir, o).Checks {
		if strings.HasPrefix(c.Name, "gpu-") {
			t.Errorf("%+v", c)
		}
	}
}
