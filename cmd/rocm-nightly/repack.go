package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/repack"
	"github.com/rocm-nightly/rocm-nightly/update"
)

type repackOptionsFlags struct {
	prefix          string
	finalPrefix     string
	layout          string
	arch            string
	profile         string
	digest          string
	interpreter     string
	interpreterPath []string
	addRPath        []string
	scope           string
	refuse          string
}

func (a *app) repackCmd() *cobra.Command {
	var o repackOptionsFlags
	c := &cobra.Command{
		Use:   "repack SRC --prefix DIR",
		Short: "Turn a tarball into a finished prefix, and nothing else",
		Long: `Turn a ROCm tarball into a finished prefix: unpack, patch, wrap, audit. SRC is a
file, a URL, or - for standard input. DIR must be absent or empty; it appears
with one rename when everything is right, and not at all when anything is not.
This is what a package recipe or a Dockerfile calls; nothing is kept elsewhere.`,
		Example: "  rocm-nightly repack therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz --prefix /opt/rocm-10.2\n" +
			"  curl -fL URL | rocm-nightly repack - --prefix DIR --digest sha256-…",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.repack(cmd.Context(), args[0], o) },
	}
	f := c.Flags()
	f.StringVar(&o.prefix, "prefix", "", "the `directory` to make; required")
	f.StringVar(&o.finalPrefix, "final-prefix", "", "where the prefix will be found, if not at --prefix; written into etc/ and nix-support/ alone")
	f.StringVar(&o.layout, "layout", repack.LayoutRoot, "root: opt/rocm with wrappers, links and hooks; tree: the patched tree alone")
	f.StringVar(&o.arch, "arch", "", "the GPU `target` that this is for")
	f.StringVar(&o.profile, "profile", "", "fhs or nix")
	f.StringVar(&o.digest, "digest", "", "the SHA-256 that the tarball must have: sha256:<hex>, <hex>, sha256-<base64> or Nix base-32")
	f.StringVar(&o.interpreter, "interpreter", "", "the program interpreter (PT_INTERP) to write into executables")
	f.StringArrayVar(&o.interpreterPath, "interpreter-path", nil, "a `directory` in which script interpreters are found (profile nix); may be given again")
	f.StringArrayVar(&o.addRPath, "add-rpath", nil, "a `directory` to add at the end of every run path; may be given again")
	f.StringVar(&o.scope, "audit-scope", "", "host: this machine's libraries and interpreters count; tree: they do not")
	f.StringVar(&o.refuse, "audit-refuse", "", "regression, all or never")
	a.jsonFlag(c)
	return c
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
	in, err := a.openSource(ctx, cfg, src, o.prefix)
	if err != nil {
		return err
	}
	if n, err := release.ParseName(in.name); err == nil {
		ro.Release = release.Release{Name: in.name, Family: n.Family, Version: n.Version, Platform: n.Platform, Tests: n.Tests}
	}
	p := a.newProgress(a.stderr)
	ro.Event = func(e repack.Event) {
		p.event(update.Event{Install: filepath.Base(o.prefix), Stage: e.Stage, Done: e.Done})
	}
	res, err := repack.Run(ctx, in, o.prefix, ro)
	p.close()
	err = in.close(err)
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
	over(&au.Scope, o.scope)
	over(&au.Refuse, o.refuse)
	r.InterpreterPath = append(r.InterpreterPath[:len(r.InterpreterPath):len(r.InterpreterPath)], o.interpreterPath...)
	r.AddRPath = append(r.AddRPath[:len(r.AddRPath):len(r.AddRPath)], o.addRPath...)
	check := *cfg
	check.Repack, check.Audit = r, au
	if err := check.Validate(); err != nil {
		return repack.Options{}, err
	}
	ro := repackOptions(r, au, cfg.Unpack)
	ro.Layout, ro.FinalPrefix = o.layout, o.finalPrefix
	switch {
	case o.prefix == "":
		return ro, errors.New("repack: --prefix DIR is missing")
	case o.layout != repack.LayoutRoot && o.layout != repack.LayoutTree:
		return ro, fmt.Errorf("repack: --layout %q is neither root nor tree", o.layout)
	case o.finalPrefix != "" && !filepath.IsAbs(o.finalPrefix):
		return ro, fmt.Errorf("repack: --final-prefix %q is not an absolute path", o.finalPrefix)
	}
	if o.arch != "" {
		target, ok := gfx.Canonical(o.arch)
		if !ok {
			return ro, fmt.Errorf("repack: --arch %q is no GPU target", o.arch)
		}
		ro.Target = target
	}
	if o.digest != "" {
		d, err := release.ParseDigest(o.digest)
		if err != nil {
			return ro, fmt.Errorf("repack: --digest: %w", err)
		}
		ro.Expect = []release.Expectation{{Digest: d, Source: "--digest"}}
	}
	return ro, nil
}

// source is the tarball to repack. close is told how the repack ended.
type source struct {
	io.Reader
	name  string
	close func(error) error
}

// openSource opens a file, a URL or standard input.
func (a *app) openSource(ctx context.Context, cfg *config.Config, src, prefix string) (*source, error) {
	if src == "-" {
		return &source{a.stdin, "", func(err error) error { return err }}, nil
	}
	if u, err := url.Parse(src); err == nil && (u.Scheme == "https" || u.Scheme == "http") {
		return a.openURL(ctx, cfg, u, prefix)
	}
	f, err := os.Open(src)
	if err != nil {
		return nil, fmt.Errorf("repack: %w", err)
	}
	return &source{f, filepath.Base(src), func(err error) error { return errors.Join(err, f.Close()) }}, nil
}

// openURL downloads into a spool beside the prefix. What an interrupted run
// left there is taken up again; it is removed at the end.
func (a *app) openURL(ctx context.Context, cfg *config.Config, u *url.URL, prefix string) (*source, error) {
	client, err := a.fetchClient(cfg, false, nil)
	if err != nil {
		return nil, err
	}
	abs, err := filepath.Abs(prefix)
	if err != nil {
		return nil, err
	}
	name := path.Base(u.Path)
	id := sha256.Sum256([]byte(u.String()))
	spool := filepath.Join(filepath.Dir(abs), fmt.Sprintf(".%s.download-%x", filepath.Base(abs), id[:8]))
	dl, err := client.Download(ctx, release.Release{Name: name, URL: u.String()}, spool)
	if err != nil {
		return nil, err
	}
	end := func(err error) error {
		var unfinished *fetch.DownloadError
		if err != nil && (errors.As(err, &unfinished) || errors.Is(err, context.Canceled)) {
			return errors.Join(err, dl.Close())
		}
		return errors.Join(err, dl.Discard(), dl.Close(), os.RemoveAll(spool))
	}
	return &source{dl, name, end}, nil
}

func (a *app) printRepack(r *repack.Result, dir string) {
	fmt.Fprintf(a.stdout, "%s: %d files, %s, in %.1f s\n", dir, r.Files, bytesText(r.Bytes), r.Seconds)
	fmt.Fprintf(a.stdout, "  digest %s\n", r.SRI)
	fmt.Fprintf(a.stdout, "  ELF: %d seen, %d patched, %d skipped; scripts: %d; links: %d, %d dropped\n",
		r.ELF.Seen, r.ELF.Patched, r.ELF.Skipped, r.Scripts, r.Links, r.Dropped)
	fmt.Fprintf(a.stdout, "  audit: %d fatal, %d required, %d warnings\n", r.Audit.Fatal, r.Audit.Required, r.Audit.Warnings)
	const shown = 10
	for i, s := range r.Skips {
		if i == shown && !a.verbose {
			fmt.Fprintf(a.stderr, "left as it is: %d more (-v shows all)\n", len(r.Skips)-shown)
			break
		}
		fmt.Fprintf(a.stderr, "left as it is: %s: %s\n", s.Path, strings.TrimSpace(s.Reason))
	}
}

// bytesText is a size for people.
func bytesText(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n)/unit, 0
	for ; v >= unit && i < 3; i++ {
		v /= unit
	}
	return fmt.Sprintf("%.1f %ciB", v, "KMGT"[i])
}
