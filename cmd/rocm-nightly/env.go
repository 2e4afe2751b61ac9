package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/internal/environ"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// envFlags say whose environment is meant.
type envFlags struct {
	prefix  string
	version string
	shell   string
	leave   bool
	pin     bool
}

func (o *envFlags) whose(c *cobra.Command) {
	c.Flags().StringVar(&o.prefix, "prefix", "", "the environment of the prefix in this `directory`, wherever it was made for")
	c.Flags().StringVar(&o.version, "version", "", "of this generation, by its name or version, and not of whatever is active")
}

func (a *app) envCmd() *cobra.Command {
	var o envFlags
	c := &cobra.Command{
		Use:   "env [T]",
		Short: "Print the environment of an install, for a shell to evaluate",
		Long: `Print the environment of an install, for a shell to evaluate. It names the path
current, which outlives updates. A variable that you have set stays as it is;
evaluating it twice changes nothing, and that of another install takes the
place of the first. --leave prints the way back. --pin names the generation that
is active now, so that a build never mixes two compilers, and keeps it while the
shell lives (see lease). T is a target or slot; it may
be left out where there is one slot. docs/environment.md lists the variables.`,
		Example: "  eval \"$(rocm-nightly env)\"                       sh, bash, zsh, ksh\n" +
			"  rocm-nightly env --shell fish | source\n" +
			"  eval \"`rocm-nightly env --shell csh`\"\n" +
			"  eval \"$(rocm-nightly env --leave)\"",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.json = o.shell == "json"
			if o.pin && (o.leave || o.prefix != "") {
				return usage(errors.New("env: --pin keeps a generation of an install: leave --prefix and --leave out"))
			}
			if err := emptyFlag(cmd, "prefix", "version", "shell"); err != nil {
				return err
			}
			return a.printEnv(cmd.Context(), args, o)
		},
	}
	o.whose(c)
	c.Flags().StringVar(&o.shell, "shell", "", "the syntax: "+strings.Join(environ.Shells(), ", ")+" or json; without it, that of $SHELL")
	c.Flags().BoolVar(&o.pin, "pin", false, "name the generation that is active now, not current, and keep it while the shell lives")
	c.Flags().BoolVar(&o.leave, "leave", false, "print how to leave what was entered, whichever install's it is")
	return c
}

func (a *app) printEnv(ctx context.Context, args []string, o envFlags) error {
	shell, err := a.shell(o.shell)
	if err != nil {
		return err
	}
	var text string
	if o.leave {
		if len(args) > 0 || o.prefix != "" || o.version != "" || shell == "json" {
			return usage(errors.New("env: --leave leaves whatever was entered: give it no install, and a shell"))
		}
		if text, err = environ.LeaveScript(shell, a.environ()); err != nil {
			return usage(fmt.Errorf("env: %w", err))
		}
	} else {
		dir, err := a.envPrefix(ctx, args, o)
		if err != nil {
			return err
		}
		e, err := environment(dir)
		if err != nil {
			return err
		}
		if shell == "json" {
			a.printJSON(e)
			return nil
		}
		if text, err = e.Script(shell, a.environ()); err != nil {
			return usage(fmt.Errorf("env: %w", err))
		}
	}
	_, err = fmt.Fprint(a.stdout, text)
	return err
}

// shell is the shell that text is for.
func (a *app) shell(asked string) (string, error) {
	if asked == "" {
		if shell, ok := environ.Shell(a.getenv("SHELL")); ok {
			return shell, nil
		}
		return "sh", nil
	}
	if asked != "json" && !slices.Contains(environ.Shells(), asked) {
		return "", usage(fmt.Errorf("--shell %q is not one of %s, json", asked, strings.Join(environ.Shells(), ", ")))
	}
	return asked, nil
}

// environment reads the environment of the prefix dir, as it is found there.
func environment(dir string) (*environ.Environment, error) {
	if strings.Contains(dir, ":") {
		return nil, fmt.Errorf("%s holds a colon, which no search path can say: move it to another place", dir)
	}
	e, err := environ.Read(dir)
	if err != nil {
		return nil, err
	}
	e = e.At(dir)
	if err := e.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return e, nil
}

// envPrefix is the absolute path of the prefix that is meant: for what is active,
// the one that stays when another becomes so, unless it is pinned.
func (a *app) envPrefix(ctx context.Context, args []string, o envFlags) (string, error) {
	if o.prefix != "" {
		return foreignPrefix(args, o)
	}
	sl, err := a.usableSlot(argOr(args), systemRoot)
	if err != nil {
		return "", err
	}
	if o.pin {
		shell, err := leaser(os.Getppid())
		if err != nil {
			return "", err
		}
		_, g, err := sl.Lease(ctx, o.version, shell)
		if err != nil {
			return "", err
		}
		return g.Dir, nil
	}
	if o.version != "" {
		g, err := sl.Generation(o.version)
		if err != nil {
			return "", err
		}
		return g.Dir, nil
	}
	g, err := sl.Current()
	if err != nil {
		return "", err
	}
	if g == nil {
		return "", fmt.Errorf("nothing is active in %s (try: update)", sl.Name())
	}
	return sl.CurrentPath(), nil
}

// foreignPrefix is what --prefix names.
func foreignPrefix(args []string, o envFlags) (string, error) {
	if len(args) > 0 || o.version != "" {
		return "", usage(errors.New("--prefix names a prefix, and an install another: give one of them"))
	}
	dir, err := filepath.Abs(o.prefix)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", o.prefix, err)
	}
	return dir, nil
}

// systemRoot is where the system's own service installs.
const systemRoot = "/var/lib/rocm-nightly"

// usableSlot finds a slot of this user's, else one of the system's: it is enough
// to be able to read it. Who names a root means that one.
func (a *app) usableSlot(name, system string) (*store.Slot, error) {
	st, err := a.store()
	if err != nil {
		return nil, err
	}
	sl, err := st.FindSlot(name)
	var none *store.SlotError
	if errors.As(err, &none) && a.uid != 0 && a.cfg.Root == a.defaultRoot() && !meant(none) {
		if all, err := store.Open(system); err == nil {
			if sl, err := all.FindSlot(name); err == nil {
				return sl, nil
			}
		}
	}
	return sl, err
}

// meant reports whether what was asked for is among the slots that there are, but
// is more than one.
func meant(e *store.SlotError) bool {
	if e.Name == "" {
		return len(e.Have) > 0
	}
	return slices.ContainsFunc(e.Have, func(have string) bool { return strings.HasSuffix(have, "-"+e.Name) })
}
