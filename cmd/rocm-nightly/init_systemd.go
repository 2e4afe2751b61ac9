package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/systemd"
)

type initSystemdOptions struct {
	user, timer, daemon bool
	laptop, gpu         bool
	arch                string
	prefix              string
	print, force        bool
	remove              bool
}

func (a *app) initSystemdCmd() *cobra.Command {
	var o initSystemdOptions
	c := &cobra.Command{
		Use:   "systemd [DIR]",
		Short: "Write the units that update ROCm every night",
		Long: `Write the units that update ROCm every night, for the path of this program: those of
the system, in /etc/systemd/system, or with --user those of a user's own manager, in
~/.config/systemd/user; a user who names no DIR gets those. The system's have a user
of their own, rocm-nightly, and a link at /opt/rocm where --arch or the config says to
what. Nothing is enabled or started: the commands for that are printed.

DIR is the root of the machine that they are for, as of an image; / by default. Files
that are not ours are left alone. docs/systemd.md says which unit is for whom.`,
		Example: "  sudo rocm-nightly init systemd --arch gfx1151\n  sudo rocm-nightly init systemd --timer --laptop\n  rocm-nightly init systemd --user --print\n  sudo rocm-nightly init systemd --remove",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := emptyFlag(cmd, "arch", "prefix"); err != nil {
				return err
			}
			return a.initSystemd(args, o)
		},
	}
	f := c.Flags()
	f.BoolVar(&o.user, "user", false, "units of a user's manager")
	f.BoolVar(&o.daemon, "daemon", false, "the daemon, with its page and its own schedule (the default)")
	f.BoolVar(&o.timer, "timer", false, "timers of systemd in place of the daemon")
	f.BoolVar(&o.laptop, "laptop", false, "timers: once a week, and not on battery")
	f.BoolVar(&o.gpu, "gpu", false, "let the service use the GPU, to try nights on it")
	f.StringVar(&o.arch, "arch", "", "link /opt/rocm to what is installed for this `target`")
	f.StringVar(&o.prefix, "prefix", "", "as a package does: into `directory`/lib, for directory/bin/rocm-nightly")
	f.BoolVar(&o.print, "print", false, "print the files and write none")
	f.BoolVar(&o.force, "force", false, "write over files that are not ours")
	f.BoolVar(&o.remove, "remove", false, "remove what this verb has written")
	return c
}

func (a *app) initSystemd(args []string, o initSystemdOptions) error {
	o.timer = o.timer || o.laptop && !o.daemon
	switch {
	case o.daemon && o.timer:
		return usage(errors.New("init systemd: --daemon and --timer exclude each other: choose one"))
	case o.daemon && o.laptop:
		return usage(errors.New("init systemd: --laptop is for the timers; the daemon has daemon.on_battery and schedule in its config"))
	case o.prefix != "" && !filepath.IsAbs(o.prefix):
		return usage(fmt.Errorf("init systemd: --prefix %q is not absolute", o.prefix))
	case len(args) > 0 && args[0] == "":
		return usage(errors.New("init systemd: DIR is empty: give it a value"))
	case o.user && (o.arch != "" || o.gpu):
		return usage(errors.New("init systemd: --arch and --gpu are for the system's units; a user's have the user's rights, and `link` in the config"))
	}
	o.user = o.user || a.uid != 0 && len(args) == 0 && o.prefix == "" && !o.print
	places, err := a.unitPlaces(args, o)
	if err != nil {
		return err
	}
	if o.remove {
		return a.removeUnits(places)
	}
	set, err := a.unitSet(o)
	if err != nil {
		return err
	}
	files, err := systemd.Set(set)
	if err != nil {
		return fmt.Errorf("init systemd: %w", err)
	}
	if o.print {
		for _, f := range files {
			fmt.Fprintf(a.stdout, "# %s\n%s\n", filepath.Join(places[f.Kind], f.Path), f.Text)
		}
		return nil
	}
	if err := a.writeUnits(places, files, o.force); err != nil {
		return err
	}
	if err := a.removeDropIns(places, files); err != nil {
		return err
	}
	a.unitSteps(set)
	return nil
}

// unitPlaces tells where files of each kind go.
func (a *app) unitPlaces(args []string, o initSystemdOptions) (map[systemd.Kind]string, error) {
	base := "/etc"
	switch {
	case o.prefix != "":
		base = filepath.Join(o.prefix, "lib")
	case o.user && len(args) == 0:
		base = a.getenv("XDG_CONFIG_HOME")
		if home := a.getenv("HOME"); !filepath.IsAbs(base) && filepath.IsAbs(home) {
			base = filepath.Join(home, ".config")
		}
		if !filepath.IsAbs(base) {
			return nil, usage(errors.New("init systemd: neither XDG_CONFIG_HOME nor HOME is set: name a DIR"))
		}
	}
	if len(args) > 0 {
		base = filepath.Join(args[0], base)
	}
	places := map[systemd.Kind]string{}
	for _, k := range systemd.Kinds() {
		places[k] = filepath.Join(base, string(k))
	}
	return places, nil
}

// unitSet says what the units are to do, by the flags and the config.
func (a *app) unitSet(o initSystemdOptions) (systemd.Options, error) {
	set := systemd.Options{User: o.user, Daemon: !o.timer, Laptop: o.laptop, GPU: o.gpu}
	program := filepath.Join(o.prefix, "bin", "rocm-nightly")
	if o.prefix == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return set, fmt.Errorf("init systemd: find this program: %w", err)
		}
		if !o.user && hiddenFromServices(program) {
			return set, fmt.Errorf("init systemd: a service cannot run %s: services see no homes, and a /tmp of their own (try: install -m755 %s /usr/local/bin/, and run that one)", printable(program), printable(program))
		}
	}
	set.Exec = []string{program}
	if a.configFile != "" {
		file, err := filepath.Abs(a.configFile)
		if err != nil {
			return set, usage(err)
		}
		set.Exec = append(set.Exec, "--config", file)
	}
	if o.user {
		return set, nil
	}
	cfg, err := a.config()
	if err != nil {
		return set, err
	}
	set.Root = cfg.Root
	if set.Root == a.defaultRoot() {
		set.Root = systemd.DefaultRoot // of who asks, who is not the service
	}
	if hiddenFromServices(set.Root) {
		return set, fmt.Errorf("init systemd: a service cannot install into %s: services see no homes, and a /tmp of their own (try: another root: in the config, or --user)", printable(set.Root))
	}
	if cfg.Metrics.Textfile != "" {
		set.Textfile = filepath.Dir(cfg.Metrics.Textfile)
	}
	set.Links, err = unitLinks(cfg, set.Root, o.arch)
	return set, err
}

// hiddenFromServices reports that ProtectHome= or PrivateTmp= hides a path.
func hiddenFromServices(path string) bool {
	for _, dir := range []string{"/home", "/root", "/run/user", "/tmp", "/var/tmp"} {
		if path == dir || strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}

// unitLinks lists the links of the config, and /opt/rocm for arch if it has none there.
// What `auto` is on another machine is not known: such an install has to be named.
func unitLinks(cfg *config.Config, root, arch string) ([]systemd.Link, error) {
	to := func(channel, target string) string {
		return filepath.Join(root, "slots", channel+"-"+target, "current")
	}
	want := ""
	if arch != "" {
		canonical, ok := cfg.GFX.Canonical(arch)
		if !ok {
			return nil, usage(fmt.Errorf("init systemd: --arch %q is no GPU target", arch))
		}
		want = canonical
	}
	var links []systemd.Link
	channel := "nightly"
	for _, in := range cfg.Installs {
		target, ok := cfg.GFX.Canonical(in.Target)
		switch {
		case ok && target == want && in.Link == "":
			channel = in.Channel
		case ok && in.Link != "":
			links = append(links, systemd.Link{Path: in.Link, Target: to(in.Channel, target)})
			if target == want {
				want = ""
			}
		}
	}
	if want != "" {
		links = append(links, systemd.Link{Path: "/opt/rocm", Target: to(channel, want)})
	}
	return links, nil
}

// writeUnits writes what has changed; nothing, if something of somebody else's is in
// the way.
func (a *app) writeUnits(places map[systemd.Kind]string, files []systemd.File, force bool) error {
	for _, f := range files {
		path := filepath.Join(places[f.Kind], f.Path)
		ours, err := unitIsOurs(path)
		if err != nil {
			return fmt.Errorf("init systemd: %w", err)
		}
		if !ours && !force {
			return fmt.Errorf("init systemd: nothing was written: %s is there, and was not written by this verb (--force replaces it)", printable(path))
		}
	}
	for _, f := range files {
		path := filepath.Join(places[f.Kind], f.Path)
		if was, err := os.ReadFile(path); err == nil && string(was) == f.Text {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("init systemd: %w", err)
		}
		if err := renameio.WriteFile(path, []byte(f.Text), 0o644, renameio.IgnoreUmask()); err != nil {
			return fmt.Errorf("init systemd: write %s: %w", path, err)
		}
		fmt.Fprintf(a.stdout, "wrote %s\n", printable(path))
	}
	return nil
}

// unitIsOurs reports that a file is not there, or was written by this verb.
func unitIsOurs(path string) (bool, error) {
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil || !fi.Mode().IsRegular() {
		return false, err
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, len(systemd.Mark))
	n, _ := f.Read(head) // too short is not ours
	return bytes.Equal(head[:n], []byte(systemd.Mark)), nil
}

// unitSteps says what is left to do.
func (a *app) unitSteps(set systemd.Options) {
	ctl := "systemctl"
	fmt.Fprintln(a.stdout, "\nnext:")
	if set.User {
		ctl = "systemctl --user"
	} else {
		fmt.Fprintln(a.stdout, "  systemd-sysusers")
		if len(set.Links) > 0 {
			fmt.Fprintln(a.stdout, "  systemd-tmpfiles --create rocm-nightly-link.conf")
		}
	}
	fmt.Fprintf(a.stdout, "  %s daemon-reload\n  %s enable --now %s\n", ctl, ctl, strings.Join(set.Enable(), " "))
	if set.User {
		fmt.Fprintln(a.stdout, "  loginctl enable-linger     # to run also while you are not logged in")
	}
}
