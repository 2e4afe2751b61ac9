package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/store"
	"github.com/rocm-nightly/rocm-nightly/update"
)

type tarballOptions struct {
	version string
	output  string
	list    bool
	verify  bool
	fetch   bool
}

func (a *app) tarballCmd() *cobra.Command {
	var o tarballOptions
	c := &cobra.Command{
		Use:   "tarball [T] [PATH]",
		Short: "Write out a tarball that is kept, whole and verified",
		Long: `Write out a tarball that keep_tarballs has kept: that of the active generation of
T (a target or slot; it may be left out where there is one), or of --version, or
the one whose file name T is. It is written to PATH (or -o), which gets its name
when every byte was verified, or to standard output with -, and that fails at the
end if a byte was wrong. PATH is told from T by a slash or by how it ends
(.tar.gz). What is there already and is something else is not replaced. No index
is asked and nothing is locked.

AMD deletes a nightly after 120 days. See docs/tarballs.md.`,
		Example: "  rocm-nightly tarball ./rocm.tar.gz\n  rocm-nightly tarball gfx1151 --version 10.2.0a20260930 -o /srv/mirror/\n" +
			"  rocm-nightly tarball -o - | rocm-nightly repack - --prefix DIR\n  rocm-nightly tarball --list\n  rocm-nightly tarball --verify",
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := emptyFlag(cmd, "version", "output"); err != nil {
				return err
			}
			name, err := o.arguments(args)
			if err != nil {
				return usage(err)
			}
			return a.tarball(cmd.Context(), o, name)
		},
	}
	f := c.Flags()
	f.StringVar(&o.version, "version", "", "the tarball of this `version` (default: of what is active)")
	f.StringVarP(&o.output, "output", "o", "", "the `file` or directory to write to, or - for standard output (default: the tarball's name, here)")
	f.BoolVar(&o.list, "list", false, "only say what is kept")
	f.BoolVar(&o.verify, "verify", false, "read what is kept and name the parts that are damaged")
	f.BoolVar(&o.fetch, "fetch", false, "download the tarball of what is installed, to be kept")
	a.jsonFlag(c)
	return c
}

// arguments tells PATH from T.
func (o *tarballOptions) arguments(args []string) (name string, err error) {
	var path []string
	var names []string
	for i, arg := range args {
		if arg == "" {
			return "", errors.New("tarball: an argument is empty: give it a value, or leave it out")
		}
		// One name alone may be that of a kept tarball, or of the file to write.
		if arg == "-" || strings.Contains(arg, "/") || i > 0 {
			path = append(path, arg)
			continue
		}
		names = append(names, arg)
	}
	if o.output != "" {
		path = append(path, o.output)
	}
	switch {
	case len(path) > 1:
		return "", fmt.Errorf("tarball: it can be written to one place, not to %s", strings.Join(path, " and "))
	case o.list && (o.verify || o.fetch), o.verify && o.fetch:
		return "", errors.New("tarball: of --list, --verify and --fetch only one can be given")
	case len(path) == 1 && (o.list || o.verify || o.fetch):
		return "", errors.New("tarball: --list, --verify and --fetch write no file")
	case len(path) == 1:
		o.output = path[0]
	}
	if o.output == "/dev/stdout" { // which is a link, and must not be taken for a file
		o.output = "-"
	}
	return strings.Join(names, ""), nil
}

func (a *app) tarball(ctx context.Context, o tarballOptions, name string) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	st, err := a.store()
	if err != nil {
		return err
	}
	if a.json && o.output == "-" {
		return usage(errors.New("tarball: standard output cannot hold both the tarball and --json"))
	}
	if o.list || o.verify && name == "" && o.version == "" {
		return a.tarballsKept(ctx, st, o.verify)
	}
	if o.fetch {
		return a.tarballFetch(ctx, cfg, st, o, name)
	}
	if o.output == "" && archiveName(name) && !isKept(st, name) {
		name, o.output = "", name
	}
	t, err := findTarball(st, name, o.version)
	if err != nil {
		return err
	}
	if o.verify {
		return a.printTarballs(a.checked(ctx, []store.Tarball{*t}, nil))
	}
	return a.writeTarball(ctx, t, o.output)
}

// archiveName reports whether s ends as a tarball's name does.
func archiveName(s string) bool {
	return strings.HasSuffix(s, ".tar") || strings.Contains(filepath.Ext(strings.TrimSuffix(s, filepath.Ext(s))), ".tar")
}

func isKept(st *store.Store, name string) bool {
	all, err := st.Tarballs()
	return err == nil && slices.ContainsFunc(all, func(t store.Tarball) bool { return t.Name == name })
}

// findTarball finds the kept tarball that is meant: that of a generation of a
// slot, or one of a version that the slot once installed, or one by its name.
func findTarball(st *store.Store, name, version string) (*store.Tarball, error) {
	all, err := st.Tarballs()
	if err != nil {
		return nil, err
	}
	for i := range all {
		if name != "" && all[i].Name == name {
			return &all[i], nil
		}
	}
	sl, slotErr := st.FindSlot(name)
	if slotErr != nil {
		if t := wantedBy(all, name, version); t != nil && name != "" {
			return t, nil
		}
		return nil, slotErr
	}
	file, digest, err := installedTarball(st, sl, version)
	var unknown *store.GenerationError
	if errors.As(err, &unknown) {
		return nil, notKept(sl, version)
	}
	if err != nil {
		return nil, err
	}
	t, err := st.KeptDigest(sl.Channel(), file, digest)
	if t == nil && err == nil {
		if v, err := release.ParseName(file); err == nil && version == "" {
			version = v.Version.String()
		}
		err = notKept(sl, version)
	}
	return t, err
}

// wantedBy finds a tarball of a slot, by its name or target: of a version, or the last.
func wantedBy(all []store.Tarball, slot, version string) *store.Tarball {
	for i := range all {
		for _, s := range all[i].Slots {
			_, target, _ := strings.Cut(s, "-")
			if (s == slot || target == slot) && (version == "" || all[i].Entry().Version == version) {
				return &all[i]
			}
		}
	}
	return nil
}

func notKept(sl *store.Slot, version string) error {
	if version == "" {
		return fmt.Errorf("find a tarball of %s: nothing is active in it (name one with --version; see rocm-nightly tarball --list)", sl.Name())
	}
	return fmt.Errorf("find the tarball of %s %s: it is not kept: keep_tarballs keeps the next ones (while AMD lists it: rocm-nightly tarball %s --version %s --fetch, or rocm-nightly fetch %s --version %s)",
		sl.Name(), version, sl.Name(), version, sl.Target(), version)
}

// writeTarball writes it to a file or to standard output.
func (a *app) writeTarball(ctx context.Context, t *store.Tarball, output string) error {
	out := keptOf(t)
	path, stream, err := tarballPath(t, output)
	if err != nil {
		return err
	}
	out.Path = path
	if stream {
		err = a.streamTarball(t, path)
	} else {
		out.Here, err = t.WriteFile(ctx, path, false)
	}
	if err != nil {
		return err
	}
	if a.json {
		a.printJSON(out)
		return nil
	}
	to := a.stdout
	if stream {
		to = a.stderr
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, line := range [][2]string{{"path", out.Path}, {"url", out.URL}, {"size", fmt.Sprint(out.Size)}, {"sha256", out.Hex}, {"sri", out.SRI}, {"nix32", out.Nix32}} {
		fmt.Fprintf(w, "%s\t%s\n", line[0], printable(line[1]))
	}
	return w.Flush()
}

// tarballPath reads -o: a file that is not there yet, a directory, or what is
// written to as it is: standard output, a pipe, a device.
func tarballPath(t *store.Tarball, output string) (path string, stream bool, err error) {
	switch output {
	case "-":
		return "-", true, nil
	case "":
		output = t.Name
	}
	fi, err := os.Stat(output)
	if err == nil && fi.IsDir() {
		output = filepath.Join(output, t.Name)
		fi, err = os.Stat(output)
	}
	if err != nil && (!errors.Is(err, fs.ErrNotExist) || strings.HasSuffix(output, "/")) {
		return "", false, fmt.Errorf("write %s: %w", t.Name, err)
	}
	stream = err == nil && fi.Mode()&(fs.ModeNamedPipe|fs.ModeCharDevice) != 0
	path, err = filepath.Abs(output)
	return path, stream, err
}

func (a *app) streamTarball(t *store.Tarball, path string) (err error) {
	r, err := t.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	var to io.Writer = a.stdout
	if path != "-" {
		// A pipe that nobody reads from must not be waited for.
		f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		if errors.Is(err, unix.ENXIO) {
			err = fmt.Errorf("nobody reads from it: %w", err)
		}
		if err != nil {
			return err
		}
		defer f.Close()
		to = f
	}
	if _, err := io.Copy(to, r); err != nil {
		return fmt.Errorf("write %s to %s: %w", t.Name, path, err)
	}
	return nil
}

// tarballFetch downloads the tarball of what is installed, to be kept.
func (a *app) tarballFetch(ctx context.Context, cfg *config.Config, st *store.Store, o tarballOptions, name string) error {
	sl, err := st.FindSlot(name)
	if err != nil {
		return err
	}
	file, digest, err := installedTarball(st, sl, o.version)
	if err != nil {
		return err
	}
	p := a.newProgress(a.stderr)
	defer p.close()
	uo := a.updateOptions(cfg, "", p.event, a.log(p))
	uo.Store = st
	t, err := update.KeepTarball(ctx, uo, sl, file, digest, cfg.KeepTarballsOf(archInstall(cfg, sl.Target())))
	p.close()
	if err != nil {
		return err
	}
	if a.json {
		a.printJSON(keptOf(t))
		return nil
	}
	fmt.Fprintf(a.stdout, "%s: %s is kept in %s\n", sl.Name(), t.Name, t.Dir)
	return nil
}

// installedTarball names the tarball of what is active, or of a version that is
// installed or kept.
func installedTarball(st *store.Store, sl *store.Slot, version string) (name string, digest release.Digest, err error) {
	g, err := sl.Current()
	if version != "" {
		g, err = sl.Generation(version)
	}
	if err == nil && g == nil {
		err = notKept(sl, "")
	}
	if err == nil {
		m, err := g.Manifest()
		if err != nil {
			return "", "", err
		}
		return m.Name, release.Digest(m.Digest), nil
	}
	all, kerr := st.Tarballs()
	if t := wantedBy(all, sl.Name(), version); kerr == nil && t != nil && version != "" {
		return t.Name, t.Digest, nil
	}
	return "", "", err
}
