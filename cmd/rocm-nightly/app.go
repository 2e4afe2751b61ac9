package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/rocm-nightly/rocm-nightly/audit/doctor"
	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/serve/notify"
	snap "github.com/rocm-nightly/rocm-nightly/serve/snapshot"
	"github.com/rocm-nightly/rocm-nightly/store"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// app is one run of the program: its streams, its global flags and what
// follows from them.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	environ        func() []string
	ignored        []os.Signal // those that were ignored when this program began
	uid            int
	machine        func() *doctor.System       // what doctor looks at; nil is this machine
	ldconfig       func(context.Context) error // rebuilds the loader's cache; nil is this machine's

	configFile string
	rootFlag   string
	logFormat  string
	progress   string
	verbose    bool
	quiet      bool
	json       bool // the verb's own --json
	doing      *cobra.Command

	printed bool // the verb has printed its JSON value
	code    int  // what the verb exits with, unless it fails otherwise
	cfg     *config.Config
	read    []string // files that cfg was read from
	warned  bool     // it was said that there may not be enough room
	omits   bool     // parts of the tarball are left out
	taker   snap.Taker

	desk notify.Desk // who has not come back from being told of an event
}

// again is the program as it was started, with nothing read yet.
func (a *app) again() *app {
	return &app{
		stdin: a.stdin, stdout: a.stdout, stderr: a.stderr, getenv: a.getenv, environ: a.environ, ignored: a.ignored, uid: a.uid,
		machine: a.machine, ldconfig: a.ldconfig, configFile: a.configFile, rootFlag: a.rootFlag, logFormat: a.logFormat,
		progress: a.progress, verbose: a.verbose, quiet: a.quiet, json: a.json, doing: a.doing,
	}
}

// run runs the command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	out := &checkedWriter{Writer: a.stdout}
	a.stdout = out
	code := a.verb(ctx, args)
	// A reader that has seen enough (| head) is no failure; a full disk is.
	if out.err != nil && !errors.Is(out.err, syscall.EPIPE) && code == 0 {
		fmt.Fprintf(a.stderr, "rocm-nightly: write to standard output: %v\n", out.err)
		return update.ExitFailed
	}
	return code
}

// checkedWriter remembers that a write failed.
type checkedWriter struct {
	io.Writer
	err error
}

func (w *checkedWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if w.err == nil {
		w.err = err
	}
	return n, err
}

// verb runs one verb.
func (a *app) verb(ctx context.Context, args []string) int {
	root := a.command()
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return a.code
	}
	// An error about one flag comes before the flags behind it were read.
	a.json = a.json || slices.Contains(args, "--json")
	return a.fail(err)
}

// command builds the tree of verbs.
func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "rocm-nightly",
		Short: "AMD's ROCm nightlies, from AMD's index to a working, verified prefix",
		Long: `rocm-nightly takes AMD's ROCm nightlies from AMD's index to a working,
verified prefix on disk, and to a commit in the repository that packages it.

  rocm-nightly list                         what AMD publishes
  rocm-nightly update --arch gfx1151        install or update last night's ROCm
  rocm-nightly bump --dry-run               what would be proposed to repositories
  rocm-nightly status                       what is installed
  rocm-nightly rollback                     back to the one before
  rocm-nightly doctor                       why ROCm does not work here
  rocm-nightly exec -- rocminfo             run a command with it
  rocm-nightly demo                         the whole job, offline, in seconds
  rocm-nightly patchelf FLAG... FILE...     edit ELF files, with patchelf's flags

Exit codes: 0 done or nothing to do, 1 failed, 2 wrong usage or config, 3 the
index is stale, 4 the audit or a check refused, 5 new bytes under a known name.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	f := root.PersistentFlags()
	f.StringVar(&a.configFile, "config", "", "read this config `file` and no other")
	f.StringVar(&a.rootFlag, "root", "", "keep generations and downloads in this `directory`")
	f.StringVar(&a.logFormat, "log-format", "text", "how to log: text or json")
	f.StringVar(&a.progress, "progress", "auto", "how to show progress: auto, plain, json or none")
	f.BoolVarP(&a.verbose, "verbose", "v", false, "log more, and show the chain of causes of an error")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "log errors only")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		a.doing = cmd
		return a.checkGlobals()
	}
	a.addVerbs(root)
	a.completions(root)
	wrapArgs(root)
	return root
}

// addVerbs adds the verbs to root, in the groups in which --help shows them.
func (a *app) addVerbs(root *cobra.Command) {
	for _, g := range []struct {
		id, title string
		verbs     []*cobra.Command
	}{
		{"install", "Install and switch:", []*cobra.Command{a.updateCmd(), a.bumpCmd(), a.rollbackCmd(), a.useCmd(), a.activateCmd(), a.holdCmd(), a.unholdCmd(), a.linkCmd(), a.unlinkCmd(), a.daemonCmd()}},
		{"look", "Look:", []*cobra.Command{a.listCmd(), a.statusCmd(), a.checkCmd(), a.doctorCmd(), a.auditCmd(), a.verifyCmd(), a.diffCmd()}},
		{"use", "Run with it:", []*cobra.Command{a.envCmd(), a.execCmd(), a.leaseCmd()}},
		{"room", "Make room:", []*cobra.Command{a.pruneCmd(), a.removeCmd(), a.uninstallCmd(), a.dedupReportCmd()}},
		{"package", "Package and mirror:", []*cobra.Command{a.fetchCmd(), a.repackCmd(), a.lockCmd(), a.feedCmd(), a.initCmd(), a.tarballCmd(), a.patchelfCmd()}},
		{"self", "About itself:", []*cobra.Command{a.demoCmd(), a.configCmd(), a.schemaCmd(), a.notifyTestCmd(), a.manCmd(), a.versionCmd()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, v := range g.verbs {
			v.GroupID = g.id
			root.AddCommand(v)
		}
	}
	root.SetHelpCommandGroupID("self")
	root.SetCompletionCommandGroupID("self")
}

// wrapArgs makes errors about arguments usage errors.
func wrapArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usage(fmt.Errorf("%s: %w", cmd.Name(), err))
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		wrapArgs(sub)
	}
}

func (a *app) checkGlobals() error {
	if a.logFormat != "text" && a.logFormat != "json" {
		return usage(fmt.Errorf("--log-format %q is neither text nor json", a.logFormat))
	}
	switch a.progress {
	case "auto", "plain", "json", "none":
		return nil
	}
	return usage(fmt.Errorf("--progress %q is not one of auto, plain, json, none", a.progress))
}

// jsonFlag gives a verb its --json.
func (a *app) jsonFlag(c *cobra.Command) {
	c.Flags().BoolVar(&a.json, "json", false, "print one JSON value on standard output")
}

// config reads the configuration, once.
func (a *app) config() (*config.Config, error) {
	if a.cfg != nil {
		return a.cfg, nil
	}
	places := config.DefaultPlaces(a.configFile, a.getenv, a.uid)
	if a.environ != nil {
		places.Environ = a.environ()
	}
	cfg, read, err := config.Load(places)
	a.read = read
	if err != nil {
		return nil, usage(err)
	}
	if a.rootFlag != "" {
		if cfg.Root, err = filepath.Abs(a.rootFlag); err != nil {
			return nil, usage(err)
		}
	}
	if cfg.Root == "" {
		cfg.Root = a.defaultRoot()
	}
	a.cfg = cfg
	return cfg, nil
}

// defaultRoot is where generations are kept when nothing says so.
func (a *app) defaultRoot() string {
	if a.uid == 0 || a.isService() {
		return systemRoot
	}
	if dir := a.getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "rocm-nightly")
	}
	if home := a.getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "share", "rocm-nightly")
	}
	return ""
}

// cacheDir is where what can be fetched again is kept: where systemd says
// (CacheDirectory=), else among the user's caches or the system's.
func (a *app) cacheDir() string {
	if dir, _, _ := strings.Cut(a.getenv("CACHE_DIRECTORY"), ":"); filepath.IsAbs(dir) {
		return dir
	}
	if dir := a.getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "rocm-nightly")
	}
	if a.uid == 0 || a.isService() {
		return serviceCache
	}
	if home := a.getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".cache", "rocm-nightly")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("rocm-nightly-%d", a.uid))
}

// store opens the store of the configuration. Only the verbs that use it need
// a place for it.
func (a *app) store() (*store.Store, error) {
	cfg, err := a.config()
	if err != nil {
		return nil, err
	}
	if cfg.Root == "" {
		return nil, usage(errors.New("no place for generations is known: neither XDG_DATA_HOME nor HOME is set; use --root DIR"))
	}
	if err := a.trustRoot(cfg.Root); err != nil {
		return nil, err
	}
	st, err := store.Open(cfg.Root)
	if err != nil {
		return nil, err
	}
	st.Alone = cfg.RootAlone
	return st, nil
}

// terminal reports whether w is a terminal.
func terminal(w io.Writer) bool {
	if c, ok := w.(*checkedWriter); ok {
		w = c.Writer
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// log returns the logger that the global flags ask for.
func (a *app) log(w io.Writer) *slog.Logger {
	level := slog.LevelInfo
	switch {
	case a.quiet:
		level = slog.LevelError
	case a.verbose:
		level = slog.LevelDebug
	}
	if a.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
	}
	if inJournal(a.stderr, a.getenv) {
		return slog.New(newJournalHandler(w, level))
	}
	return slog.New(textHandler(w, level, terminal(a.stderr) && a.getenv("NO_COLOR") == ""))
}
