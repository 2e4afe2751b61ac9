package demo

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// NightOptions says which night to make.
type NightOptions struct {
	Version string    // as AMD writes it: 10.2.0a20260930
	Family  string    // the slug in the file name; "" is gfx1151
	Date    time.Time // when the night was published; zero is noon UTC of the day in Version

	// Compiler builds the programs. "" takes the first of cc, gcc and clang
	// that is there and works, and else programs of this machine; "none" takes
	// those at once; anything else must work.
	Compiler string

	Noise int // bytes that do not compress, the same in every night, for those who want a larger one
}

// Programs are the commands of a night, relative to its tree, with arguments.
// They run once the tarball is repacked, exit 0 and print one line or more;
// the first prints the version of the night.
func Programs() [][]string {
	return [][]string{{"bin/rocm-version"}, {"bin/rocm-hello", "--version"}}
}

// Night makes a tarball named as AMD's are in dir, and returns its path. The
// file appears by one rename, with the date of the night as its time.
func Night(ctx context.Context, dir string, o NightOptions) (path string, err error) {
	n, err := newNight(o)
	if err != nil {
		return "", fmt.Errorf("make night: %w", err)
	}
	work, err := os.MkdirTemp(dir, ".night-*")
	if err != nil {
		return "", fmt.Errorf("make night: %w", err)
	}
	defer func() {
		if rerr := os.RemoveAll(work); err == nil {
			err = rerr
		}
	}()
	n.addContent()
	if o.Noise > 0 {
		n.tree.File("share/noise/noise.bin", 0o644, noise(sha256.Sum256([]byte("noise")), o.Noise))
	}
	if err := n.addPrograms(ctx, work, o.Compiler); err != nil {
		return "", fmt.Errorf("make night: %w", err)
	}
	path = filepath.Join(dir, n.name.String())
	made := filepath.Join(work, "tarball")
	if err := writeFile(made, n.tree, n.date); err != nil {
		return "", fmt.Errorf("make night: %w", err)
	}
	if err := os.Rename(made, path); err != nil {
		return "", fmt.Errorf("make night: %w", err)
	}
	return path, nil
}

// night is one that is being made.
type night struct {
	name release.Name
	gpus []string // that it holds kernels for
	date time.Time
	tree *Tree
}

func newNight(o NightOptions) (*night, error) {
	v, err := release.ParseVersion(o.Version)
	if err != nil {
		return nil, err
	}
	n := &night{name: release.Name{Platform: "linux", Family: o.Family, Version: v}, date: o.Date}
	if n.name.Family == "" {
		n.name.Family = "gfx1151"
	}
	if parsed, err := release.ParseName(n.name.String()); err != nil {
		return nil, err
	} else if parsed.Family != n.name.Family || parsed.Tests {
		return nil, fmt.Errorf("%q is not the slug of a family", o.Family)
	}
	if n.date.IsZero() {
		day, ok := v.Date()
		if !ok {
			return nil, fmt.Errorf("version %s has no date in it: give the date", v)
		}
		n.date = day.Add(12 * time.Hour)
	}
	n.gpus = gpusOf(n.name.Family)
	n.tree = &Tree{
		RootMode: 0o775, // the builder's umask
		MTime:    n.date.Add(-time.Hour).Truncate(time.Second),
		UID:      1004, GID: 1004, User: "rocm-signer", Group: "rocm-signer", // seen in AMD's packages
	}
	return n, nil
}

// gpusOf returns GPUs that a family's kernels are for: not all, some.
func gpusOf(family string) []string {
	if family == "multiarch" {
		return []string{"gfx1100", "gfx1151"}
	}
	slug, _, _ := strings.Cut(family, "-")
	if stem, ok := strings.CutSuffix(slug, "X"); ok {
		return []string{stem + "0", stem + "1"}
	}
	return []string{slug}
}

func writeFile(path string, tree *Tree, date time.Time) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	err = WriteTarball(f, tree)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Chtimes(path, date, date)
}
