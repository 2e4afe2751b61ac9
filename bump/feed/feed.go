package feed

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// Schema is the version of the form of a feed.
const Schema = 1

// MaxReleases is how many releases a feed holds: the newest ones.
const MaxReleases = 500

// source is where ROCm is built from; bots show it.
const source = "https://github.com/ROCm/TheRock"

// Feed is what was verified of one family on one channel.
type Feed struct {
	Channel string // nightly, dev, rc, bkc, stable or asan
	Family  string // the slug in the file name, e.g. gfx110X-all
	Entries []Entry
}

// Entry is one tarball that was downloaded whole and verified, as a line of the
// ledger has it.
type Entry struct {
	Version   string    // AMD's
	Time      time.Time // of publication; zero if unknown
	Digest    string    // SHA-256, in any form that release.ParseDigest reads
	URL       string    // where the bytes came from
	Size      int64     // bytes
	Withdrawn bool      // AMD serves it no more, by its age
	Changelog string    // page that tells what has changed; "" if there is none
}

// document is the JSON form. The names in camel case are Renovate's
// (lib/modules/datasource/custom/schema.ts); it passes over the others.
type document struct {
	Schema    int               `json:"schema" jsonschema:"version of this form"`
	Channel   string            `json:"channel"`
	Family    string            `json:"family" jsonschema:"the slug in the file names"`
	SourceURL string            `json:"sourceUrl"`
	Tags      map[string]string `json:"tags" jsonschema:"latest: the newest version that AMD still serves; absent if there is none"`
	Latest    *entry            `json:"latest,omitempty" jsonschema:"the release that tags.latest names"`
	Releases  []entry           `json:"releases" jsonschema:"the oldest first"`
}

type entry struct {
	Version    string `json:"version"`
	Time       string `json:"releaseTimestamp,omitempty" jsonschema:"RFC 3339, UTC; absent if it is not known"`
	Digest     string `json:"digest" jsonschema:"SHA-256 of the tarball, 64 hex digits"`
	SRI        string `json:"sri" jsonschema:"the same as sha256-<base64>"`
	Nix32      string `json:"nix32" jsonschema:"the same in Nix base-32"`
	URL        string `json:"url" jsonschema:"where the verified bytes came from"`
	Name       string `json:"name" jsonschema:"file name of the tarball"`
	Size       int64  `json:"size" jsonschema:"bytes"`
	Stable     bool   `json:"isStable" jsonschema:"a release, not a night or a candidate"`
	Deprecated bool   `json:"isDeprecated,omitempty" jsonschema:"AMD serves it no more, by its age"`
	Changelog  string `json:"changelogUrl,omitempty"`
	SourceURL  string `json:"sourceUrl"`

	parsed release.Version
	time   time.Time
}

// Encode writes f as JSON, of at most MaxReleases entries. Where a version was
// verified twice, with new bytes, the entry that comes later in f counts. An
// entry that is not fit for a feed is an error that names its version.
func Encode(w io.Writer, f Feed) error {
	byVersion := map[string]entry{}
	for _, e := range f.Entries {
		out, err := e.entry()
		if err != nil {
			return fmt.Errorf("write the feed of %s, version %.80q: %w", f.Family, e.Version, err)
		}
		byVersion[out.Version] = out
	}
	doc := document{Schema: Schema, Channel: f.Channel, Family: f.Family, SourceURL: source, Tags: map[string]string{}, Releases: []entry{}}
	for _, e := range byVersion {
		doc.Releases = append(doc.Releases, e)
	}
	slices.SortFunc(doc.Releases, func(a, b entry) int {
		return cmp.Or(a.parsed.Compare(b.parsed), a.time.Compare(b.time), cmp.Compare(a.Version, b.Version))
	})
	doc.Releases = doc.Releases[max(0, len(doc.Releases)-MaxReleases):]
	for i, e := range doc.Releases {
		if !e.Deprecated {
			doc.Tags["latest"], doc.Latest = e.Version, &doc.Releases[i]
		}
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return fmt.Errorf("write the feed of %s: %w", f.Family, err)
	}
	return nil
}

func (e Entry) entry() (entry, error) {
	v, err := release.ParseVersion(e.Version)
	if err != nil {
		return entry{}, err
	}
	d, err := release.ParseDigest(e.Digest)
	if err != nil {
		return entry{}, err
	}
	u, err := page(e.URL)
	if err != nil {
		return entry{}, err
	}
	out := entry{
		Version: v.String(), Digest: d.Encoded(), SRI: release.SRI(d), Nix32: release.Nix32(d), Size: e.Size,
		URL: u.String(), Name: u.Path[strings.LastIndex(u.Path, "/")+1:],
		Stable: v.Kind() == release.Final, Deprecated: e.Withdrawn, SourceURL: source, parsed: v, time: e.Time,
	}
	if e.Changelog != "" {
		c, err := page(e.Changelog)
		if err != nil {
			return entry{}, err
		}
		out.Changelog = c.String()
	}
	if !e.Time.IsZero() {
		out.Time = e.Time.UTC().Format(time.RFC3339)
	}
	return out, nil
}

// page reads an address that everybody may see.
func page(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the address cannot be read") // err would quote it, and what it may carry
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return nil, fmt.Errorf("the address is neither https:// nor http://")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("the address on %s has a user, a query or a fragment, which may be a secret", u.Host)
	}
	return u, nil
}

// JSONSchema describes what Encode writes.
func JSONSchema() (*jsonschema.Schema, error) {
	s, err := jsonschema.For[document](nil)
	if err != nil {
		return nil, fmt.Errorf("describe a feed: %w", err)
	}
	s.Title = "Feed of verified ROCm tarballs"
	return s, nil
}
