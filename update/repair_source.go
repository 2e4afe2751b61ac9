package update

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// errNoTarball says that a place has no such tarball, which is nothing to speak of.
var errNoTarball = errors.New("it is not there")

// sources lists where the tarball of a generation may be, the nearest first. Every
// one is held to the digest of the manifest.
func (p *repair) sources(about *manifest.Manifest) []tarballSource {
	return []tarballSource{
		{
			name:  "the kept tarball",
			open:  func(context.Context, *task) (io.ReadCloser, error) { return p.kept(about) },
			check: func(ctx context.Context) error { return p.keptHere.Check(ctx) },
		},
		{name: "the download that is here", open: func(context.Context, *task) (io.ReadCloser, error) {
			return openParts(p.r.o.Store.SpoolDir(about.Channel, about.Name), about.Size)
		}},
		{name: "AMD's index", open: func(ctx context.Context, t *task) (io.ReadCloser, error) { return p.published(ctx, t, about) }},
	}
}

// kept opens the kept tarball.
func (p *repair) kept(about *manifest.Manifest) (io.ReadCloser, error) {
	kept, err := p.r.o.Store.KeptDigest(about.Channel, about.Name, release.Digest(about.Digest))
	if err != nil {
		return nil, err
	}
	if kept == nil {
		return nil, errNoTarball
	}
	p.keptHere = kept
	return kept.Open()
}

// parts reads the segments of a download, one after the other.
type parts struct {
	io.Reader
	files []*os.File
}

func (p *parts) Close() error {
	for _, f := range p.files {
		f.Close() // opened for reading
	}
	return nil
}

// maxParts bounds how many segments are opened: a whole download has hundreds.
const maxParts = 4096

// openParts opens a download whose segments are all there, NNNN from 0000 on (see
// package fetch): whether they are the right ones, the digest tells.
func openParts(dir string, size int64) (io.ReadCloser, error) {
	p := &parts{}
	var all []io.Reader
	var have int64
	for i := 0; have < size && i < maxParts; i++ {
		f, err := os.Open(filepath.Join(dir, fmt.Sprintf("%04d", i)))
		if err != nil {
			break
		}
		p.files = append(p.files, f)
		fi, err := f.Stat()
		if err != nil || !fi.Mode().IsRegular() || fi.Size() == 0 {
			break
		}
		have += fi.Size()
		all = append(all, f)
	}
	if have != size || size == 0 {
		return nil, errors.Join(errNoTarball, p.Close())
	}
	p.Reader = io.MultiReader(all...)
	return p, nil
}

// published downloads the tarball, if an index still lists it.
func (p *repair) published(ctx context.Context, t *task, about *manifest.Manifest) (io.ReadCloser, error) {
	l, err := p.r.list(ctx, about.Channel)
	if err != nil {
		return nil, err
	}
	for _, rel := range l.Releases {
		if rel.Name != about.Name {
			continue
		}
		t.rel = rel
		dl, _, err := p.r.download(ctx, rel, func(a fetch.Ahead) error {
			if a.Size != about.Size {
				return fmt.Errorf("%s has %d bytes there, not %d: they are others than were installed", rel.Name, a.Size, about.Size)
			}
			return t.room(ctx, "downloading its tarball for the repair", func() *Room { return t.ahead(diskspace.Incompressible(a.Bytes()), a.Size) })
		})
		p.r.pending[p.r.o.Store.SpoolDir(about.Channel, about.Name)] = true
		t.served() // when it has served it goes with the end of the run
		if err != nil {
			return nil, err
		}
		return dl, nil
	}
	return nil, fmt.Errorf("%s is not listed any more", about.Name)
}
