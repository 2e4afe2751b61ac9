package wrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// treeDir is where the ROCm tree lies in a prefix.
const treeDir = "opt/rocm"

// Options says what a prefix is and where it will live.
type Options struct {
	Profile     string // FHS (the default) or Nix
	FinalPrefix string // absolute; the one place of this machine that is written down, in etc/ and nix-support/
	Version     string // of the release; keys the compiler cache
	Digest      string // of the tarball, "sha256:" and hex; keys the compiler cache
	Target      string // gfx name, published slug or multiarch; named in the environment files
	Shell       string // absolute path of a POSIX shell for the wrappers; "" is /bin/sh
	Readlink    string // readlink(1) for wrappers called through a link; "" is the one in PATH
}

var (
	plainVersion = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+_-]{0,127}$`)
	plainDigest  = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// Finish makes a prefix of an unpacked tree: it adds the links that the tree
// lacks, the wrappers, the root-shaped links, the licenses, the environment files
// and the hooks. files are the tree's entries, with paths relative to the
// prefix; what Finish made is returned in the same form, sorted. Nothing that
// exists is written over: that is an error, and the prefix is then half made.
// Files get mode 0444 or 0555, everything the newest mtime found in files.
func Finish(ctx context.Context, root *os.Root, files []manifest.File, o Options) ([]manifest.File, error) {
	o, err := o.checked()
	if err != nil {
		return nil, fmt.Errorf("finish prefix: %w", err)
	}
	fi, err := root.Stat(treeDir)
	if err != nil {
		return nil, fmt.Errorf("finish prefix: find the ROCm tree: %w", err)
	}
	if !fi.IsDir() {
		return nil, fmt.Errorf("finish prefix: %s is not a directory", treeDir)
	}
	l, err := plan(newTree(files, treeDir), o, func(p string) (bool, error) { return isScript(root, p) })
	if err != nil {
		return nil, fmt.Errorf("finish prefix: %w", err)
	}
	made, err := l.write(ctx, root, newest(files))
	if err != nil {
		return nil, fmt.Errorf("finish prefix: %w", err)
	}
	if err := restoreTimes(root, files); err != nil {
		return nil, fmt.Errorf("finish prefix: %w", err)
	}
	return made, nil
}

// checked fills in defaults and refuses what cannot be written down safely.
func (o Options) checked() (Options, error) {
	switch {
	case o.Profile != "" && o.Profile != FHS && o.Profile != Nix:
		return o, fmt.Errorf("profile %q is not known: use %s or %s", o.Profile, FHS, Nix)
	case !path.IsAbs(o.FinalPrefix):
		return o, fmt.Errorf("final prefix %q is not an absolute path", o.FinalPrefix)
	case strings.ContainsAny(o.FinalPrefix, "\n\r\x00"):
		return o, fmt.Errorf("final prefix %q holds a line end or NUL, which no environment file can say", o.FinalPrefix)
	case strings.Contains(o.FinalPrefix, ":"):
		return o, fmt.Errorf("final prefix %q holds a colon, which no search path can say: choose another directory", o.FinalPrefix)
	case o.Version != "" && !plainVersion.MatchString(o.Version):
		return o, fmt.Errorf("version %q is not one", o.Version)
	case o.Digest != "" && !plainDigest.MatchString(o.Digest):
		return o, fmt.Errorf("digest %q is not sha256: and 64 hex digits", o.Digest)
	case o.Target != "" && !plainVersion.MatchString(o.Target):
		return o, fmt.Errorf("target %q is not one", o.Target)
	}
	o.FinalPrefix = path.Clean(o.FinalPrefix)
	if o.Shell == "" {
		o.Shell = "/bin/sh"
	}
	if o.Readlink == "" {
		o.Readlink = "readlink"
	}
	if !path.IsAbs(o.Shell) || strings.ContainsAny(o.Shell, " \t\n\r\x00") || len("#!"+o.Shell) > maxShebang {
		return o, fmt.Errorf("shell %q cannot stand in a script's first line", o.Shell)
	}
	if strings.ContainsAny(o.Readlink, "\n\r\x00") {
		return o, fmt.Errorf("readlink %q holds a line end or NUL", o.Readlink)
	}
	return o, nil
}

// plan lays out everything that stands around a tree. It writes nothing; script
// tells a script from other executable files.
func plan(t *tree, o Options, script func(treePath string) (bool, error)) (*layout, error) {
	l := newLayout(t)
	l.treeLinks()
	if err := l.binaries(o, script); err != nil {
		return nil, err
	}
	l.licenses()
	l.environmentFiles(o)
	l.hooks(o)
	l.rootLinks()
	return l, l.err
}

// isScript reports whether a file of the tree starts with "#!".
func isScript(root *os.Root, treePath string) (bool, error) {
	f, err := root.Open(treeDir + "/" + treePath)
	if err != nil {
		return false, fmt.Errorf("read the start of %s: %w", treePath, err)
	}
	defer f.Close()
	var head [2]byte
	_, err = io.ReadFull(f, head[:])
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the start of %s: %w", treePath, err)
	}
	return string(head[:]) == "#!", nil
}

// newest is the latest mtime of files, Unix seconds: the clock of a prefix.
func newest(files []manifest.File) int64 {
	var t int64
	for i := range files {
		t = max(t, files[i].MTime)
	}
	return t
}
