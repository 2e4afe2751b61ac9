package repack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rocm-nightly/rocm-nightly/audit"
	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
	"github.com/rocm-nightly/rocm-nightly/internal/omit"
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

// The ways in which Clone shares content.
const (
	DedupAuto     = "auto"
	DedupReflink  = "reflink"
	DedupHardLink = "hardlink"
	DedupOff      = "off"
)

// Options says how a tarball becomes a prefix. The zero Options is AMD's
// tarball made usable on an ordinary Linux.
type Options struct {
	Layout          string   // LayoutRoot (default) or LayoutTree
	Profile         string   // fhs (default) or nix
	RunPath         string   // rpath (default) or runpath
	Interpreter     string   // PT_INTERP to set; "" leaves it
	InterpreterPath []string // where script interpreters are found, for nix
	AddRPath        []string // added at the end of every run path
	Omit            []string // parts of the tarball to leave out, by the names of package omit

	// Env are variables for the environment files and hooks of the prefix, over
	// those that it has: NAME to value, "" to take one of ours away.
	Env map[string]string

	// FinalPrefix is where the prefix will be found; "" is where it is made. With
	// LayoutTree it is the tree itself, and without it or Etc no place is written
	// down.
	FinalPrefix string
	Etc         string // with LayoutTree: a directory that gets what /etc needs to know of the tree; "" for none
	Target      string // gfx name that this is for, if known; the environment files name it
	Release     release.Release

	Expect  []release.Expectation // digests that the tarball must have
	Checked func() []string       // what else was checked of it, once it was read to its end; nil: nothing
	Limits  unpack.Limits
	// Decompressor is unpack.Options.Decompressor; the tree is the same with each.
	Decompressor string
	Audit        AuditOptions
	Baseline     func(context.Context) (*audit.Report, error) // findings that are known already; nil: none
	Event        func(Event)

	// What follows is for Clone alone. Who keeps several prefixes may take Dedup
	// for what it does with those, too.
	Dedup  string // auto (default): reflink, else hard link, else copy; reflink, hardlink: that, else copy; off: copy
	Verify bool   // hash every file that is taken over, and not only as many as fit a small budget
}

// AuditOptions says what the audit looks at and refuses.
type AuditOptions struct {
	Scope  string // host (default) or tree
	Refuse string // regression (default), all or never
	Allow  []audit.Allow
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
	set(&o.Dedup, DedupAuto)
	set(&o.Audit.Scope, audit.ScopeHost)
	set(&o.Audit.Refuse, audit.RefuseRegression)
	if o.Event == nil {
		o.Event = func(Event) {}
	}
	return o
}

// Check reports what of o makes no sense for a prefix at dir, before a byte of
// a tarball is read. It looks at o and at the interpreters that o names, not at
// dir; Vacant does that.
func (o Options) Check(dir string) error {
	_, err := o.ready(dir)
	return err
}

// ready fills in the defaults, those that dir gives too, and checks the whole.
func (o Options) ready(dir string) (Options, error) {
	o = o.withDefaults()
	if o.FinalPrefix == "" && (o.Layout != LayoutTree || o.Etc != "") {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return o, fmt.Errorf("repack: %w", err)
		}
		o.FinalPrefix = abs
	}
	if err := o.check(); err != nil {
		return o, fmt.Errorf("repack: %w", err)
	}
	return o, nil
}

func (o Options) check() error {
	switch {
	case o.Layout != LayoutRoot && o.Layout != LayoutTree:
		return fmt.Errorf("layout %q is neither %s nor %s", o.Layout, LayoutRoot, LayoutTree)
	case o.RunPath != "rpath" && o.RunPath != "runpath":
		return fmt.Errorf("run path %q is neither rpath nor runpath", o.RunPath)
	case o.Profile != "fhs" && o.Profile != "nix":
		return fmt.Errorf("profile %q is neither fhs nor nix", o.Profile)
	case o.Dedup != DedupAuto && o.Dedup != DedupReflink && o.Dedup != DedupHardLink && o.Dedup != DedupOff:
		return fmt.Errorf("dedup %q is none of %s, %s, %s and %s", o.Dedup, DedupAuto, DedupReflink, DedupHardLink, DedupOff)
	case o.FinalPrefix != "" && !filepath.IsAbs(o.FinalPrefix):
		return fmt.Errorf("final prefix %q is not an absolute path", o.FinalPrefix)
	}
	if _, err := omit.New(o.Omit, o.runs()); err != nil {
		return err
	}
	if err := (audit.Options{Scope: o.Audit.Scope, Allow: o.Audit.Allow}).Check(); err != nil {
		return err
	}
	if o.Layout == LayoutTree && o.Etc == "" {
		return nil // nothing is wrapped around it
	}
	if o.Layout == LayoutRoot && o.Etc != "" {
		return errors.New("layout root has its own etc/: leave out --etc, or use --layout tree")
	}
	return o.wrapOptions().Check()
}

// wrapOptions is what wrap gets to know, but for what only the tarball tells.
func (o Options) wrapOptions() wrap.Options {
	w := wrap.Options{Profile: o.Profile, FinalPrefix: o.FinalPrefix, Target: o.Target, Env: o.Env}
	if v := o.Release.Version; !v.IsZero() {
		w.Version = v.String()
	}
	// The wrappers are scripts too: with interpreters of its own, a prefix
	// must not lean on /bin/sh.
	for _, dir := range o.InterpreterPath {
		for name, set := range map[string]*string{"sh": &w.Shell, "readlink": &w.Readlink} {
			file := filepath.Join(dir, name)
			if fi, err := os.Stat(file); *set == "" && err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
				*set = file
			}
		}
	}
	return w
}

func (o Options) shape() shape {
	return shape{o.Layout, o.Profile, o.Target, o.RunPath, o.Interpreter, o.InterpreterPath, o.AddRPath, omit.Canonical(o.Omit), o.Env}
}

// runs is the target whose code runs on the GPU: HSA_OVERRIDE_GFX_VERSION among
// the variables makes it another than Target.
func (o Options) runs() string { return gfx.Overridden(o.Target, o.Env[gfx.OverrideName]) }

// PerTarget reports whether the bytes of the tree depend on Target: then Clone
// cannot make it of that of another.
func (o Options) PerTarget() bool { return len(omit.ForTarget(o.Omit)) > 0 }

func (o Options) tag() patchelf.Tag {
	if o.RunPath == "runpath" {
		return patchelf.RunPath
	}
	return patchelf.RPath
}

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
	Omit            []string `json:"omit,omitempty"` // sorted, each once

	Env map[string]string `json:"env,omitempty"` // shapes etc/ and nix-support/, and by a GPU's override what is left out
}

// Recipe identifies what a prefix is made of: the tarball, the options that
// shape its bytes and the version of the rules. Two prefixes of one recipe on
// one machine differ in nothing but:
//
//   - the final prefix, which etc/, nix-support/ and the compiler's rocm.cfg name;
//   - what Release says, which the same tarball gets from its name: manifest.json
//     has all of it, and the version is in etc/ and, as a part of the compiler
//     cache's name, in the wrappers of bin/.
//
// What InterpreterPath leads to is looked up: another machine may have less in
// those directories. Release is no part of the recipe so that it can be computed
// for what is only listed in an index yet.
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
