package update

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/provenance"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// describe adds to the record of a run what only the finished tree in dir tells.
func (rec *Record) describe(dir string) error {
	m, err := readManifest(dir)
	if err != nil {
		return err
	}
	rec.Ruleset = m.Ruleset
	rec.Digests = map[string]release.Digest{}
	for _, name := range []string{manifest.Name, manifest.FilesName, manifest.OmittedName} {
		d, err := digestOf(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) && name == manifest.OmittedName {
			continue
		}
		if err != nil {
			return err
		}
		rec.Digests[name] = d
	}
	return nil
}

// digestOf hashes a file.
func digestOf(path string) (release.Digest, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return release.ParseDigest(hex.EncodeToString(h.Sum(nil)))
}

// attest records what a new generation is, and keeps the statement about how it
// was made. What cannot be kept is said: the generation is as good without.
func (t *task) attest(gen *store.Generation, rec *Record) {
	err := rec.describe(gen.Dir)
	if err == nil {
		rec.Finished = t.r.o.Now()
		err = t.state(gen, rec)
	}
	if err != nil {
		t.r.o.Log.Warn("how it was made could not be stated", "generation", gen.Name, "error", err)
	}
}

// state writes the statement. What vouched for the tarball is said as manifest.json
// says it: the record of the run may name places of this machine.
func (t *task) state(gen *store.Generation, rec *Record) error {
	m, err := gen.Manifest()
	if err != nil {
		return err
	}
	b := provenance.Build{
		Tarball: provenance.Tarball{Name: m.Name, URL: rec.URL, Digest: release.Digest(m.Digest), Size: m.Size, Checked: m.Checked},
		Channel: m.Channel, Target: t.out.target, Version: m.Version, Options: m.Options, Ruleset: m.Ruleset, Recipe: release.Digest(m.Recipe),
		Tool: rec.Tool, ID: invocation(rec.Install, gen.Name, rec.Started), Started: rec.Started, Finished: rec.Finished,
	}
	if rec.Pin != nil {
		b.Tarball.ETag, b.Tarball.MTime, b.Tarball.LastModified = rec.Pin.ETag, rec.Pin.MTime, rec.Pin.LastModified
	}
	for _, name := range []string{manifest.Name, manifest.FilesName} {
		b.Subjects = append(b.Subjects, provenance.File{Name: gen.Name + "/" + name, Digest: rec.Digests[name]})
	}
	text, err := provenance.Statement(b)
	if err != nil {
		return err
	}
	return t.slot.WriteProvenance(gen.Name, text)
}

// invocation names a run. It says nothing of the machine; two machines that began
// in the same nanosecond have the same one, and their own stores.
func invocation(install, what string, started time.Time) string {
	return fmt.Sprintf("%s/%s@%s", install, what, started.UTC().Format(time.RFC3339Nano))
}
