package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/audit"
)

// Command says which ROCm libraries a command would map, of which ROCm, and how
// the loader would come to them, without starting it.
func Command(ctx context.Context, s *System, o Options, args []string) (*Report, error) {
	x := newExam(s, o)
	if len(args) == 0 {
		return nil, errors.New("look at a command: none is named")
	}
	x.started = true
	c := &command{exam: x, env: x.env}
	if err := c.resolve(args); err != nil {
		return nil, fmt.Errorf("look at %s: %w", args[0], err)
	}
	if err := x.section(ctx, "command", c.look); err != nil {
		return nil, err
	}
	if err := x.section(ctx, "environment", checkEnvironment); err != nil {
		return nil, err
	}
	x.r.close()
	return x.r, nil
}

// command is one that is not started.
type command struct {
	*exam
	file  string   // the ELF program that would run
	steps []string // how it is come to
	env   map[string]string
}

// maxChain is how many interpreters a script may be behind; the kernel follows
// four (BINPRM_MAX_RECURSION).
const maxChain = 5

// errRelative is a path that only a shell's directory makes whole.
var errRelative = errors.New("it is named by a relative path: name the whole path")

var errNoCommand = errors.New("there is no such command; name a file, or one that PATH has")

// resolve follows scripts and wrappers to a program.
func (c *command) resolve(args []string) error {
	name := args[0]
	for range maxChain {
		file := name
		if !strings.Contains(name, "/") {
			if file = c.command(name); file == "" {
				return errNoCommand
			}
		} else if !path.IsAbs(name) {
			return errRelative
		}
		head, err := c.head(file)
		if err != nil {
			return err
		}
		switch {
		case strings.HasPrefix(head, "\x7fELF"):
			c.file = c.real(file)
			return nil
		case strings.Contains(head, "_rocm_nightly_self"):
			// One of our wrappers: the program of its name, in its own prefix.
			dir := path.Dir(path.Dir(c.real(file)))
			c.steps = append(c.steps, file+" is a wrapper")
			if c.env["ROCM_NIGHTLY_KEEP_ENV"] != "1" {
				for _, name := range []string{"ROCM_PATH", "HIP_PATH", "LLVM_PATH"} {
					delete(c.env, name) // as it does
				}
			}
			name = path.Join(dir, "opt/rocm/bin", path.Base(c.real(file)))
			continue
		}
		if name, err = interpreter(head); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		c.steps = append(c.steps, file+" is a script for "+name)
	}
	return errors.New("it is a script behind too many others")
}

// head reads the start of a file.
func (c *command) head(name string) (string, error) {
	f, err := c.open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b := make([]byte, 1024)
	n, err := io.ReadFull(f, b)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return "", err
	}
	return string(b[:n]), nil
}

// interpreter is what starts a script: the word behind #!, or what env is told.
func interpreter(head string) (string, error) {
	line, _, _ := strings.Cut(head, "\n")
	rest, ok := strings.CutPrefix(line, "#!")
	words := strings.Fields(rest)
	if !ok || len(words) == 0 {
		return "", errors.New("it is neither a program nor a script")
	}
	if path.Base(words[0]) != "env" {
		return words[0], nil
	}
	for _, w := range words[1:] {
		if !strings.HasPrefix(w, "-") && !strings.Contains(w, "=") {
			return w, nil
		}
	}
	return "", errors.New("it does not say which program starts it")
}

func (c *command) look(ctx context.Context, x *exam) error {
	for _, s := range c.steps {
		x.fact("%s", s)
	}
	env := x.loadEnv(c.env)
	all, err := audit.NewResolver(env).Resolve(ctx, c.file)
	if err != nil {
		return err
	}
	x.fact("%s would be started, with %d libraries", c.file, len(all)-1)
	var main []Mapping
	var missing []string
	for _, l := range all[1:] {
		if l.Path == "" {
			missing = append(missing, l.Name)
			x.find(Finding{Check: "command-missing", Severity: Broken, Subject: l.Name, Detail: "needed by " + l.By + ", and not found",
				Why: "the program does not start: \"cannot open shared object file\"", Remedy: x.provide(l)})
		}
		if base := path.Base(l.Path); l.Path != "" && (ofROCm(base) || ofROCm(l.Name)) {
			m := Mapping{Name: base, Path: l.Path, Why: reason(l), By: l.By, Main: mainLibrary(base), soname: l.Soname}
			if cp := x.copyFor(l.Path); cp != nil {
				m.Copy = cp.Root
			}
			if x.r.Mapped = append(x.r.Mapped, m); m.Main {
				main = append(main, m)
				x.fact("%s: %s", m.Path, m.Why)
			}
		}
	}
	if len(x.r.Mapped) == 0 && len(missing) == 0 {
		x.fact("it is linked with no library of ROCm; what it opens later is seen when it runs, with --pid")
	}
	x.mixed(main, "command-mixed")
	return c.displaced(ctx, env, all)
}

// displaced finds libraries of ROCm that are others without LD_LIBRARY_PATH.
func (c *command) displaced(ctx context.Context, env audit.LoadEnv, all []audit.Loaded) error {
	path := c.env["LD_LIBRARY_PATH"]
	if path == "" {
		return nil
	}
	env.LibraryPath = ""
	without, err := audit.NewResolver(env).Resolve(ctx, c.file)
	if err != nil {
		return err
	}
	own := map[string]string{}
	for _, l := range without {
		own[l.Name] = l.Path
	}
	for _, l := range all {
		if at := own[l.Name]; l.Why == audit.WhyLibraryPath && ofROCm(l.Name) && at != "" && at != l.Path {
			c.find(Finding{Check: "command-displaced", Severity: Warning, Subject: l.Name, Detail: "LD_LIBRARY_PATH puts " + l.Path + " in place of " + at,
				Why: "the program was built with the other, and kernels and databases are looked for beside this one", Remedy: c.unset("LD_LIBRARY_PATH")})
		}
	}
	return nil
}

// provide says where a missing library comes from.
func (x *exam) provide(l audit.Loaded) []string {
	if ofROCm(l.Name) {
		if ours := x.activeCopy(); ours != nil {
			return []string{"rocm-nightly patchelf --add-rpath " + quote(x.stable(ours.lib)) + " " + quote(l.By)}
		}
		return []string{"rocm-nightly patchelf --add-rpath DIRECTORY " + quote(l.By) + "   # the lib directory of a ROCm"}
	}
	if c, _ := x.distro.Install(l.Name); c != "" {
		return []string{c}
	}
	return []string{"install what this distribution has " + l.Name + " in"}
}
