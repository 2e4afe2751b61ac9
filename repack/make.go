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
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/audit"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/omit"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/unpack"
	"github.com/rocm-nightly/rocm-nightly/wrap"
)

// maker is the state of one repack.
type maker struct {
	o     Options
	dir   string
	root  *os.Root
	tree  string // opt/rocm, or "" for layout tree
	jobs  int
	start time.Time

	was     *manifest.Manifest // of the prefix that this is a clone of, or nil
	files   []manifest.File    // relative to the prefix
	dropped []manifest.Dropped
	checks  []string  // what the tarball proved of itself
	set     *omit.Set // nil when nothing is to be left out
	omitted []manifest.Omission
	came    map[string]int64 // sizes in the tarball of files that were edited, if anything is to be left out
	res     Result
}

// newMaker opens dir for one repack; o is ready.
func newMaker(dir string, o Options) (*maker, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("repack: %w", err)
	}
	m := &maker{o: o, dir: dir, root: root, jobs: runtime.GOMAXPROCS(0), start: time.Now()}
	if o.Layout == LayoutRoot {
		m.tree = treeDir
	}
	if len(o.Omit) > 0 {
		if m.set, err = omit.New(o.Omit, o.runs()); err != nil {
			return nil, errors.Join(fmt.Errorf("repack: %w", err), root.Close())
		}
	}
	return m, nil
}

// treeDir is where the ROCm tree lies in a prefix of LayoutRoot.
const treeDir = "opt/rocm"

// make does everything, in the order that the package comment promises: what
// gives the tree, and then what is the same wherever the tree came from.
func (m *maker) make(ctx context.Context, tree ...func(context.Context) error) (*Result, error) {
	defer func() { m.res.Seconds = time.Since(m.start).Seconds() }()
	for _, step := range append(tree, m.compiler, m.wrap, m.date, m.describe, m.audit, m.settle) {
		if err := step(ctx); err != nil {
			var refused *RefusedError
			if errors.As(err, &refused) {
				return &m.res, err
			}
			return nil, err
		}
	}
	return &m.res, nil
}

// scripts is the editor of the tree's text files.
func (m *maker) scripts() *wrap.Scripts {
	return wrap.NewScripts(wrap.ScriptOptions{Profile: m.o.Profile, InterpreterPath: m.o.InterpreterPath})
}

// unpack writes the tree and settles the digest.
func (m *maker) unpack(ctx context.Context, src io.Reader) error {
	m.o.Event(Event{Stage: "unpack"})
	treeRoot, err := m.openTree()
	if err != nil {
		return fmt.Errorf("repack: %w", err)
	}
	defer treeRoot.Close()
	scripts := m.scripts()
	verified := release.NewVerifiedReader(src, m.o.Expect...)
	res, err := unpack.Tree(ctx, verified, treeRoot, unpack.Options{
		Limits: m.o.Limits, Decompressor: m.o.Decompressor, Wants: scripts.Wants, Edit: m.edit(scripts), Omit: m.omit(),
		Event: func(e unpack.Event) { m.o.Event(Event{Stage: "unpack", Done: e.Bytes}) },
	})
	if err != nil {
		return omitError(err)
	}
	m.take(res)
	m.unresolved(scripts)
	m.identify(verified.Digest(), verified.Size())
	m.res.Bytes, m.checks, m.res.Decompressor = res.Bytes, res.Checks, res.Decompressor
	return nil
}

// unresolved notes the scripts that nothing can run.
func (m *maker) unresolved(scripts *wrap.Scripts) {
	for _, u := range scripts.Unresolved() {
		m.skip(path.Join(m.tree, u.Path), fmt.Sprintf("interpreter %s: %s", u.Interpreter, u.Reason))
	}
}

// identify says which tarball the tree is of.
func (m *maker) identify(d release.Digest, size int64) {
	m.res.Schema = Schema
	m.res.Digest, m.res.SRI, m.res.Size = d, release.SRI(d), size
}

// openTree opens the directory of the tree, making it first.
func (m *maker) openTree() (*os.Root, error) {
	if err := m.empty(); err != nil {
		return nil, err
	}
	if m.tree == "" {
		return m.root.OpenRoot(".")
	}
	for _, dir := range []string{path.Dir(m.tree), m.tree} {
		if err := m.root.Mkdir(dir, 0o755); err != nil {
			return nil, err
		}
		if err := m.root.Chmod(dir, 0o755); err != nil {
			return nil, err
		}
	}
	return m.root.OpenRoot(m.tree)
}

func (m *maker) empty() error {
	dir, err := m.root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	if names, err := dir.Readdirnames(1); err != io.EOF {
		return errors.Join(fmt.Errorf("%s: %w: %v is in it", m.dir, ErrOccupied, names), err)
	}
	return m.root.Chmod(".", 0o755)
}

// take makes the unpacked files those of the prefix.
func (m *maker) take(res *unpack.Result) {
	if m.tree != "" {
		m.files = append(m.files, manifest.File{Path: path.Dir(m.tree), Kind: manifest.Dir, Mode: 0o755}, manifest.File{Path: m.tree, Kind: manifest.Dir, Mode: 0o755})
	}
	for _, f := range res.Files {
		f.Path = path.Join(m.tree, f.Path)
		if f.Same != "" {
			f.Same = path.Join(m.tree, f.Same)
		}
		m.tally(&f)
		m.files = append(m.files, f)
	}
	for _, d := range res.Dropped {
		d.Path = path.Join(m.tree, d.Path)
		m.dropped = append(m.dropped, d)
	}
	m.res.Dropped, m.res.Drops = len(m.dropped), m.dropped
}

// tally counts one entry of the tarball.
func (m *maker) tally(f *manifest.File) {
	switch f.Kind {
	case manifest.Symlink:
		m.res.Links++
	case manifest.Regular:
		m.res.Files++
	}
	if slices.Contains(f.Edits, wrap.RuleInterpreter) {
		m.res.Scripts++
	}
}

func (m *maker) skip(name, reason string) {
	m.res.Skips = append(m.res.Skips, Skip{name, reason})
}

// wrapOptions is what wrap gets to know, with what the tarball tells.
func (m *maker) wrapOptions() wrap.Options {
	o := m.o.wrapOptions()
	o.Version, o.Digest = m.version(), m.res.Digest.String()
	return o
}

// wrap adds what stands around the tree, and the links that it lacks.
func (m *maker) wrap(ctx context.Context) error {
	m.o.Event(Event{Stage: "wrap"})
	var made []manifest.File
	var err error
	if m.tree == "" {
		made, err = wrap.FinishTree(ctx, m.root, m.files)
		if err == nil {
			err = m.system()
		}
	} else {
		made, err = wrap.Finish(ctx, m.root, m.files, m.wrapOptions())
	}
	if err != nil {
		return err
	}
	m.files = append(m.files, made...)
	manifest.Sort(m.files)
	return nil
}

// describe writes manifest.json and files.jsonl. A tree on its own has none:
// a package manager keeps its own lists.
func (m *maker) describe(context.Context) error {
	recipe, err := Recipe(m.res.Digest, m.o)
	if err != nil {
		return err
	}
	options, err := json.Marshal(m.o.shape())
	if err != nil {
		return fmt.Errorf("describe the prefix: %w", err)
	}
	rel := m.o.Release
	m.res.Manifest = &manifest.Manifest{
		Schema: manifest.Schema, Digest: m.res.Digest.String(), SRI: m.res.SRI, Size: m.res.Size,
		Name: rel.Name, Channel: rel.Channel, Family: rel.Family, Version: m.version(),
		Checked: m.checked(), Recipe: recipe.String(), Ruleset: wrap.Ruleset, Options: options,
		Counts: manifest.Count(m.ofTree()), Edits: countEdits(m.files), Dropped: m.dropped,
		Omitted: m.res.Omitted,
	}
	if m.res.Described, err = m.hashed(manifest.Name, func(w io.Writer) error { return manifest.Write(w, m.res.Manifest) }); err != nil {
		return err
	}
	if m.res.Listing, err = m.hashed(manifest.FilesName, func(w io.Writer) error { return manifest.WriteFiles(w, m.files) }); err != nil {
		return err
	}
	if m.set != nil && m.tree != "" {
		return m.writeFile(manifest.OmittedName, func(w io.Writer) error { return manifest.WriteOmitted(w, m.omitted) })
	}
	return nil
}

// hashed writes a file of ours and returns its digest; a tree on its own has the
// digest alone.
func (m *maker) hashed(name string, write func(io.Writer) error) (release.Digest, error) {
	h := sha256.New()
	var err error
	if m.tree == "" {
		err = write(h)
	} else {
		err = m.writeFile(name, func(w io.Writer) error { return write(io.MultiWriter(w, h)) })
	}
	if err != nil {
		return "", err
	}
	return release.ParseDigest(hex.EncodeToString(h.Sum(nil)))
}

// FirstUse is what is said of bytes that nothing but themselves vouches for.
const FirstUse = "trust on first use"

// checked lists what the tarball was checked against. Of a clone that is what
// is on record of its origin, and the digests that were expected of that.
func (m *maker) checked() []string {
	var checked []string
	if m.o.Checked != nil {
		checked = m.o.Checked()
	}
	checked = append(checked, m.checks...)
	if m.was != nil {
		checked = slices.DeleteFunc(slices.Clone(m.was.Checked), func(c string) bool { return c == FirstUse })
	}
	vouched := m.was != nil && !slices.Contains(m.was.Checked, FirstUse)
	for _, e := range m.o.Expect {
		vouched = true
		if v := e.Vouch(); !slices.Contains(checked, v) {
			checked = append(checked, v)
		}
	}
	if !vouched {
		checked = append(checked, FirstUse)
	}
	return checked
}

// ofTree lists the files that are the tarball's, and the links that it lacked.
func (m *maker) ofTree() []manifest.File {
	var files []manifest.File
	for _, f := range m.files {
		if m.tree == "" || strings.HasPrefix(f.Path, m.tree+"/") {
			files = append(files, f)
		}
	}
	return files
}

// version is the release's, or what the tree says of itself when it came
// without a name, as through a pipe.
func (m *maker) version() string {
	if v := m.o.Release.Version; !v.IsZero() {
		return v.String()
	}
	f, err := m.root.Open(path.Join(m.tree, "share/therock/therock_manifest.json"))
	if err != nil {
		return ""
	}
	defer f.Close()
	var says struct {
		Version release.Version `json:"rocm_package_version"`
	}
	if err := json.NewDecoder(io.LimitReader(f, 1<<20)).Decode(&says); err != nil {
		return ""
	}
	return says.Version.String()
}

func countEdits(files []manifest.File) map[string]int {
	edits := map[string]int{}
	for _, f := range files {
		if f.Same != "" {
			continue // counted with the first name of the inode
		}
		for _, rule := range f.Edits {
			edits[rule]++
		}
	}
	return edits
}

func (m *maker) writeFile(name string, write func(io.Writer) error) (err error) {
	f, err := m.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o444)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := write(f); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return f.Chmod(0o444)
}

// audit judges the tree before anybody sees it.
func (m *maker) audit(ctx context.Context) error {
	m.o.Event(Event{Stage: "audit"})
	report, err := audit.Run(ctx, m.dir, audit.Options{
		Scope: m.o.Audit.Scope, Allow: m.o.Audit.Allow, Files: m.files, Profile: m.o.Profile,
		Version: m.version(), Target: m.o.runs(), FinalPrefix: m.o.FinalPrefix, Jobs: m.jobs, Omitted: m.absent(),
	})
	if err != nil {
		return err
	}
	m.res.Report = report
	for _, f := range report.Findings {
		switch f.Severity {
		case audit.Fatal:
			m.res.Audit.Fatal++
		case audit.Required:
			m.res.Audit.Required++
		default:
			m.res.Audit.Warnings++
		}
	}
	bad := report.Refused(nil, m.o.Audit.Refuse)
	if len(bad) > 0 && m.o.Baseline != nil {
		base, err := m.o.Baseline(ctx)
		if err != nil {
			return fmt.Errorf("audit what is active, to compare with: %w", err)
		}
		bad = report.Refused(base, m.o.Audit.Refuse)
	}
	if len(bad) > 0 {
		m.res.Audit.Refused = true
		return &RefusedError{Findings: bad, Result: &m.res}
	}
	return nil
}
