package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/audit/diff"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/store"
	"github.com/rocm-nightly/rocm-nightly/update"
)

type diffOptions struct {
	format   string
	limit    int
	exitCode bool
	schema   bool
}

func (a *app) diffCmd() *cobra.Command {
	var o diffOptions
	c := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two ROCm trees: what may break, and what has changed",
		Long: `Say what a reviewer needs to know before B takes the place of A: GPU code,
libraries, symbols and programs that are gone, what is newly asked of the host,
the compiler's configuration, versions and commits, and the files. Nothing is
executed. Paths are relative to the ROCm tree; docs/diff.md explains the report.

A and B are each
  - a generation: 10.2.0a20260930, current or previous where there is one slot,
    else nightly-gfx1151/10.2.0a20260930, gfx1151/current …; see status
  - a directory with a slash in its name: a prefix, or any ROCm tree (/opt/rocm)
  - the files.jsonl of a prefix, alone or beside its manifest.json: it is
    compared by what it lists

Exit code 0 when they were compared, whatever was found; with --exit-code 1
where something may break.`,
		Example: "  rocm-nightly diff previous current\n  rocm-nightly diff /opt/rocm/ ./new --format markdown\n  rocm-nightly diff old/files.jsonl new/files.jsonl --json",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.schema {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(2)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.schema {
				return a.diffSchema()
			}
			return a.diff(cmd.Context(), args[0], args[1], o)
		},
	}
	c.Flags().StringVar(&o.format, "format", "", "text, markdown (for the body of a pull request) or json")
	c.Flags().IntVar(&o.limit, "limit", 0, "write at most so many `bytes` of markdown (default 65536, GitHub's limit)")
	c.Flags().BoolVar(&o.exitCode, "exit-code", false, "exit with 1 where something may break")
	c.Flags().BoolVar(&o.schema, "schema", false, "print the JSON schema of --json, and compare nothing")
	a.jsonFlag(c)
	return c
}

func (a *app) diff(ctx context.Context, one, two string, o diffOptions) error {
	switch {
	case o.format == "":
		o.format = "text"
	case o.format != "text" && o.format != "markdown" && o.format != "json":
		return usage(fmt.Errorf("diff: --format %q is not one of text, markdown, json", o.format))
	case a.json && o.format != "json":
		return usage(fmt.Errorf("diff: --json and --format %s are two formats: choose one", o.format))
	}
	if a.json = a.json || o.format == "json"; o.limit < 0 {
		return usage(fmt.Errorf("diff: --limit %d: give the number of bytes", o.limit))
	}
	from, err := a.diffSource(one)
	if err != nil {
		return err
	}
	to, err := a.diffSource(two)
	if err != nil {
		return err
	}
	r, err := diff.Compare(ctx, from, to, diff.Options{})
	if err != nil {
		return err
	}
	if o.exitCode && len(r.Risks) > 0 {
		a.code = update.ExitFailed
	}
	switch {
	case a.json:
		a.printJSON(r)
		return nil
	case o.format == "markdown":
		return r.Markdown(a.stdout, o.limit)
	}
	return r.Text(a.stdout)
}

// diffSource finds what an argument means: a list, current or previous, or
// what dedup-report takes.
func (a *app) diffSource(arg string) (diff.Source, error) {
	if fi, err := os.Stat(arg); err == nil && fi.Mode().IsRegular() && strings.HasSuffix(arg, ".jsonl") {
		return diff.Source{Name: arg, Dir: filepath.Dir(arg), List: filepath.Base(arg)}, nil
	}
	if fi, err := os.Stat(arg); err == nil && fi.Mode().IsRegular() && filepath.Base(arg) == manifest.Name {
		return diff.Source{Name: arg, Dir: filepath.Dir(arg), List: manifest.FilesName}, nil
	}
	if slot, which, ok := stateName(arg); ok {
		dir, err := a.stateDir(slot, which)
		if err == nil {
			return diff.Source{Name: filepath.Base(dir), Dir: dir}, nil
		}
		if fi, serr := os.Stat(arg); slot == "" || serr != nil || !fi.IsDir() {
			return diff.Source{}, fmt.Errorf("find %s: %w", arg, err)
		}
	}
	if filepath.IsAbs(arg) {
		return diff.Source{Name: arg, Dir: arg}, nil
	}
	dir, err := a.prefixOf(arg)
	if err != nil {
		return diff.Source{}, err
	}
	return diff.Source{Name: arg, Dir: dir}, nil
}

// stateName takes SLOT/current, previous and the like apart.
func stateName(arg string) (slot, which string, ok bool) {
	slot, which, full := strings.Cut(arg, "/")
	if !full {
		slot, which = "", arg
	}
	ok = (which == "current" || which == "previous") && slot != "." && slot != ".." && (slot != "" || !full)
	return slot, which, ok
}

// stateDir is the directory of the generation that is active in a slot, or that
// was active before.
func (a *app) stateDir(slot, which string) (string, error) {
	st, err := a.store()
	if err != nil {
		return "", err
	}
	sl, err := st.FindSlot(slot)
	if err != nil {
		return "", err
	}
	cur, err := sl.Current()
	if err != nil {
		return "", err
	}
	if cur == nil {
		return "", fmt.Errorf("nothing is active in %s (choose one with: use, or update)", sl.Name())
	}
	if which == "current" {
		return cur.Dir, nil
	}
	return previousDir(sl, cur.Name)
}

// previousDir is the directory of the generation that was active before cur and
// is still here.
func previousDir(sl *store.Slot, cur string) (string, error) {
	state, err := sl.State()
	if err != nil {
		return "", err
	}
	if name := state.Previous(cur); name != "" {
		g, err := sl.Generation(name)
		if err != nil {
			return "", err
		}
		return g.Dir, nil
	}
	return "", errors.New("no other generation was active before that is still here; name one (see: status)")
}

// diffSchema prints the JSON schema of a report.
func (a *app) diffSchema() error {
	s, err := jsonschema.For[diff.Report](nil)
	if err != nil {
		return fmt.Errorf("make schema: %w", err)
	}
	noNulls(s)
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.Title = "rocm-nightly diff --json"
	a.printJSON(s)
	return nil
}

// noNulls says that lists are lists: a report has no null for one.
func noNulls(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if slices.Equal(s.Types, []string{"null", "array"}) {
		s.Types, s.Type = nil, "array"
	}
	noNulls(s.Items)
	for _, sub := range s.Properties {
		noNulls(sub)
	}
}
