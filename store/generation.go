package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// Generation is one prefix in a slot, complete: what is not complete is not
// under a generation's name.
type Generation struct {
	Name      string    // 10.2.0a20260930, or …-r2 for the second of one version
	Version   string    // Name without -rN; never parsed here but to order
	Dir       string    // absolute
	Active    bool      // current points to it
	Installed time.Time // when it was committed, UTC
}

// GenerationError says that a slot has no such generation.
type GenerationError struct {
	Slot string
	Name string   // as given
	Have []string // names, oldest first
}

func (e *GenerationError) Error() string {
	if len(e.Have) == 0 {
		return fmt.Sprintf("nothing is installed in %s (try: update)", e.Slot)
	}
	return fmt.Sprintf("%q is not installed in %s; there is %s", e.Name, e.Slot, strings.Join(e.Have, ", "))
}

// Manifest reads the generation's manifest.json. A generation without one
// gives an error that matches fs.ErrNotExist.
func (g *Generation) Manifest() (*manifest.Manifest, error) {
	return readManifest(g.Dir)
}

// Files reads the generation's files.jsonl.
func (g *Generation) Files() ([]manifest.File, error) {
	f, err := os.Open(filepath.Join(g.Dir, manifest.FilesName))
	if err != nil {
		return nil, fmt.Errorf("read files of %s: %w", g.Name, err)
	}
	defer f.Close()
	files, err := manifest.ReadFiles(f)
	if err != nil {
		return nil, fmt.Errorf("read files of %s: %w", g.Name, err)
	}
	return files, nil
}

// Size returns the bytes of content that the manifest counts. It does not
// look at the disk: it is instant, and what the generation shares with others
// is counted in full.
func (g *Generation) Size() (int64, error) {
	m, err := g.Manifest()
	if err != nil {
		return 0, err
	}
	return m.Counts.Bytes, nil
}

func readManifest(dir string) (m *manifest.Manifest, err error) {
	err = freshOnce(func() error {
		m, err = readManifestOnce(dir)
		return err
	})
	return m, err
}

func readManifestOnce(dir string) (*manifest.Manifest, error) {
	f, err := os.Open(filepath.Join(dir, manifest.Name))
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	defer f.Close()
	m, err := manifest.Read(f)
	if err != nil {
		return nil, fmt.Errorf("in %s: %w", dir, err)
	}
	return m, nil
}

// recipeOf returns the recipe of the prefix at dir, "" if it has no manifest.
func recipeOf(dir string) (string, error) {
	m, err := readManifest(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return m.Recipe, nil
}

// ErrBroken is matched when current does not lead to a generation: somebody has
// changed the slot by hand. The next Activate mends it.
var ErrBroken = errors.New("current is broken")

// Current returns the active generation, or nil if nothing was ever
// activated. It takes no lock: current is replaced, never absent.
func (sl *Slot) Current() (*Generation, error) {
	if sl.err != nil {
		return nil, sl.err
	}
	name, err := sl.currentName()
	if err != nil || name == "" {
		return nil, err
	}
	st, err := sl.readState()
	if err != nil {
		st = &State{} // who only asks what is active can do without
	}
	g := sl.generation(name, st)
	g.Active = true
	return &g, nil
}

// currentName reads the symlink current; "" if there is none.
func (sl *Slot) currentName() (string, error) {
	var target string
	err := freshOnce(func() (err error) {
		target, err = os.Readlink(sl.path(currentName))
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read what is active in %s: %w: %w", sl.Name(), ErrBroken, err)
	}
	dir, name := path.Split(target)
	if dir != generationsName+"/" || checkName("generation", name) != nil {
		return "", fmt.Errorf("read what is active in %s: %w: it points to %q, which is no generation (choose one with: use, or update)", sl.Name(), ErrBroken, target)
	}
	fi, err := os.Lstat(sl.path(generationsName, name))
	if err != nil || !fi.IsDir() {
		return "", fmt.Errorf("read what is active in %s: %w: it points to %s, which is gone (choose another with: use, or update)", sl.Name(), ErrBroken, name)
	}
	return name, nil
}

// Generations returns what is installed, active or not, in the order of
// installation: the newest last. Where the state file was lost, that is the
// order of versions and revisions. It takes no lock.
func (sl *Slot) Generations() ([]Generation, error) {
	if sl.err != nil {
		return nil, sl.err
	}
	v, err := sl.look()
	if err != nil {
		return nil, fmt.Errorf("list generations of %s: %w", sl.Name(), err)
	}
	gens := make([]Generation, 0, len(v.state.Installed))
	for _, in := range v.state.Installed {
		g := sl.generation(in.Generation, v.state)
		g.Active = in.Generation == v.current
		gens = append(gens, g)
	}
	return gens, nil
}

// Generation returns what version names: a generation, or a version, of which
// the newest revision is meant. Otherwise the error is a *GenerationError. It
// takes no lock.
func (sl *Slot) Generation(version string) (*Generation, error) {
	if sl.err != nil {
		return nil, sl.err
	}
	v, err := sl.look()
	if err != nil {
		return nil, fmt.Errorf("find %s in %s: %w", version, sl.Name(), err)
	}
	name, err := sl.find(v, version)
	if err != nil {
		return nil, err
	}
	g := sl.generation(name, v.state)
	g.Active = name == v.current
	return &g, nil
}

// generation describes one that is on disk.
func (sl *Slot) generation(name string, st *State) Generation {
	g := Generation{Name: name, Dir: sl.path(generationsName, name)}
	g.Version, _ = versionOf(name)
	for _, in := range st.Installed {
		if in.Generation == name {
			g.Installed = in.At
			return g
		}
	}
	if fi, err := os.Stat(g.Dir); err == nil {
		g.Installed = fi.ModTime().UTC() // set by Commit
	}
	return g
}

// generationNames lists the directory, in no useful order.
func (sl *Slot) generationNames() ([]string, error) {
	entries, err := os.ReadDir(sl.path(generationsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && checkName("generation", e.Name()) == nil {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// compareVersions orders two versions as releases are ordered; ok is false
// where there is no order: they differ, and are builds of a commit or no
// versions of AMD's at all.
func compareVersions(a, b string) (c int, ok bool) {
	if a == b {
		return 0, true
	}
	v, errA := release.ParseVersion(a)
	w, errB := release.ParseVersion(b)
	if errA != nil || errB != nil {
		return 0, false
	}
	c = v.Compare(w)
	return c, c != 0
}

// compareNames puts generations' names in a total order: what is no version
// first, then by version, then by revision.
func compareNames(a, b string) int {
	va, ra := versionOf(a)
	vb, rb := versionOf(b)
	pa, errA := release.ParseVersion(va)
	pb, errB := release.ParseVersion(vb)
	switch {
	case errA != nil && errB == nil:
		return -1
	case errA == nil && errB != nil:
		return 1
	case errA == nil:
		if c := pa.Compare(pb); c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(va, vb), cmp.Compare(ra, rb), cmp.Compare(a, b))
}
