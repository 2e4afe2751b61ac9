package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/repack"
	"github.com/rocm-nightly/rocm-nightly/update"
)

type repackOptionsFlags struct {
	prefix          string
	finalPrefix     string
	layout          string
	etc             string
	arch            string
	profile         string
	digest          string
	interpreter     string
	interpreterPath []string
	addRPath        []string
	decompressor    string
	omit            []string
	scope           string
	refuse          string
	provenance      string
}

func (a *app) repackCmd() *cobra.Command {
	var o repackOptionsFlags
	c := &cobra.Command{
		Use:   "repack SRC --prefix DIR",
		Short: "Turn a tarball into a finished prefix, and nothing else",
		Long: `Turn a ROCm tarball into a finished prefix: unpack, patch, wrap, audit. SRC is a
file, a URL, or - for standard input: a tar compressed with gzip, zstd or xz, or
not at all; the content tells, not the name. DIR must be absent or empty; it appears
with one rename when everything is right, and not at all when anything is not.
This is what a package recipe or a Dockerfile calls; nothing is kept elsewhere.`,
		Example: "  rocm-nightly repack therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz --prefix /opt/rocm-10.2\n" +
			"  rocm-nightly repack FILE --layout tree --prefix \"$pkgdir/opt/rocm\" --final-prefix /opt/rocm --etc \"$pkgdir/etc\"\n" +
			"  curl -fL URL | rocm-nightly repack - --prefix DIR --digest sha256-…",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.noEmptyFlags(cmd); err != nil {
				return usage(err)
			}
			return a.repack(cmd.Context(), args[0], o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.prefix, "prefix", "", "the `directory` to make; required")
	f.StringVar(&o.finalPrefix, "final-prefix", "", "where the prefix will be found, if not at --prefix; written into etc/, nix-support/ and the compiler's rocm.cfg alone")
	f.StringVar(&o.layout, "layout", repack.LayoutRoot, "root: opt/rocm with wrappers, links and hooks; tree: the patched tree alone")
	f.StringVar(&o.etc, "etc", "", "with --layout tree: a `directory` that gets the files for profile.d, ld.so.conf.d and OpenCL/vendors")
	f.StringVar(&o.arch, "arch", "", "the GPU `target` that this is for")
	f.StringVar(&o.profile, "profile", "", "fhs or nix")
	f.StringVar(&o.digest, "digest", "", "the SHA-256 that the tarball must have: sha256:<hex>, <hex>, sha256-<base64> or Nix base-32")
	f.StringVar(&o.interpreter, "interpreter", "", "the program interpreter (PT_INTERP) to write into executables")
	f.StringArrayVar(&o.interpreterPath, "interpreter-path", nil, "a `directory` in which script interpreters are found (profile nix); may be given again")
	f.StringArrayVar(&o.addRPath, "add-rpath", nil, "a `directory` to add at the end of every run path; may be given again")
	f.StringVar(&o.decompressor, "decompressor", "", "auto, or klauspost: gzip by klauspost/compress")
	f.StringArrayVar(&o.omit, "omit", nil, "a `part` of the tarball to leave out, beside those of the config: "+strings.Join(config.Parts(), ", ")+"; may be given again")
	f.StringVar(&o.scope, "audit-scope", "", "host: this machine's libraries and interpreters count; tree: they do not")
	f.StringVar(&o.refuse, "audit-refuse", "", "regression, all or never")
	f.StringVar(&o.provenance, "provenance", "", "a `file` that gets the statement about how it was made (in-toto, SLSA provenance v1)")
	a.jsonFlag(c)
	return c
}

// noEmptyFlags refuses a flag that was given with nothing: in a script, that is
// a variable that was not set, and --digest "" must not mean "unverified".
func (o repackOptionsFlags) noEmptyFlags(cmd *cobra.Command) error {
	empty := func(name string) error {
		return fmt.Errorf("repack: --%s is empty: give it a value, or leave it out", name)
	}
	err := emptyFlag(cmd, "prefix", "final-prefix", "layout", "etc", "arch", "profile", "digest", "interpreter", "decompressor", "audit-scope", "audit-refuse", "provenance")
	if err != nil {
		return err
	}
	switch {
	case slices.Contains(o.interpreterPath, ""):
		return empty("interpreter-path")
	case slices.Contains(o.addRPath, ""):
		return empty("add-rpath")
	case slices.Contains(o.omit, ""):
		return empty("omit")
	}
	return nil
}

func (a *app) repack(ctx context.Context, src string, o repackOptionsFlags) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	ro, err := o.options(cfg)
	if err != nil {
		return usage(err)
	}
	a.omits = len(ro.Omit) > 0
	// Before anything is fetched.
	if err := repack.Vacant(o.prefix); err != nil {
		return fmt.Errorf("repack into %s: %w", o.prefix, err)
	}
	attest, err := beginAttestation(o.provenance, o.prefix)
	if err != nil {
		return err
	}
	in, err := a.openSource(ctx, cfg, src, o.prefix)
	if err != nil {
		return attest.end(nil, nil, ro, err)
	}
	if n, err := release.ParseName(in.name); err == nil {
		ro.Release = release.Release{Name: in.name, Family: n.Family, Version: n.Version, Platform: n.Platform, Tests: n.Tests, Variant: n.Variant, Archive: n.Archive}
	}
	ro.Expect, ro.Checked = append(ro.Expect, in.expect...), in.checked
	p := a.newProgress(a.stderr)
	ro.Event = func(e repack.Event) {
		p.event(update.Event{Install: filepath.Base(o.prefix), Stage: e.Stage, Done: e.Done})
	}
	var rest diskspace.Need
	if in.left != nil { // what was free when the download began may be gone
		rest = diskspace.Arriving(in.left())
	}
	if err := a.repackRoom(o.prefix, in.name, rest, in.size); err != nil {
		p.close()
		return attest.end(nil, nil, ro, in.close(fmt.Errorf("repack into %s: %w", o.prefix, err)))
	}
	res, err := repack.Run(ctx, in, o.prefix, ro)
	p.close()
	err = attest.end(res, in, ro, in.close(err))
	var refused *repack.RefusedError
	switch {
	case errors.As(err, &refused):
		a.code = update.ExitRefused
		if a.json {
			a.printJSON(struct {
				*repack.Result
				Error string `json:"error"`
				Exit  int    `json:"exit"`
			}{refused.Result, err.Error(), update.ExitRefused})
		} else {
			refused.Result.Report.Table(a.stderr)
		}
		return err
	case err != nil:
		return err
	case a.json:
		a.printJSON(res)
	default:
		a.printRepack(res, o.prefix)
	}
	return nil
}

// options merges the flags over the config.
func (o repackOptionsFlags) options(cfg *config.Config) (repack.Options, error) {
	r, au := cfg.Repack, cfg.Audit
	over := func(p *string, v string) {
		if v != "" {
			*p = v
		}
	}
	over(&r.Profile, o.profile)
	over(&r.Interpreter, o.interpreter)
	u := cfg.Unpack
	over(&u.Decompressor, o.decompressor)
	over(&au.Scope, o.scope)
	over(&au.Refuse, o.refuse)
	r.InterpreterPath = append(r.InterpreterPath[:len(r.InterpreterPath):len(r.InterpreterPath)], o.interpreterPath...)
	r.AddRPath = append(r.AddRPath[:len(r.AddRPath):len(r.AddRPath)], o.addRPath...)
	r.Omit = slices.Clone(r.Omit)
	for _, name := range o.omit {
		r.Omit = append(r.Omit, config.Part(name))
	}
	check := *cfg
	check.Repack, check.Audit, check.Unpack = r, au, u
	check.Installs = nil // were checked with the config, which may suit them alone
	if err := check.Validate(); err != nil {
		return repack.Options{}, err
	}
	ro := repackOptions(r, au, u)
	ro.Layout, ro.FinalPrefix, ro.Etc = o.layout, o.finalPrefix, o.etc
	switch {
	case o.prefix == "":
		return ro, errors.New("repack: --prefix DIR is missing")
	case o.layout != repack.LayoutRoot && o.layout != repack.LayoutTree:
		return ro, fmt.Errorf("repack: --layout %q is neither root nor tree", o.layout)
	}
	if o.arch != "" {
		target, ok := cfg.GFX.Canonical(o.arch)
		if !ok {
			return ro, fmt.Errorf("repack: --arch %q is no GPU target", o.arch)
		}
		ro.Target = target
	}
	ro.Env = cfg.GFX.Env(ro.Target)
	if ro.Env == nil && len(cfg.Env) > 0 {
		ro.Env = map[string]string{}
	}
	maps.Copy(ro.Env, cfg.Env)
	if o.digest != "" {
		d, err := release.ParseDigest(o.digest)
		if err != nil {
			return ro, fmt.Errorf("repack: --digest: %w", err)
		}
		ro.Expect = []release.Expectation{{Digest: d, Source: "--digest"}}
	}
	return ro, ro.Check(o.prefix)
}

func (a *app) printRepack(r *repack.Result, dir string) {
	fmt.Fprintf(a.stdout, "%s: %d files, %s, in %.1f s\n", dir, r.Files, diskspace.Text(r.Bytes), r.Seconds)
	fmt.Fprintf(a.stdout, "  digest %s\n", r.SRI)
	fmt.Fprintf(a.stdout, "  ELF: %d seen, %d patched, %d skipped; scripts: %d; links: %d, %d dropped\n",
		r.ELF.Seen, r.ELF.Patched, r.ELF.Skipped, r.Scripts, r.Links, r.Dropped)
	if text := omittedText(r); text != "" {
		fmt.Fprintf(a.stdout, "  left out: %s\n", text)
	}
	if len(r.Etc) > 0 {
		fmt.Fprintf(a.stdout, "  etc: %s\n", strings.Join(r.Etc, ", "))
	}
	fmt.Fprintf(a.stdout, "  audit: %d fatal, %d required, %d warnings\n", r.Audit.Fatal, r.Audit.Required, r.Audit.Warnings)
	const shown = 10
	if a.verbose {
		for _, k := range r.Kept {
			fmt.Fprintf(a.stderr, "stays in spite of --omit %s: %s: %s needs it\n", k.Rule, printable(k.Path), printable(k.Needs))
		}
	}
	for i, s := range r.Skips {
		if i == shown && !a.verbose {
			fmt.Fprintf(a.stderr, "left as it is: %d more (-v shows all)\n", len(r.Skips)-shown)
			break
		}
		fmt.Fprintf(a.stderr, "left as it is: %s: %s\n", printable(s.Path), printable(strings.TrimSpace(s.Reason)))
	}
	for i, d := range r.Drops {
		if i == shown && !a.verbose {
			fmt.Fprintf(a.stderr, "dropped: %d more (-v shows all)\n", len(r.Drops)-shown)
			break
		}
		fmt.Fprintf(a.stderr, "dropped: %s: %s\n", printable(d.Path), printable(d.Reason))
	}
}

// omittedText sums up what was left out; "" for nothing.
func omittedText(r *repack.Result) string {
	if len(r.Omitted) == 0 && len(r.Kept) == 0 {
		return ""
	}
	var sum manifest.Tally
	var parts []string
	for _, rule := range slices.Sorted(maps.Keys(r.Omitted)) {
		t := r.Omitted[rule]
		sum.Files, sum.Bytes = sum.Files+t.Files, sum.Bytes+t.Bytes
		parts = append(parts, fmt.Sprintf("%s %s", rule, diskspace.Text(t.Bytes)))
	}
	text := fmt.Sprintf("%d, %s", sum.Files, diskspace.Text(sum.Bytes))
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, ", ") + ")"
	}
	if n := len(r.Kept); n > 0 {
		text += fmt.Sprintf("; needed all the same: %d", n)
	}
	return text
}
