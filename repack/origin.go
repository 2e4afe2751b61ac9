package repack

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/omit"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/wrap"
)

// Bounds on what the manifest of another prefix may hold. They are those of a
// tarball's content, where the options have none.
const (
	maxManifest = 64 << 20 // bytes of manifest.json
	maxListing  = 2 << 30  // bytes of files.jsonl
	maxEntries  = 1_000_000
	maxBytes    = 200 << 30
	maxName     = 4096 // bytes of a path, PATH_MAX
)

// origin is what a prefix says of itself.
type origin struct {
	manifest *manifest.Manifest
	files    []manifest.File
	omitted  []manifest.Omission
	digest   release.Digest
}

// readOrigin reads the manifest of src and judges whether a prefix with o can
// have the same tree. It looks at nothing else of src.
func readOrigin(src *os.Root, o Options) (*origin, error) {
	text, err := readSmall(src, manifest.Name, maxManifest)
	if err != nil {
		return nil, unfit("%w", err)
	}
	w := &origin{}
	if w.manifest, err = manifest.Read(bytes.NewReader(text)); err != nil {
		return nil, unfit("%w", err)
	}
	var again bytes.Buffer
	if err := manifest.Write(&again, w.manifest); err != nil || !bytes.Equal(text, again.Bytes()) {
		return nil, unfit("%s is not as this version writes it", manifest.Name)
	}
	if err := w.suits(o); err != nil {
		return nil, unfit("%w", err)
	}
	in, err := openPlain(src, manifest.FilesName)
	if err != nil {
		return nil, unfit("%w", err)
	}
	defer in.Close() // opened for reading
	if err := w.list(in, o); err != nil {
		return nil, unfit("%w", err)
	}
	if err := w.leftOut(src, o); err != nil {
		return nil, unfit("%w", err)
	}
	return w, nil
}

// suits compares the manifest with what o would make.
func (w *origin) suits(o Options) error {
	m := w.manifest
	var err error
	if w.digest, err = release.ParseDigest(m.Digest); err != nil {
		return fmt.Errorf("read %s: %w", manifest.Name, err)
	}
	switch {
	case m.Schema != manifest.Schema:
		return fmt.Errorf("its manifest has schema %d, this version writes %d", m.Schema, manifest.Schema)
	case m.Ruleset != wrap.Ruleset:
		return fmt.Errorf("it was made with ruleset %d, this version has %d", m.Ruleset, wrap.Ruleset)
	case m.SRI != release.SRI(w.digest) || m.Size < 0:
		return fmt.Errorf("its %s contradicts itself", manifest.Name)
	}
	if err := sameShape(m.Options, o.shape()); err != nil {
		return err
	}
	if err := w.sameRecipe(); err != nil {
		return err
	}
	for _, want := range o.Expect {
		if want.Digest != w.digest {
			return fmt.Errorf("it was made of %s, but %s says %s", w.digest, want.Source, want.Digest)
		}
	}
	if len(o.Expect) == 0 && m.Name != "" && o.Release.Name != "" && m.Name != o.Release.Name {
		return fmt.Errorf("it was made of %s", m.Name)
	}
	return nil
}

// sameShape tells whether a prefix whose manifest has options says of its tree
// what want does. Options that this version does not know count as different.
func sameShape(options json.RawMessage, want shape) error {
	text, err := json.Marshal(want)
	if err != nil {
		return fmt.Errorf("describe the options: %w", err)
	}
	var has, wants map[string]any
	if err := errors.Join(json.Unmarshal(options, &has), json.Unmarshal(text, &wants)); err != nil {
		return fmt.Errorf("read the options in %s: %w", manifest.Name, err)
	}
	names := slices.Sorted(maps.Keys(wants))
	for name := range has {
		if _, known := wants[name]; !known {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if (name == "target" || name == "env") && len(omit.ForTarget(want.Omit)) == 0 {
			continue // they are in the files around the tree, which are made anew
		}
		if !reflect.DeepEqual(has[name], wants[name]) {
			return fmt.Errorf("it was made with another %s", strings.ReplaceAll(name, "_", " "))
		}
	}
	return nil
}

// sameRecipe recomputes the recipe, which ties digest and options together.
func (w *origin) sameRecipe() error {
	var s shape
	if err := json.Unmarshal(w.manifest.Options, &s); err != nil {
		return fmt.Errorf("read the options in %s: %w", manifest.Name, err)
	}
	r, err := Recipe(w.digest, Options{
		Layout: s.Layout, Profile: s.Profile, Target: s.Target, RunPath: s.RunPath,
		Interpreter: s.Interpreter, InterpreterPath: s.InterpreterPath, AddRPath: s.AddRPath, Omit: s.Omit, Env: s.Env,
	})
	if err != nil {
		return err
	}
	if r.String() != w.manifest.Recipe {
		return fmt.Errorf("its %s contradicts itself: the recipe is another", manifest.Name)
	}
	return nil
}

// list reads files.jsonl, which must be what this version would write of it:
// that it was read without loss is then certain.
func (w *origin) list(in io.Reader, o Options) (err error) {
	entries := maxEntries
	if o.Limits.MaxEntries > 0 {
		entries = o.Limits.MaxEntries
	}
	err = asWritten(in, manifest.FilesName, func(in io.Reader) (err error) {
		// Around a tree there are about as many links and wrappers as it has
		// programs and top-level names: never more than entries.
		w.files, err = manifest.ReadFiles(&lines{r: in, left: 2*entries + 1000})
		return err
	}, func(out io.Writer) error { return manifest.WriteFiles(out, w.files) })
	if err != nil {
		return err
	}
	if err := checkList(w.files, entries, o.Limits.MaxBytes); err != nil {
		return fmt.Errorf("read %s: %w", manifest.FilesName, err)
	}
	m := &maker{tree: treeDir, files: w.files}
	if manifest.Count(m.ofTree()) != w.manifest.Counts || !maps.Equal(countEdits(w.files), w.manifest.Edits) {
		return fmt.Errorf("%s and %s contradict each other", manifest.Name, manifest.FilesName)
	}
	return nil
}

// asWritten reads a listing, which must be what this version would write of it.
func asWritten(in io.Reader, name string, read func(io.Reader) error, write func(io.Writer) error) error {
	was, now := sha256.New(), sha256.New()
	if err := read(io.TeeReader(io.LimitReader(in, maxListing), was)); err != nil {
		return err
	}
	if err := write(now); err != nil {
		return err
	}
	if !bytes.Equal(was.Sum(nil), now.Sum(nil)) {
		return fmt.Errorf("%s is not as this version writes it", name)
	}
	return nil
}

// lines bounds how many lines are read: each costs much more memory than the
// two bytes that it can be made of.
type lines struct {
	r    io.Reader
	left int
}

func (l *lines) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.left -= bytes.Count(p[:n], []byte("\n")); l.left < 0 {
		return 0, errors.New("it has more lines than a prefix has files")
	}
	return n, err
}

// readSmall reads a file of src whole.
func readSmall(src *os.Root, name string, limit int64) ([]byte, error) {
	f, err := openPlain(src, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", name, limit)
	}
	return text, err
}

// openPlain opens a regular file for reading: no link is followed to it, and
// nothing else that may be in its place is waited for.
func openPlain(dir *os.Root, name string) (*os.File, error) {
	before, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil && !os.SameFile(before, fi) {
		err = fmt.Errorf("%s was replaced meanwhile", name)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
