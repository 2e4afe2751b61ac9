package provenance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// The types that a statement names. BuildType is described in docs/manifest.md,
// under the heading that it ends in; BuilderID is this program, run by whoever
// keeps the statement: its word is worth what that machine's is.
const (
	StatementType = "https://in-toto.io/Statement/v1"
	PredicateType = "https://slsa.dev/provenance/v1"
	BuildType     = "https://github.com/rocm-nightly/rocm-nightly/blob/main/docs/manifest.md#build-type-repack-v1"
	BuilderID     = "https://github.com/rocm-nightly/rocm-nightly"
)

// Build is what is known of one build.
type Build struct {
	Subjects []File // what was made; at least one
	Tarball  Tarball
	Channel  string // "" if it is not known
	Target   string // "" if none was named
	Version  string // of the release
	Options  json.RawMessage
	Ruleset  int
	Recipe   release.Digest
	Tool     Tool
	ID       string // of the run, unique
	Started  time.Time
	Finished time.Time
}

// File is a file and its digest.
type File struct {
	Name   string // relative, slash-separated
	Digest release.Digest
}

// Tarball is what the prefix was made of.
type Tarball struct {
	Name         string // "" if it came through a pipe
	URL          string // or "" for a file of this machine; redacted by Statement
	Digest       release.Digest
	Size         int64     // bytes
	ETag         string    // "" if there was none
	MTime        time.Time // as the index says; zero if it does not
	LastModified time.Time // as the server says; zero if it does not
	Checked      []string  // what it was checked against
}

// Tool is the program that made it.
type Tool struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"` // the release of Go that it was compiled with
}

// The forms below are the JSON of the specifications, in the order in which those
// list their fields.

type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     predicate  `json:"predicate"`
}

type resource struct {
	Name        string            `json:"name,omitempty"`
	URI         string            `json:"uri,omitempty"`
	Digest      map[string]string `json:"digest,omitempty"`
	Annotations map[string]any    `json:"annotations,omitempty"`
}

type predicate struct {
	BuildDefinition buildDefinition `json:"buildDefinition"`
	RunDetails      runDetails      `json:"runDetails"`
}

type buildDefinition struct {
	BuildType            string             `json:"buildType"`
	ExternalParameters   externalParameters `json:"externalParameters"`
	InternalParameters   internalParameters `json:"internalParameters"`
	ResolvedDependencies []resource         `json:"resolvedDependencies"`
}

// externalParameters are what the user chose.
type externalParameters struct {
	Channel string          `json:"channel,omitempty"`
	Target  string          `json:"target,omitempty"`
	Release string          `json:"release,omitempty"` // file name of the tarball
	Version string          `json:"version,omitempty"`
	Options json.RawMessage `json:"options"` // as in manifest.json
}

// internalParameters are what the program chose.
type internalParameters struct {
	Ruleset int    `json:"ruleset"`
	Recipe  string `json:"recipe"`
}

type runDetails struct {
	Builder  builder  `json:"builder"`
	Metadata metadata `json:"metadata"`
}

type builder struct {
	ID      string            `json:"id"`
	Version map[string]string `json:"version"`
}

type metadata struct {
	InvocationID string `json:"invocationId,omitempty"`
	StartedOn    string `json:"startedOn"`
	FinishedOn   string `json:"finishedOn"`
}

// Statement returns the statement about a build, indented, with a final newline.
func Statement(b Build) ([]byte, error) {
	if len(b.Subjects) == 0 {
		return nil, errors.New("state provenance: of nothing")
	}
	s := statement{Type: StatementType, PredicateType: PredicateType}
	for _, f := range b.Subjects {
		d, err := digestSet(f.Digest)
		if err != nil {
			return nil, fmt.Errorf("state provenance of %s: %w", f.Name, err)
		}
		s.Subject = append(s.Subject, resource{Name: f.Name, Digest: d})
	}
	tarball, err := b.Tarball.resource()
	if err != nil {
		return nil, fmt.Errorf("state provenance: %w", err)
	}
	options := b.Options
	if len(options) == 0 {
		options = json.RawMessage("{}")
	}
	s.Predicate = predicate{
		BuildDefinition: buildDefinition{
			BuildType:            BuildType,
			ExternalParameters:   externalParameters{Channel: b.Channel, Target: b.Target, Release: b.Tarball.Name, Version: b.Version, Options: options},
			InternalParameters:   internalParameters{Ruleset: b.Ruleset, Recipe: b.Recipe.String()},
			ResolvedDependencies: []resource{tarball},
		},
		RunDetails: runDetails{
			Builder:  builder{ID: BuilderID, Version: b.Tool.versions()},
			Metadata: metadata{InvocationID: b.ID, StartedOn: stamp(b.Started), FinishedOn: stamp(b.Finished)},
		},
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return nil, fmt.Errorf("state provenance: %w", err)
	}
	return buf.Bytes(), nil
}

func (t Tarball) resource() (resource, error) {
	d, err := digestSet(t.Digest)
	if err != nil {
		return resource{}, fmt.Errorf("the tarball: %w", err)
	}
	notes := map[string]any{"size": t.Size, "verified_against": append([]string{}, t.Checked...)}
	if t.ETag != "" {
		notes["etag"] = t.ETag
	}
	if !t.MTime.IsZero() {
		notes["mtime"] = stamp(t.MTime)
	}
	if !t.LastModified.IsZero() {
		notes["last_modified"] = stamp(t.LastModified)
	}
	return resource{Name: t.Name, URI: Redacted(t.URL), Digest: d, Annotations: notes}, nil
}

func (t Tool) versions() map[string]string {
	v := map[string]string{"rocm-nightly": t.Version, "go": t.Go}
	if t.Commit != "" {
		v["commit"] = t.Commit
	}
	return v
}

// digestSet is a digest as in-toto writes it: hex, by algorithm.
func digestSet(d release.Digest) (map[string]string, error) {
	d, err := release.ParseDigest(string(d))
	if err != nil {
		return nil, err
	}
	return map[string]string{"sha256": d.Encoded()}, nil
}

// stamp is a time as the specification wants it: RFC 3339, UTC.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// Redacted is a URL without the secrets that it may hold: a user, a query and a
// fragment. What is no URL of a server is "": paths are this machine's business.
func Redacted(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}
