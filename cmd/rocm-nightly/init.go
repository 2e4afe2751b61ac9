package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/audit/diff"
	"github.com/rocm-nightly/rocm-nightly/bump/aur"
	"github.com/rocm-nightly/rocm-nightly/bump/pinfile"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/store"
	"github.com/rocm-nightly/rocm-nightly/update"
)

func (a *app) initCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "init",
		Short: "Write the files that a new repository or service begins with",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.initAURCmd(), a.initSystemdCmd())
	return c
}

type initAUROptions struct {
	arch    string
	version string
	name    string
	channel string
	depends []string
	force   bool
}

func (a *app) initAURCmd() *cobra.Command {
	var o initAUROptions
	c := &cobra.Command{
		Use:   "aur DIR",
		Short: "Write PKGBUILD, .install and .SRCINFO of a package for the AUR",
		Long: `Write PKGBUILD, .install and .SRCINFO of a package of one family, for the Arch User
Repository. What it depends on, provides and conflicts with is read from the tree
that was made, verified and audited here, also by update --no-install; without one
there is no package. DIR is
made; it may be a fresh checkout of the AUR, or one that was written before: then a
newer night changes what has changed, and the lines that name maintainers stay.
docs/aur.md says how to publish it every night.`,
		Example: "  git clone ssh://aur@aur.archlinux.org/rocm-nightly-gfx1151-bin.git\n  rocm-nightly init aur rocm-nightly-gfx1151-bin --arch gfx1151",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := emptyFlag(cmd, "arch", "version", "name", "channel"); err != nil {
				return err
			}
			if args[0] == "" {
				return usage(errors.New("init aur: DIR is empty: give it a value"))
			}
			return a.initAUR(args[0], o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.arch, "arch", "", "the GPU `target`, where several are installed")
	f.StringVar(&o.version, "version", "", "this `version`, not the newest that is here")
	f.StringVar(&o.name, "name", "", "the `name` of the package (default: rocm-CHANNEL-FAMILY-bin)")
	f.StringVar(&o.channel, "channel", "", "the `channel`, where the target is installed from several")
	f.StringArrayVar(&o.depends, "depends", nil, "a `package` to depend on, beside those that are found; may be given again")
	f.BoolVar(&o.force, "force", false, "write over files that are not ours, and beside them")
	return c
}

func (a *app) initAUR(dir string, o initAUROptions) error {
	sl, err := a.initSlot(o)
	if err != nil {
		return err
	}
	rec, files, err := verifiedTree(sl, o.version)
	if err != nil {
		return err
	}
	pin, err := rec.Pin.Pin()
	if err != nil {
		return fmt.Errorf("read the record of %s: %w", rec.Version, err)
	}
	p, err := aur.Make(aur.Input{Name: o.name, Pin: pinfile.FromPin(pin, sl.Target()), Files: files, Depends: o.depends})
	if err != nil {
		return err
	}
	changed, err := p.Write(dir, o.force)
	if err != nil {
		return err
	}
	for _, n := range p.Notes {
		fmt.Fprintf(a.stderr, "look at it: %s\n", printable(n))
	}
	if len(changed) == 0 {
		fmt.Fprintf(a.stdout, "%s: %s %s-%d, as before\n", dir, p.Name, p.Version, p.Release)
		return nil
	}
	fmt.Fprintf(a.stdout, "%s: %s %s-%d: %s\n", dir, p.Name, p.Version, p.Release, strings.Join(changed, ", "))
	return nil
}

// initSlot finds the slot that the flags name.
func (a *app) initSlot(o initAUROptions) (*store.Slot, error) {
	cfg, err := a.config()
	if err != nil {
		return nil, err
	}
	st, err := a.store()
	if err != nil {
		return nil, err
	}
	target := o.arch
	if target != "" {
		canonical, ok := cfg.GFX.Canonical(target)
		if !ok && strings.Contains(target, "-") { // a slot's full name
			canonical, ok = target, true
		}
		if !ok {
			return nil, usage(fmt.Errorf("init aur: --arch %q is no GPU target", target))
		}
		target = canonical
	}
	switch {
	case o.channel != "" && target == "":
		return nil, usage(errors.New("init aur: --channel without --arch does not say which: give both"))
	case o.channel != "":
		return st.Slot(o.channel, target), nil
	}
	sl, err := st.FindSlot(target)
	slotErr, ok := errors.AsType[*store.SlotError](err)
	known := func(name string) bool { return strings.HasSuffix(name, "-"+target) }
	if target != "" && ok && !slices.ContainsFunc(slotErr.Have, known) {
		return st.Slot("nightly", target), nil // in which nothing is: what to do about that is said later
	}
	return sl, err
}

// seenTree is a version of which there is a tree, or what stays of one.
type seenTree struct {
	version string
	name    string // of its run: a generation's name, or the version
	dir     string
}

// treesOf lists what there is of a slot: its generations, then what stays of the trees
// that were deleted, each the newest first.
func treesOf(sl *store.Slot) ([]seenTree, error) {
	gens, err := sl.Generations()
	if err != nil {
		return nil, err
	}
	records, err := sl.Records()
	if err != nil {
		return nil, err
	}
	var all []seenTree
	for _, g := range gens {
		all = append(all, seenTree{g.Version, g.Name, g.Dir})
	}
	for _, r := range records {
		all = append(all, seenTree{r.Version, r.Version, r.Dir})
	}
	slices.SortStableFunc(all, func(a, b seenTree) int { return newestFirst(a.version, b.version) })
	return all, nil
}

// verifiedTree returns the record and the files of the newest version of a
// slot, or the one named, that was verified and audited here.
func verifiedTree(sl *store.Slot, version string) (*update.Record, []manifest.File, error) {
	all, err := treesOf(sl)
	if err != nil {
		return nil, nil, err
	}
	for _, k := range all {
		if version != "" && version != k.version && version != k.name {
			continue
		}
		rec, err := goodRecord(sl, k)
		if err != nil {
			return nil, nil, err
		}
		if rec == nil {
			continue
		}
		files, err := sealedFiles(k, rec)
		return rec, files, err
	}
	command := "rocm-nightly update --no-install --arch " + sl.Target()
	what := sl.Name()
	if version != "" {
		command += " --version " + version
		what += " " + version
	}
	return nil, nil, fmt.Errorf("init aur: no tree of %s was verified and audited here, and a package is made of no other (try: %s)", what, command)
}

func newestFirst(a, b string) int {
	v, errA := release.ParseVersion(a)
	w, errB := release.ParseVersion(b)
	if errA != nil || errB != nil {
		return strings.Compare(b, a)
	}
	return w.Compare(v)
}

// goodRecord returns the record of a tree, nil if there is none or it does not
// vouch for what is there.
func goodRecord(sl *store.Slot, k seenTree) (*update.Record, error) {
	var rec update.Record
	err := sl.ReadRun(k.name, &rec)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m, err := readManifest(k)
	if err != nil {
		return nil, err
	}
	ok := rec.Exit == 0 && rec.Verified != nil && rec.Audit != nil && rec.Audit.Counts.Fatal == 0 &&
		rec.Pin != nil && string(rec.Pin.Digest) == m.Digest
	if !ok {
		return nil, nil
	}
	return &rec, nil
}

// readManifest reads what a tree was made of.
func readManifest(k seenTree) (*manifest.Manifest, error) {
	f, err := os.Open(filepath.Join(k.dir, manifest.Name))
	if err != nil {
		return nil, fmt.Errorf("read the manifest of %s: %w", k.name, err)
	}
	defer f.Close()
	m, err := manifest.Read(f)
	if err != nil {
		return nil, fmt.Errorf("read the manifest of %s: %w", k.name, err)
	}
	return m, nil
}

// sealedFiles reads the list of a tree's files, which must be the one that its
// record was made with.
func sealedFiles(k seenTree, rec *update.Record) ([]manifest.File, error) {
	files, sum, err := diff.ReadList(k.dir)
	if err != nil {
		return nil, fmt.Errorf("read files of %s: %w", k.name, err)
	}
	if want := rec.Digests[manifest.FilesName]; want != "" && want.Encoded() != sum {
		return nil, fmt.Errorf("%s of %s was changed since its audit (try: rocm-nightly verify --repair)", manifest.FilesName, k.name)
	}
	return files, nil
}
