package repack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/rocm-nightly/rocm-nightly/audit"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/patchelf"
	"github.com/rocm-nightly/rocm-nightly/unpack"
	"github.com/rocm-nightly/rocm-nightly/wrap"
)

// The layouts of a prefix.
const (
	LayoutRoot = "root" // like a generation: opt/rocm, wrappers, links, hooks
	LayoutTree = "tree" // the patched tree alone
)

// Schema is the version of Result's JSON form.
const Schema = 1

// Options says how a tarball becomes a prefix. The zero Options is AMD's
// tarball made usable on an ordinary Linux.
type Options struct {
	Layout          string   // LayoutRoot (default) or LayoutTree
	Profile         string   // fhs (default) or nix
	RunPath         string   // rpath (default) or runpath
	Interpreter     string   // PT_INTERP to set; "" leaves it
	InterpreterPath []string // where script interpreters are found, for nix
	AddRPath        []string // added at the end of every run path

	FinalPrefix string // where the prefix will be found; "" is where it is made
	Target      string // gfx name that this is for, if known; the environment files name it
	Release     release.Release

	Expect   []release.Expectation // digests that the tarball must have
	Limits   unpack.Limits
	Audit    AuditOptions
	Baseline func(context.Context) (*audit.Report, error) // findings that are known already; nil: none
	Event    func(Event)
}

// AuditOptions says what the audit looks at and refuses.
type AuditOptions struct {
	Scope  string // host (default) or tree
	Refuse string // regression (default), all or never
	Allow  []audit.Allow
}

// Event is progress: a stage begins, or has come so far.
type Event struct {
	Stage string // unpack, patch, wrap, audit
	Done  int64  // bytes of content written, for unpack
}

// Result is what became of a tarball.
type Result struct {
	Schema  int            `json:"schema"`
	Digest  release.Digest `json:"digest"`
	SRI     string         `json:"sri"`
	Size    int64          `json:"size"`  // of the tarball, bytes
	Files   int            `json:"files"` // regular files of the tarball
	Bytes   int64          `json:"bytes"` // their content
	ELF     ELFCounts      `json:"elf"`
	Scripts int            `json:"scripts"` // script interpreters rewritten
	Links   int            `json:"links"`   // symlinks of the tarball that are in the tree
	Dropped int            `json:"dropped"` // links of the tarball that are not
	Audit   Verdict        `json:"audit"`
	Seconds float64        `json:"seconds"`
	Skips   []Skip         `json:"skips,omitempty"`

	Manifest *manifest.Manifest `json:"-"`
	Report   *audit.Report      `json:"-"`
}

// ELFCounts counts ELF files, each inode once: those seen, those edited, and
// those that an edit was planned for but that were left as they are.
type ELFCounts struct {
	Seen    int `json:"seen"`
	Patched int `json:"patched"`
	Skipped int `json:"skipped"`
}

// Skip is a file that was left as it is, and why.
type Skip struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Verdict sums up the audit.
type Verdict struct {
	Refused  bool `json:"refused"`
	Fatal    int  `json:"fatal"`
	Required int  `json:"required"`
	Warnings int  `json:"warnings"`
}

// RefusedError says that the audit refused the tree.
type RefusedError struct {
	Findings []audit.Finding // those that it was refused for
	Result   *Result
}

func (e *RefusedError) Error() string {
	if len(e.Findings) == 0 {
		return "the audit refused the tree"
	}
	f := e.Findings[0]
	more := ""
	if n := len(e.Findings) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return fmt.Sprintf("the audit refused the tree: %s: %s: %s%s", f.Rule, f.Path, f.Detail, more)
}

// ErrOccupied is matched when the prefix to make is already there.
var ErrOccupied = errors.New("it is not empty")

// shape is what of the options shapes the bytes of a prefix, in the form in
// which the manifest holds it. FinalPrefix is left out: it names this machine.
type shape struct {
	Layout          string   `json:"layout"`
	Profile         string   `json:"profile"`
	Target          string   `json:"target,omitempty"`
	RunPath         string   `json:"run_path"`
	Interpreter     string   `json:"interpreter,omitempty"`
	InterpreterPath []string `json:"interpreter_path,omitempty"`
	AddRPath        []string `json:"add_rpath,omitempty"`
}

// withDefaults fills in what the zero value means.
func (o Options) withDefaults() Options {
	set := func(p *string, value string) {
		if *p == "" {
			*p = value
		}
	}
	set(&o.Layout, LayoutRoot)
	set(&o.Profile, "fhs")
	set(&o.RunPath, "rpath")
	set(&o.Audit.Scope, audit.ScopeHost)
	set(&o.Audit.Refuse, audit.RefuseRegression)
	if o.Event == nil {
		o.Event = func(Event) {}
	}
	return o
}

func (o Options) check() error {
	switch {
	case o.Layout != LayoutRoot && o.Layout != LayoutTree:
		return fmt.Errorf("layout %q is neither %s nor %s", o.Layout, LayoutRoot, LayoutTree)
	case o.RunPath != "rpath" && o.RunPath != "runpath":
		return fmt.Errorf("run path %q is neither rpath nor runpath", o.RunPath)
	case o.Profile != "fhs" && o.Profile != "nix":
		return fmt.Errorf("profile %q is neither fhs nor nix", o.Profile)
	}
	return nil
}

func (o Options) shape() shape {
	return shape{o.Layout, o.Profile, o.Target, o.RunPath, o.Interpreter, o.InterpreterPath, o.AddRPath}
}

func (o Options) tag() patchelf.Tag {
	if o.RunPath == "runpath" {
		return patchelf.RunPath
	}
	return patchelf.RPath
}

// Recipe identifies what a prefix is made of: the tarball, the options that
// shape its bytes and the version of the rules. Two prefixes of one recipe
// differ in nothing but the final prefix that their etc/ names.
func Recipe(d release.Digest, o Options) (release.Digest, error) {
	text, err := json.Marshal(struct {
		Digest  release.Digest `json:"digest"`
		Ruleset int            `json:"ruleset"`
		Options shape          `json:"options"`
	}{d, wrap.Ruleset, o.withDefaults().shape()})
	if err != nil {
		return "", fmt.Errorf("compute recipe: %w", err)
	}
	sum := sha256.Sum256(text)
	return release.ParseDigest(hex.EncodeToString(sum[:]))
}

// Run makes dir, which must be absent or empty, from the tarball that src
// yields. It is staged beside dir and appears with one rename.
func Run(ctx context.Context, src io.Reader, dir string, o Options) (*Result, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("repack: %w", err)
	}
	if o.FinalPrefix == "" {
		o.FinalPrefix = dir
	}
	s, err := stageBeside(dir)
	if err != nil {
		return nil, fmt.Errorf("repack into %s: %w", dir, err)
	}
	res, err := Into(ctx, src, s.dir, o)
	if err != nil {
		return nil, errors.Join(err, s.abort())
	}
	if err := s.commit(dir); err != nil {
		return nil, fmt.Errorf("repack into %s: %w", dir, errors.Join(err, s.abort()))
	}
	return res, nil
}

// Into makes the prefix in dir itself, which must be an empty directory. On
// error its content must be thrown away. The caller makes it durable.
func Into(ctx context.Context, src io.Reader, dir string, o Options) (*Result, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("repack: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("repack: %w", err)
	}
	defer root.Close()
	m := &maker{o: o, dir: dir, root: root, jobs: runtime.GOMAXPROCS(0), start: time.Now()}
	if o.Layout == LayoutRoot {
		m.tree = "opt/rocm"
	}
	res, err := m.make(ctx, src)
	if err != nil {
		var refused *RefusedError
		if errors.As(err, &refused) {
			return res, err
		}
		return nil, err
	}
	return res, nil
}
