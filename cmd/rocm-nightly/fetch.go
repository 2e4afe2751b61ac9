package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/store"
	"github.com/rocm-nightly/rocm-nightly/unpack"
	"github.com/rocm-nightly/rocm-nightly/update"
)

type fetchOptions struct {
	arch     string
	channel  string
	version  string
	output   string
	digest   string
	ledger   string
	printURL bool

	acceptNewBytes bool
}

func (a *app) fetchCmd() *cobra.Command {
	var o fetchOptions
	c := &cobra.Command{
		Use:   "fetch [TARGET]",
		Short: "Download one tarball, verified, and nothing else",
		Long: `Download the tarball that update would take for TARGET (a gfx name, a family, a
product name, multiarch; left out: the config's install, or the GPU of this
machine), with no store and no root. One that keep_tarballs has kept is taken from
there, also when AMD has deleted it, unless it was uploaded again since or
--accept-new-bytes asks the server. It is read to its end on the way: length,
gzip checksum, end of archive, and every digest that is known of it. An
interrupted download goes on where it was when it is asked for again.`,
		Example: "  rocm-nightly fetch gfx1151\n  rocm-nightly fetch \"RX 7900 XTX\" --version 10.2.0a20260930 -o rocm.tar.gz\n" +
			"  rocm-nightly fetch gfx1151 -o - | rocm-nightly repack - --prefix DIR\n  rocm-nightly fetch gfx1151 --print-url",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := emptyFlag(cmd, "arch", "digest", "ledger", "version", "output", "channel"); err != nil {
				return err
			}
			if len(args) > 0 && args[0] == "" {
				return usage(errors.New("fetch: TARGET is empty: name one, or leave it out"))
			}
			if len(args) > 0 && o.arch != "" {
				return usage(fmt.Errorf("fetch: both TARGET %q and --arch %q are given", args[0], o.arch))
			}
			return a.fetch(cmd.Context(), o, o.arch+strings.Join(args, ""))
		},
	}
	f := c.Flags()
	f.StringVar(&o.arch, "arch", "", "the same as TARGET")
	f.StringVar(&o.channel, "channel", "", "nightly, dev, rc, bkc, stable or asan (default: the install's, or nightly)")
	f.StringVar(&o.version, "version", "", "take this `version` and no other")
	f.StringVarP(&o.output, "output", "o", "", "the `file` or directory to write to, or - for standard output (default: the tarball's name, here)")
	f.StringVar(&o.digest, "digest", "", "the SHA-256 that the tarball must have: sha256:<hex>, <hex>, sha256-<base64> or Nix base-32")
	f.StringVar(&o.ledger, "ledger", "", "what this `file` knows of the tarball must be so, and what is found is added to it")
	f.BoolVar(&o.acceptNewBytes, "accept-new-bytes", false, "take new bytes under a name that the ledger knows with others, and add them to it")
	f.BoolVar(&o.printURL, "print-url", false, "only ask where it is, and whether it is there")
	a.jsonFlag(c)
	return c
}

// fetched is the JSON form of what fetch has done.
type fetched struct {
	Schema       int            `json:"schema"`
	Path         string         `json:"path,omitempty"` // "" with --print-url, - for standard output
	Name         string         `json:"name"`
	URL          string         `json:"url"`
	Channel      string         `json:"channel"`
	Target       string         `json:"target"`
	Family       string         `json:"family"`
	Version      string         `json:"version"`
	MTime        time.Time      `json:"mtime,omitzero"`
	Size         int64          `json:"size"`
	ETag         string         `json:"etag,omitempty"`
	LastModified time.Time      `json:"last_modified,omitzero"`
	Digest       release.Digest `json:"digest,omitempty"` // sha256:<hex>
	Hex          string         `json:"hex,omitempty"`
	SRI          string         `json:"sri,omitempty"`
	Nix32        string         `json:"nix32,omitempty"`
	Checked      []string       `json:"checked,omitempty"` // what it was checked against
	Here         bool           `json:"already_here,omitempty"`
	Stale        *update.Stale  `json:"stale,omitempty"` // the index has not moved for too long; there may be a newer one
}

func (a *app) fetch(ctx context.Context, o fetchOptions, target string) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	if o.printURL && o.output != "" {
		return usage(errors.New("fetch: --print-url downloads nothing, so -o means nothing"))
	}
	if o.output == "/dev/stdout" { // which is a link, and must not be taken for a file
		o.output = "-"
	}
	if a.json && o.output == "-" {
		return usage(errors.New("fetch: standard output cannot hold both the tarball and --json"))
	}
	in, err := fetchInstall(cfg, o, target)
	if err != nil {
		return usage(err)
	}
	p := a.newProgress(a.stderr)
	defer p.close()
	uo := a.updateOptions(cfg, o.version, p.event, a.log(p))
	if o.ledger != "" {
		uo.Ledger = store.OpenLedger(o.ledger)
	}
	uo.AcceptNewBytes, uo.Tarballs = o.acceptNewBytes, a.keptTarballs(cfg)
	found, err := update.Find(ctx, uo, in)
	if err != nil {
		return err
	}
	if o.digest != "" {
		d, err := release.ParseDigest(o.digest)
		if err != nil {
			return usage(fmt.Errorf("fetch: --digest: %w", err))
		}
		found.Expect = append(found.Expect, release.Expectation{Digest: d, Source: "--digest"})
	}
	if s := found.Stale; s != nil {
		a.log(p).Warn("the index is stale", "age", s.Age, "cause", s.Cause, "detail", s.Detail)
	}
	out := fetchedOf(found)
	if o.printURL {
		return a.printURL(ctx, found, out)
	}
	j := &fetchJob{a: a, cfg: cfg, found: found, out: out, ledger: uo.Ledger}
	err = j.run(ctx, o.output)
	p.close()
	if err != nil {
		return err
	}
	return a.printFetched(out)
}

// fetchInstall is the install that a fetch stands for.
func fetchInstall(cfg *config.Config, o fetchOptions, target string) (update.Install, error) {
	var in config.Install
	switch {
	case target != "":
		in = archInstall(cfg, target)
	case len(cfg.Installs) == 1:
		in = cfg.Installs[0]
	case len(cfg.Installs) == 0:
		in = config.Install{Target: "auto", Channel: "nightly"}
	default:
		return update.Install{}, errors.New("fetch: the config has several installs: name a target")
	}
	if o.channel != "" {
		in.Channel = o.channel
	}
	if _, known := cfg.Channels[in.Channel]; !known {
		return update.Install{}, fmt.Errorf("fetch: --channel %q is not one of %s", in.Channel, strings.Join(config.ChannelNames(), ", "))
	}
	return updateInstall(cfg, in), nil
}

func fetchedOf(f *update.Found) *fetched {
	r := f.Release
	return &fetched{
		Schema: 1, Name: r.Name, URL: r.URL, Channel: r.Channel, Target: f.Target, Family: r.Family,
		Version: r.Version.String(), MTime: r.MTime, Stale: f.Stale,
	}
}

// measured adds what was found out about the bytes.
func (f *fetched) measured(d release.Digest, size int64) {
	f.Digest, f.Hex, f.SRI, f.Nix32, f.Size = d, d.Encoded(), release.SRI(d), release.Nix32(d), size
}

func (a *app) printURL(ctx context.Context, found *update.Found, out *fetched) error {
	obj, err := found.Client.Stat(ctx, found.Release)
	if err != nil {
		return err
	}
	out.Size, out.ETag, out.LastModified = obj.Size, obj.ETag, obj.LastModified
	if a.json {
		a.printJSON(out)
		return nil
	}
	fmt.Fprintln(a.stdout, out.URL)
	return nil
}

func (a *app) printFetched(f *fetched) error {
	if a.json {
		a.printJSON(f)
		return nil
	}
	to := a.stdout
	if f.Path == "-" {
		to = a.stderr
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, line := range [][2]string{
		{"path", f.Path}, {"url", f.URL}, {"size", fmt.Sprint(f.Size)}, {"sha256", f.Hex}, {"sri", f.SRI}, {"nix32", f.Nix32},
		{"checked", strings.Join(f.Checked, ", ")},
	} {
		fmt.Fprintf(w, "%s\t%s\n", line[0], printable(line[1]))
	}
	return w.Flush()
}

// fetchJob is one download to a file or to standard output.
type fetchJob struct {
	a      *app
	cfg    *config.Config
	found  *update.Found
	out    *fetched
	ledger *store.Ledger // nil: none
}

func (j *fetchJob) run(ctx context.Context, output string) error {
	to, err := j.destination(output)
	if err != nil {
		return err
	}
	j.out.Path = to.path
	if kept := j.found.Kept; kept != nil && agrees(kept, j.found.Expect) {
		if done, err := j.unkeep(ctx, kept, to); done || err != nil {
			return err
		}
	}
	beside, err := j.a.beside(ctx, j.found.Client, j.found.Release)
	if err != nil {
		return err
	}
	expect := append(j.found.Expect, beside...)
	if !to.stream && len(expect) > 0 {
		if here, err := j.here(to.path, expect); err != nil || here {
			return err
		}
	}
	return j.download(ctx, to, expect)
}

// here reports whether the file is there already, with the digest that it must
// have. What has another one is replaced in the end.
func (j *fetchJob) here(path string, expect []release.Expectation) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, nil // not there, or not to be read: the download tells
	}
	defer f.Close() // opened for reading
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return false, nil
	}
	v := release.NewVerifiedReader(f, expect...)
	if _, err := io.Copy(io.Discard, v); err != nil {
		return false, nil
	}
	j.out.measured(v.Digest(), v.Size())
	j.out.Here = true
	j.out.Checked = []string{"already here"}
	for _, e := range expect {
		j.out.Checked = append(j.out.Checked, e.Source)
	}
	return true, nil
}

// download brings the tarball to where it goes.
func (j *fetchJob) download(ctx context.Context, to destination, expect []release.Expectation) (err error) {
	s, err := j.spool(to)
	if err != nil {
		return err
	}
	allow := j.a.fetchRoom(s.dir, to.stream)
	dl, err := j.found.Client.DownloadIf(ctx, j.found.Release, s.dir, func(ahead fetch.Ahead) error {
		if !to.stream && !ahead.Local { // the spool is ours, and so is what a run that died has left
			_ = os.Remove(s.dir + ".out")
		}
		return allow(ahead)
	})
	if err != nil {
		return errors.Join(err, s.end(!hopeless(err)))
	}
	defer func() { err = errors.Join(err, dl.Close(), s.end(unfinished(err) || isOutput(err))) }()
	v := release.NewVerifiedReader(dl, expect...)
	if to.stream {
		err = j.toStream(ctx, v, to.path)
	} else {
		err = j.toFile(ctx, v, to.path, s.dir+".out")
	}
	if err != nil {
		return fmt.Errorf("fetch %s: %w", j.found.Release.Name, err)
	}
	j.out.measured(v.Digest(), v.Size())
	j.out.ETag, j.out.LastModified = dl.ETag(), dl.LastModified()
	j.out.Checked = update.Against(dl, expect)
	return j.remember(dl)
}

// check reads a tarball to its end, as an installation would.
func (j *fetchJob) check(ctx context.Context, r io.Reader) error {
	u := j.cfg.Unpack
	_, err := unpack.Check(ctx, r, unpack.Options{
		Limits:       unpack.Limits{MaxBytes: int64(u.MaxBytes), MaxEntries: u.MaxEntries, MaxRatio: u.MaxRatio},
		Decompressor: u.Decompressor,
	})
	return err
}

// remember adds a line to the ledger, if there is one.
func (j *fetchJob) remember(dl *fetch.Download) error {
	if j.ledger == nil {
		return nil
	}
	pin := release.Pin{Release: j.found.Release, Digest: j.out.Digest, Size: j.out.Size, ETag: dl.ETag()}
	entry := store.NewLedgerEntry(pin, dl.LastModified())
	entry.FirstSeen = time.Now().UTC()
	return j.ledger.Append(entry)
}

// spool names the directory in which the download is kept until it is whole:
// beside the file, or among the user's caches.
func (j *fetchJob) spool(to destination) (*spool, error) {
	if !to.stream {
		return newSpool(j.found.Release.URL, to.path)
	}
	return newSpool(j.found.Release.URL, filepath.Join(j.a.cacheDir(), "fetch", j.found.Release.Name))
}
