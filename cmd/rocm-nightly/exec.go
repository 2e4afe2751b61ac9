package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/environ"
)

// The exit codes of exec for a command that could not be run are those of env(1)
// and of shells.
const (
	exitNotRunnable = 126
	exitNotFound    = 127
)

func (a *app) execCmd() *cobra.Command {
	var o envFlags
	c := &cobra.Command{
		Use:   "exec [T] -- CMD [ARG...]",
		Short: "Run a command in the environment of an install",
		Long: `Run a command in the environment of an install, which is what "rocm-nightly env"
prints, with the compiler's cache keyed by the release. The command takes the place
of this program: arguments, standard input, signals and exit status are its own.
What is active is looked up once: the command and all that it starts have one
compiler, whatever update or rollback do meanwhile, and prune leaves that alone.
CMD is looked up in the new PATH; exit status 127 says that it was not found,
126 that it cannot be run.`,
		Example: "  rocm-nightly exec -- rocminfo\n" +
			"  rocm-nightly exec gfx1151 --version 10.2.0a20260930 -- make -j8",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			n := cmd.ArgsLenAtDash()
			switch {
			case n < 0:
				return usage(errors.New("exec: put -- before the command: rocm-nightly exec -- CMD"))
			case n > 1:
				return usage(fmt.Errorf("exec: %q and %q are two installs: give one of them", args[0], args[1]))
			case len(args) == n:
				return usage(errors.New("exec: there is no command behind --"))
			}
			if err := emptyFlag(cmd, "prefix", "version"); err != nil {
				return err
			}
			dir, err := a.execPrefix(cmd.Context(), args[:n], o)
			if err != nil {
				return err
			}
			e, err := environment(dir)
			if err != nil {
				return err
			}
			env := withoutCache(a.environ())
			return a.execute(args[n:], withCache(e, env).Enter(env))
		},
	}
	o.whose(c)
	return c
}

// execPrefix is the generation that is meant, which stays while the command or
// anything that it has started lives.
func (a *app) execPrefix(ctx context.Context, args []string, o envFlags) (string, error) {
	if o.prefix != "" {
		return foreignPrefix(args, o)
	}
	sl, err := a.usableSlot(argOr(args), systemRoot)
	if err != nil {
		return "", err
	}
	g, dir, err := sl.Open(o.version)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	if err := inherit(dir); err != nil {
		return "", fmt.Errorf("keep %s: %w", g.Name, err)
	}
	// The directory does it for whoever can see what this process has open. The
	// record does it for all; not everybody may write one.
	if _, _, err := sl.Lease(ctx, g.Name, os.Getpid()); err != nil {
		a.log(a.stderr).Debug("no lease was recorded", "error", err)
	}
	return g.Dir, nil
}

// inherit duplicates an open file so that it stays open across execve(2), in the
// command and in what that starts: under a number that no script uses.
func inherit(f *os.File) error {
	const high, low = 200, 10
	_, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD, high)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EMFILE) { // so few may be open
		_, err = unix.FcntlInt(f.Fd(), unix.F_DUPFD, low)
	}
	return err
}

// cacheName is the variable that says where the compiler keeps its cache.
const cacheName = "AMD_COMGR_CACHE_DIR"

// withoutCache takes out the cache of a release: a wrapper has chosen it, or an
// exec outside of this one, and not the user.
func withoutCache(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		dir, ok := strings.CutPrefix(kv, cacheName+"=")
		return ok && strings.Contains(dir, "/rocm-nightly/comgr-")
	})
}

// withCache keys the compiler's cache by the release, as the wrappers do. The
// environment for shells has no such variable: a shell outlives the release.
func withCache(e *environ.Environment, env []string) *environ.Environment {
	if e.Cache == "" || strings.ContainsAny(e.Cache, "/") {
		return e
	}
	own := map[string]string{}
	for _, kv := range env {
		if name, value, ok := strings.Cut(kv, "="); ok {
			own[name] = value
		}
	}
	base := own["XDG_CACHE_HOME"]
	if !filepath.IsAbs(base) {
		if !filepath.IsAbs(own["HOME"]) {
			return e
		}
		base = filepath.Join(own["HOME"], ".cache")
	}
	keyed := *e
	keyed.Set = append(slices.Clone(e.Set), environ.Variable{Name: cacheName, Value: filepath.Join(base, "rocm-nightly", "comgr-"+e.Cache)})
	return &keyed
}

// execute becomes the command. It returns only if that cannot be.
func (a *app) execute(argv, env []string) error {
	program, err := lookUp(argv[0], env)
	if err == nil {
		if len(a.ignored) > 0 {
			signal.Ignore(a.ignored...) // what was ignored stays so, across execve(2)
		}
		err = syscall.Exec(program, argv, env)
		if errors.Is(err, unix.ENOEXEC) { // a script without a first line that says so, which execvp(3) gives to sh
			err = syscall.Exec("/bin/sh", append([]string{"sh", program}, argv[1:]...), env)
		}
	}
	code := exitNotRunnable
	if errors.Is(err, fs.ErrNotExist) {
		code = exitNotFound
	}
	return &runError{fmt.Errorf("run %s: %w", argv[0], err), code}
}

// runError is a command that could not be run, and what to exit with.
type runError struct {
	err  error
	code int
}

func (e *runError) Error() string { return e.err.Error() }

func (e *runError) Unwrap() error { return e.err }

// lookUp finds a command as execvp(3) does, in the PATH of env.
func lookUp(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	search := ""
	for _, kv := range env {
		if value, ok := strings.CutPrefix(kv, "PATH="); ok {
			search = value
		}
	}
	denied := fs.ErrNotExist
	for _, dir := range strings.Split(search, ":") {
		if dir == "" {
			dir = "."
		}
		file := dir + "/" + name
		fi, err := os.Stat(file)
		if err != nil || fi.IsDir() || name == "" {
			continue
		}
		if unix.Access(file, unix.X_OK) == nil {
			return file, nil
		}
		denied = fs.ErrPermission
	}
	return "", fmt.Errorf("look it up in %s: %w", search, denied)
}
