package repack

import (
	"encoding/json"
	"fmt"

	"github.com/rocm-nightly/rocm-nightly/audit"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/wrap"
)

// Recorded returns the options that a prefix was made with, as its manifest has
// them: with its tarball and its final prefix they make it once more. The digest of
// the tarball is expected, and nothing is refused by the audit, for what is
// installed was judged. Where the rules have changed since (Manifest.Ruleset), some
// files come out otherwise.
func Recorded(m *manifest.Manifest) (Options, error) {
	var s shape
	if err := json.Unmarshal(m.Options, &s); err != nil {
		return Options{}, fmt.Errorf("read the options in %s: %w", manifest.Name, err)
	}
	digest, err := release.ParseDigest(m.Digest)
	if err != nil {
		return Options{}, fmt.Errorf("read %s: %w", manifest.Name, err)
	}
	o := Options{
		Layout: s.Layout, Profile: s.Profile, Target: s.Target, RunPath: s.RunPath, Interpreter: s.Interpreter,
		InterpreterPath: s.InterpreterPath, AddRPath: s.AddRPath, Omit: s.Omit, Env: s.Env,
		Expect: []release.Expectation{{Digest: digest, Source: manifest.Name}},
		Audit:  AuditOptions{Refuse: audit.RefuseNever},
	}
	if n, err := release.ParseName(m.Name); err == nil {
		o.Release = release.Release{Name: m.Name, Channel: m.Channel, Family: m.Family, Version: n.Version, Platform: n.Platform, Variant: n.Variant}
	}
	if v, err := release.ParseVersion(m.Version); err == nil {
		o.Release.Version = v
	}
	return o, nil
}

// SameRules reports whether a prefix was made by the rules that this version has.
func SameRules(m *manifest.Manifest) bool { return m.Ruleset == wrap.Ruleset }
