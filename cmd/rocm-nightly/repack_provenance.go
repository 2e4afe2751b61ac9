package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/provenance"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/repack"
)

// attestation is the file that --provenance names, begun before anything else so
// that a place that cannot be written to is told at once. It appears when the
// prefix is there, or not at all.
type attestation struct {
	file    *renameio.PendingFile // nil: none was asked for
	started time.Time
}

// beginAttestation prepares the file at path; "" prepares nothing.
func beginAttestation(path, prefix string) (*attestation, error) {
	at := &attestation{started: time.Now()}
	if path == "" {
		return at, nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("write provenance: %w", err)
	}
	into, err := filepath.Abs(prefix)
	if err != nil {
		return nil, fmt.Errorf("write provenance: %w", err)
	}
	if abs == into || strings.HasPrefix(abs, into+string(filepath.Separator)) {
		return nil, usage(fmt.Errorf("repack: --provenance %s is in the prefix, which it is about: name a file beside it", path))
	}
	at.file, err = renameio.NewPendingFile(abs, renameio.WithTempDir(filepath.Dir(abs)), renameio.WithStaticPermissions(0o644))
	if err != nil {
		return nil, fmt.Errorf("write provenance: %w", err)
	}
	return at, nil
}

// end writes the statement about res, unless the repack failed with err, which
// is returned.
func (at *attestation) end(res *repack.Result, in *source, o repack.Options, err error) error {
	if at.file == nil {
		return err
	}
	if err != nil {
		return errors.Join(err, at.file.Cleanup())
	}
	text, err := provenance.Statement(at.build(res, in, o))
	if err == nil {
		_, err = at.file.Write(text)
	}
	if err == nil {
		err = at.file.CloseAtomicallyReplace()
	}
	if err != nil {
		return fmt.Errorf("write provenance: %w (the prefix is there, and right)", errors.Join(err, at.file.Cleanup()))
	}
	return nil
}

func (at *attestation) build(res *repack.Result, in *source, o repack.Options) provenance.Build {
	m := res.Manifest
	b := provenance.Build{
		Subjects: []provenance.File{{Name: manifest.FilesName, Digest: res.Listing}},
		Tarball:  provenance.Tarball{Name: in.name, URL: in.url, Digest: res.Digest, Size: res.Size, ETag: in.etag, LastModified: in.modified, Checked: m.Checked},
		Channel:  m.Channel, Target: o.Target, Version: m.Version, Options: m.Options, Ruleset: m.Ruleset, Recipe: release.Digest(m.Recipe),
		Tool: tool(), ID: "repack/" + rand.Text(), Started: at.started, Finished: time.Now(),
	}
	if o.Layout != repack.LayoutTree { // which has no manifest.json
		b.Subjects = append([]provenance.File{{Name: manifest.Name, Digest: res.Described}}, b.Subjects...)
	}
	return b
}
