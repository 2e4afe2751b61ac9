package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"

	"github.com/rocm-nightly/rocm-nightly/internal/ldcache"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// The scopes of an audit.
const (
	ScopeHost = "host" // this machine's libraries and interpreters count
	ScopeTree = "tree" // the tree alone is judged, as inside a build
)

// ErrNotTree is matched when a directory is neither a prefix nor a ROCm tree.
var ErrNotTree = errors.New("not a ROCm tree")

// Options say how a tree is judged. The zero value audits it for this host.
type Options struct {
	// Scope is ScopeHost or ScopeTree; "" is ScopeHost.
	Scope string
	// Files are facts that are already known, with paths relative to the
	// directory. Modes and ELF facts are taken from them.
	Files []manifest.File
	// Omitted are the paths, relative to the directory, of what was left out of
	// it on purpose; nil takes them from omitted.jsonl. What is missing only for
	// that is not held against the tree.
	Omitted []string
	// Profile is "fhs" or "nix"; "" is "fhs". On nix, interpreters in
	// /nix/store are expected even when the store is not this machine's.
	Profile string
	// Version is what the tree should be; "" takes it from manifest.json.
	Version string
	// Target is the GPU whose code is run, such as gfx1151; "" takes it from
	// manifest.json, with what the prefix tells the runtime to take it for. Kernels are only looked for with one target.
	Target string
	// FinalPrefix is the absolute path under which the directory will be
	// used; "" is where it stands. It is no leaked path wherever it is.
	FinalPrefix string
	// GLIBC is the oldest glibc that the tree is to run with, such as 2.28, and
	// GLIBCXX the oldest libstdc++, such as 3.4.25; "" takes that of systems with
	// this glibc. With both "", this host's libraries count, and in ScopeTree no
	// versions but those of the tree's own libraries.
	GLIBC, GLIBCXX string
	// Allow lists findings to leave out.
	Allow []Allow
	// Jobs bounds the parallel work; 0 is GOMAXPROCS.
	Jobs int
	// HostLibDirs are the directories that the loader searches last; nil
	// takes those of this host: ld.so.conf and the built-in ones.
	HostLibDirs []string
	// ScanBinaries also counts binaries that hold paths of build machines.
	// It reads every byte of the tree.
	ScanBinaries bool
}

// Allow leaves out the findings of one rule ("" or "*": of any) under the paths
// that a glob matches. In the glob * stays within a directory, ** does not; a
// path without opt/rocm/ in front is tried within the ROCm tree too.
type Allow struct {
	Rule string `json:"rule"`
	Path string `json:"path"`
}

// rule looks at a whole tree and files what it finds.
type rule func(ctx context.Context, a *auditor) error

// rules are run in this order; the report is sorted afterwards.
var rules = []rule{
	rocmTree, invalidELF, needed, kpack, kernels, deviceLibraries, interpreters, links, leakedPaths, modes, wrappers, rootShape, licenses, manifests, versions,
}

// auditor is the state of one run.
type auditor struct {
	tree      *tree
	host      *host
	scope     string
	profile   string
	version   string
	target    string             // one GPU, or ""
	prefix    *manifest.Manifest // what the prefix says of itself, nil if it says nothing
	badList   error              // why manifest.json cannot be read
	final     string
	jobs      int
	binaries  bool
	omitted   []string
	leftOut   omission // of omittedIn; nil until it is asked for
	floor     floor
	kpackLost bool // the directory of all GPU code is gone, and that is said
	maxWork   int  // steps of the loader at most
	findings  []Finding
	checked   map[string]int
}

// Run audits dir. An error means that the audit could not be made; what is
// wrong with the tree is in the report.
func Run(ctx context.Context, dir string, o Options) (*Report, error) {
	a, allow, err := newAuditor(o)
	if err != nil {
		return nil, fmt.Errorf("audit %s: %w", dir, err)
	}
	if err := a.open(ctx, dir, o.Files); err != nil {
		return nil, fmt.Errorf("audit %s: %w", dir, err)
	}
	defer a.tree.root.Close()
	for _, r := range rules {
		if err := r(ctx, a); err != nil {
			return nil, fmt.Errorf("audit %s: %w", dir, err)
		}
	}
	return a.report(dir, allow), nil
}

// newAuditor checks the options.
func newAuditor(o Options) (*auditor, *allowList, error) {
	a := &auditor{omitted: o.Omitted, scope: o.Scope, profile: o.Profile, version: o.Version, target: o.Target, final: o.FinalPrefix, jobs: o.Jobs, binaries: o.ScanBinaries, maxWork: maxWork, checked: map[string]int{}}
	switch a.scope {
	case "":
		a.scope = ScopeHost
	case ScopeHost, ScopeTree:
	default:
		return nil, nil, fmt.Errorf("unknown scope %q: use %s or %s", o.Scope, ScopeHost, ScopeTree)
	}
	switch a.profile {
	case "", "fhs", "nix":
	default:
		return nil, nil, fmt.Errorf("unknown profile %q: use fhs or nix", o.Profile)
	}
	if a.jobs <= 0 {
		a.jobs = runtime.GOMAXPROCS(0)
	}
	allow, err := newAllowList(o.Allow)
	if err != nil {
		return nil, nil, err
	}
	if a.floor, err = newFloor(o.GLIBC, o.GLIBCXX); err != nil {
		return nil, nil, err
	}
	a.host = newHost()
	if a.scope == ScopeHost {
		if a.host.libDirs = o.HostLibDirs; o.HostLibDirs == nil {
			a.host.libraries(ldcache.Path, "/etc/ld.so.conf")
		}
	}
	return a, allow, nil
}

// open reads the tree.
func (a *auditor) open(ctx context.Context, dir string, files []manifest.File) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	// The real name is what absolute links and run paths are compared with.
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return err
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return err
	}
	t := newTree(root, filepath.ToSlash(abs), files)
	t.own = [][]byte{[]byte(t.abs)}
	if len(a.final) > 1 {
		t.own = append(t.own, []byte(path.Clean(a.final)))
	}
	if err := t.read(ctx, a.jobs); err != nil {
		root.Close()
		return err
	}
	if t.entries["bin"] == nil && t.entries["lib"] == nil && t.entries["opt/rocm"] == nil {
		root.Close()
		return t.notTree()
	}
	a.tree = t
	a.readManifest()
	a.checked["files"] = t.files
	a.checked["links"] = t.links
	return nil
}

// file adds a finding.
func (a *auditor) file(f Finding) { a.findings = append(a.findings, f) }
