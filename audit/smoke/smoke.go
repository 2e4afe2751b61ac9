package smoke

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/cage"
	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
	"github.com/rocm-nightly/rocm-nightly/internal/plain"
)

// Runner runs one command in a cage; it never runs it otherwise. Its errors are
// those of cage.Run.
type Runner interface {
	Run(ctx context.Context, c cage.Command) (*cage.Result, error)
}

// caged is the Runner of everybody but tests.
type caged struct{}

func (caged) Run(ctx context.Context, c cage.Command) (*cage.Result, error) { return cage.Run(ctx, c) }

// The time limits of one command, unless Options.Timeout sets another.
const (
	cpuTimeout = time.Minute
	gpuTimeout = 2 * time.Minute
)

// Event is one step.
type Event struct {
	Check, Environment, Target string
}

// Options say what is tried. The zero value tries all that takes no GPU.
type Options struct {
	Mode    string   // Auto, CPU or GPU; "" is CPU
	Targets []string // gfx names to compile for; nil: those that the tree is for
	// Environments are those that checks without a GPU are made in; nil: both.
	Environments []string
	Timeout      time.Duration // of one command; 0: a minute, two on a GPU
	// FinalPrefix is where the prefix will be found, if not where it stands: the
	// compiler may write it into programs.
	FinalPrefix string
	// GPUEnv, of NAME=value, is what users of the tree have set on a GPU.
	GPUEnv  []string
	Machine *gfx.Machine // the GPUs of this machine; nil: none
	GFX     *gfx.Table   // what is known of substitutes; nil: nothing
	Runner  Runner       // nil: cage.Run
	WorkDir string       // where scratch directories are made; "": os.TempDir()
	Event   func(Event)

	only   []string // the checks to make; for tests
	kfd    string   // in place of /dev/kfd; for tests
	render []string // in place of /dev/dri/renderD*; for tests
}

// run is the state of one run.
type run struct {
	o        Options
	tree     *tree
	work     string   // holds what follows; gone afterwards
	decoy    string   // the other ROCm
	scratch  []string // the scratch directories in it
	report   *Report
	serves   []string // the targets that the tree is for
	targets  []string // those of them that are compiled for
	readOnly []string
	last     *cage.Result // of the check that is being made
	command  string
	spent    time.Duration
	limit    time.Duration // of the last command
}

// Run tries what is in dir. An error means that nothing could be tried: there
// is no tree, or no room for a scratch directory. What is wrong with the tree,
// and that there is no cage, is in the report.
func Run(ctx context.Context, dir string, o Options) (rep *Report, err error) {
	r := &run{o: o, report: &Report{Schema: Schema, Dir: dir, Mode: o.Mode, Checks: []Check{}}}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("smoke %s: %w", dir, err)
	}
	if r.tree, err = openTree(dir); err != nil {
		return nil, fmt.Errorf("smoke %s: %w", dir, err)
	}
	defer r.tree.root.Close()
	if r.work, err = os.MkdirTemp(o.WorkDir, "rocm-nightly-smoke-"); err != nil {
		return nil, fmt.Errorf("smoke %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, r.remove()) }()
	if err := r.prepare(); err != nil {
		return nil, fmt.Errorf("smoke %s: %w", dir, err)
	}
	if err := r.all(ctx); err != nil {
		return nil, fmt.Errorf("smoke %s: %w", dir, err)
	}
	r.report.close()
	return r.report, nil
}

// check fills in what the zero value means.
func (r *run) check() error {
	o := &r.o
	if o.Mode == "" {
		o.Mode = CPU
	}
	if o.Mode != Auto && o.Mode != CPU && o.Mode != GPU {
		return fmt.Errorf("unknown mode %q: use %s, %s or %s", o.Mode, Auto, CPU, GPU)
	}
	if o.Environments == nil {
		o.Environments = []string{Empty, Hostile}
	}
	for _, e := range o.Environments {
		if e != Empty && e != Hostile {
			return fmt.Errorf("unknown environment %q: use %s or %s", e, Empty, Hostile)
		}
	}
	for _, t := range o.Targets {
		if !gfx.IsTarget(t) {
			return fmt.Errorf("%q is no GPU target: use a gfx name such as gfx1151", t)
		}
	}
	if o.Machine == nil {
		o.Machine = &gfx.Machine{}
	}
	if o.Runner == nil {
		o.Runner = caged{}
	}
	if o.Event == nil {
		o.Event = func(Event) {}
	}
	if o.kfd == "" {
		o.kfd = "/dev/kfd"
	}
	if o.render == nil {
		o.render, _ = filepath.Glob("/dev/dri/renderD*") // the pattern is right
	}
	r.report.Mode = o.Mode
	return nil
}

// prepare makes the decoy and settles what is compiled for.
func (r *run) prepare() error {
	if err := os.Chmod(r.work, 0o755); err != nil { // for the user of the cage
		return err
	}
	r.serves, r.report.From = r.tree.targets(r.o.Targets, r.o.Machine.GPUs)
	r.targets = r.serves[:min(len(r.serves), maxTargets)]
	r.report.Targets = r.targets
	// A tree may name itself as its user does, /opt/rocm, and by its real name.
	r.readOnly = []string{r.tree.dir}
	if r.tree.named != r.tree.dir {
		r.readOnly = append(r.readOnly, r.tree.named)
	}
	if slices.Contains(r.o.Environments, Hostile) && r.o.Mode != GPU {
		r.decoy = filepath.Join(r.work, "other-rocm")
		if err := makeDecoy(r.decoy, r.tree); err != nil {
			return fmt.Errorf("make another ROCm: %w", err)
		}
	}
	return nil
}

// all makes the checks.
func (r *run) all(ctx context.Context) error {
	if r.o.Mode != GPU {
		for _, step := range []func(context.Context) error{r.programs, r.deviceCode, r.openCL, r.hip, r.load, r.rtc} {
			if err := step(ctx); err != nil {
				return err
			}
		}
	}
	if r.o.Mode == CPU {
		return nil
	}
	return r.gpus(ctx)
}

// try makes one check and files what came of it. The error is that of ctx.
func (r *run) try(ctx context.Context, c Check, do func() verdict) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.o.only != nil && !slices.Contains(r.o.only, c.Name) {
		return nil
	}
	r.o.Event(Event{c.Name, c.Environment, c.Target})
	r.last, r.command, r.spent = nil, "", 0
	v := do()
	if err := ctx.Err(); err != nil {
		return err // what a killed program looks like says nothing
	}
	c.Status, c.Detail, c.Seconds, c.Command = v.status, plain.Text(v.detail), seconds(r.spent), plain.Text(r.command)
	if v.status != Passed && r.last != nil {
		c.Output = tail(string(r.last.Stdout) + string(r.last.Stderr))
	}
	r.report.Checks = append(r.report.Checks, c)
	return nil
}

// each makes a check in each environment.
func (r *run) each(ctx context.Context, c Check, do func(env string) verdict) error {
	for _, env := range r.o.Environments {
		c.Environment = env
		if err := r.try(ctx, c, func() verdict { return do(env) }); err != nil {
			return err
		}
		if r.once() {
			return nil
		}
	}
	return nil
}

// once reports whether the last check is not made again in another environment or
// for another target: it came to nothing, for a reason that is the same in all of
// them, or it did not end, and a night of programs that all wait would take hours
// to be refused.
func (r *run) once() bool {
	n := len(r.report.Checks)
	if n == 0 {
		return false
	}
	status := r.report.Checks[n-1].Status
	return status == NotThere || status == NotRun || status == Failed && r.last != nil && r.last.TimedOut
}

// job is a scratch directory in which a check works.
type job struct {
	dir string
	env []string
}

// job makes a scratch directory with the sources of these names in it.
func (r *run) job(env []string, names ...string) (*job, error) {
	dir, err := cage.MakeScratch(r.work)
	if err != nil {
		return nil, err
	}
	r.scratch = append(r.scratch, dir)
	j := &job{dir: dir, env: env}
	for _, name := range names {
		b, err := sources.ReadFile("src/" + name)
		if err != nil {
			return nil, err
		}
		if err := put(j.dir, name, b, 0o644); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// start runs a program in the cage, with j as its scratch directory.
func (r *run) start(ctx context.Context, j *job, more cage.Command, file string, args ...string) (*cage.Result, error) {
	c := more
	c.Path, c.Args, c.Env, c.Scratch = file, args, j.env, j.dir
	if c.Timeout == 0 {
		c.Timeout = cmp.Or(r.o.Timeout, cpuTimeout)
	}
	c.ReadOnly = slices.Clone(r.readOnly)
	if r.decoy != "" {
		c.ReadOnly = append(c.ReadOnly, r.decoy)
	}
	r.command = strings.Join(append([]string{file}, args...), " ")
	res, err := r.o.Runner.Run(ctx, c)
	if err != nil {
		return nil, err
	}
	r.last, r.limit = res, c.Timeout
	r.spent += res.Duration
	r.report.Cage = res.Kind
	return res, nil
}

// broken is the verdict on an error before or instead of a program's end.
func broken(err error) verdict {
	if v, ok := notStarted(err); ok {
		return v
	}
	return notRun("%s", short(err.Error()))
}

// brokenOwn is broken for a program in a scratch directory, which is not the
// tree's: that it may not be started says nothing about the tree.
func brokenOwn(err error) verdict {
	var start *cage.StartError
	if errors.As(err, &start) && errors.Is(start.Err, fs.ErrPermission) {
		return notRun("no program can be started in %s (is it mounted noexec?): set TMPDIR to another directory", os.TempDir())
	}
	return broken(err)
}

// remove removes the work directory and the scratch directories in it, whatever
// a program has left there.
func (r *run) remove() error {
	var errs []error
	for _, dir := range r.scratch {
		errs = append(errs, cage.RemoveScratch(dir))
	}
	return errors.Join(append(errs, os.RemoveAll(r.work))...)
}
