package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/audit"
	"github.com/rocm-nightly/rocm-nightly/docs"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/repack"
	"github.com/rocm-nightly/rocm-nightly/serve/notify"
	"github.com/rocm-nightly/rocm-nightly/store"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// form is something that has a JSON Schema.
type form struct {
	title   string
	heading string // in the documentation, over the table of its fields
	of      reflect.Type
	text    func() string // a schema that is written by hand, instead of of
}

// forms are the names that the verb knows. They are made from the types that are
// written, so that they cannot drift; docs/manifest.md and docs/status.md say what
// each field means.
func forms() map[string]form {
	all := kept()
	maps.Copy(all, printed())
	return all
}

// kept are the files of a prefix and of a store.
func kept() map[string]form {
	return map[string]form{
		"manifest":     {title: "manifest.json of a prefix", heading: "manifest.json", of: reflect.TypeFor[manifest.Manifest]()},
		"files":        {title: "one line of files.jsonl of a prefix", heading: "files.jsonl", of: reflect.TypeFor[manifest.File]()},
		"omitted":      {title: "one line of omitted.jsonl of a prefix", heading: "omitted.jsonl", of: reflect.TypeFor[manifest.Omission]()},
		"run":          {title: "runs/VERSION.json of a slot", heading: "runs/VERSION.json", of: reflect.TypeFor[update.Record]()},
		"state":        {title: "state.json of a slot", heading: "state.json", of: reflect.TypeFor[store.State]()},
		"checks":       {title: "checks.json of a slot", heading: "checks.json", of: store.ChecksType()},
		"ledger":       {title: "one line of ledger.jsonl", heading: "ledger.jsonl", of: reflect.TypeFor[store.LedgerEntry]()},
		"lock":         {title: "what run.lock, links.lock, switch.lock and .staging-*.lock hold while they are held", heading: "Locks", of: reflect.TypeFor[store.Holder]()},
		"looks":        {title: "looks.json of a store", heading: "check --json", of: reflect.TypeFor[update.Looked]()},
		"bumps":        {title: "bumps.json of a store", heading: "bumps.json", of: reflect.TypeFor[update.KeptBumps]()},
		"links":        {title: "links.json of a store", heading: "links.json", of: store.LinksType()},
		"kept-tarball": {title: "tarball.json of a kept tarball", heading: "tarball.json", of: store.TarballType()},
		"notified":     {title: "notified.json of a store", heading: "notified.json", of: notify.MemoryType()},
		"lease-record": {title: "leases/NAME.json of a store", heading: "Leases", of: reflect.TypeFor[store.Lease]()},
	}
}

// printed are what verbs print with --json.
func printed() map[string]form {
	return map[string]form{
		"repack":        {title: "rocm-nightly repack --json", heading: "repack --json", of: reflect.TypeFor[repack.Result]()},
		"status":        {title: "rocm-nightly status --json", heading: "status --json", of: reflect.TypeFor[statusReport]()},
		"switch":        {title: "rocm-nightly rollback and use --json", heading: "rollback --json and use --json", of: reflect.TypeFor[switched]()},
		"check":         {title: "rocm-nightly check --json", heading: "check --json", of: reflect.TypeFor[update.Looked]()},
		"activate":      {title: "rocm-nightly activate --json", heading: "activate --json", of: reflect.TypeFor[activated]()},
		"hold":          {title: "rocm-nightly hold and unhold --json", heading: "hold --json and unhold --json", of: reflect.TypeFor[held]()},
		"update":        {title: "rocm-nightly update --json", heading: "update --json", of: reflect.TypeFor[update.Report]()},
		"bump":          {title: "rocm-nightly bump --json", heading: "bump --json", of: reflect.TypeFor[update.Proposed]()},
		"bump-write":    {title: "rocm-nightly bump --write --json", heading: "bump --write --json", of: reflect.TypeFor[written]()},
		"verify":        {title: "rocm-nightly verify --json", heading: "verify --json", of: reflect.TypeFor[verifyReport]()},
		"prune":         {title: "rocm-nightly prune --json", heading: "prune --json", of: reflect.TypeFor[pruneReport]()},
		"remove":        {title: "rocm-nightly remove --json", heading: "remove --json", of: reflect.TypeFor[removed]()},
		"lease":         {title: "rocm-nightly lease --json", heading: "lease --json", of: reflect.TypeFor[leased]()},
		"lease-list":    {title: "rocm-nightly lease --list --json", heading: "lease --list --json", of: reflect.TypeFor[leaseList]()},
		"lease-release": {title: "rocm-nightly lease --release --json", heading: "lease --release --json", of: reflect.TypeFor[released]()},
		"link":          {title: "rocm-nightly link --json", heading: "link --json", of: reflect.TypeFor[linkReport]()},
		"unlink":        {title: "rocm-nightly unlink --json", heading: "unlink --json", of: reflect.TypeFor[unlinkReport]()},
		"uninstall":     {title: "rocm-nightly uninstall --json", heading: "uninstall --json", of: reflect.TypeFor[uninstallReport]()},
		"tarball":       {title: "rocm-nightly tarball --json", heading: "tarball --json", of: reflect.TypeFor[keptTarball]()},
		"tarball-list":  {title: "rocm-nightly tarball --list and --verify --json", heading: "tarball --list --json", of: reflect.TypeFor[tarballs]()},
		"version":       {title: "rocm-nightly version --json", heading: "version --json", of: reflect.TypeFor[build]()},
		"notify-test":   {title: "rocm-nightly notify-test --json", heading: "notify-test --json", of: reflect.TypeFor[notifyTested]()},
		"webhook":       {title: "what a webhook of notify is sent", heading: "Webhooks", of: reflect.TypeFor[notify.Payload]()},
		"failure":       {title: "what a verb with --json prints when it fails", heading: "When a verb fails", of: reflect.TypeFor[failure]()},
		"audit":         {title: "rocm-nightly audit --json", text: audit.JSONSchema},
	}
}

func (a *app) schemaCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "schema [NAME]",
		Short: "Print the JSON Schema of a record or of a verb's --json",
		Long: `Print the JSON Schema (draft 2020-12) of a file that is kept in a store or a
prefix, or of what a verb prints with --json; without NAME, list what there is.
docs/manifest.md and docs/status.md say what each field means. Readers pass over
names that they do not know: a later version may add some.`,
		Example:   "  rocm-nightly schema files > files.schema.json",
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: slices.Sorted(maps.Keys(forms())),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				a.listForms()
				return nil
			}
			return a.schema(args[0])
		},
	}
}

func (a *app) listForms() {
	all := forms()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(a.stdout, "%-13s %s\n", name, all[name].title)
	}
}

func (a *app) schema(name string) error {
	f, ok := forms()[name]
	switch {
	case !ok:
		return usage(fmt.Errorf("schema: there is no %q; there is %s", name, strings.Join(slices.Sorted(maps.Keys(forms())), ", ")))
	case f.text != nil:
		fmt.Fprint(a.stdout, f.text())
		return nil
	}
	s, err := f.schema()
	if err != nil {
		return err
	}
	f.explain(s)
	loosen(s)
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("describe %s: %w", name, err)
	}
	fmt.Fprintf(a.stdout, "%s\n", text)
	return nil
}

// schema describes exactly what this version writes: fields that are not of the
// type are refused.
func (f form) schema() (*jsonschema.Schema, error) {
	text := &jsonschema.Schema{Type: "string"}
	s, err := jsonschema.ForType(f.of, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
		reflect.TypeFor[json.RawMessage](): {Type: "object"},
		reflect.TypeFor[manifest.Mode]():   {Type: "string", Pattern: "^[0-7]{4}$"},
		reflect.TypeFor[release.Digest]():  {Type: "string", Pattern: "^sha256:[0-9a-f]{64}$"},
		reflect.TypeFor[release.Version](): text,
	}})
	if err != nil {
		return nil, fmt.Errorf("describe %s: %w", f.title, err)
	}
	s.Schema, s.Title = "https://json-schema.org/draft/2020-12/schema", "rocm-nightly: "+f.title
	return s, nil
}

// part is a field of a record, by the heading that its table has.
type part struct{ heading, path string }

// elsewhere are the parts of records that are described where they stand first.
func elsewhere() map[part]part {
	return map[part]part{
		{"runs/VERSION.json", "repack"}:                {"repack --json", ""},
		{"runs/VERSION.json", "pin"}:                   {"ledger.jsonl", ""},
		{"update --json", "installs[].reused"}:         {"runs/VERSION.json", "reused"},
		{"update --json", "installs[].bump[]"}:         {"update --json", "bumps[]"},
		{"bump --json", "bumps[]"}:                     {"update --json", "bumps[]"},
		{"bump --write --json", "edits[]"}:             {"update --json", "bumps[].edits[]"},
		{"update --json", "installs[].health"}:         {"runs/VERSION.json", "health"},
		{"update --json", "installs[].hold"}:           {"state.json", "hold"},
		{"check --json", "installs[].stale"}:           {"update --json", "installs[].stale"},
		{"status --json", "slots[].runs[].attempts[]"}: {"runs/VERSION.json", "attempts[]"},

		{"activate --json", "health"}:              {"runs/VERSION.json", "health"},
		{"activate --json", "hold"}:                {"state.json", "hold"},
		{"activate --json", "waits"}:               {"update --json", "installs[].waits"},
		{"hold --json and unhold --json", "hold"}:  {"state.json", "hold"},
		{"hold --json and unhold --json", "ended"}: {"state.json", "hold"},
		{"remove --json", "kept"}:                  {"prune --json", "slots[].kept"},
		{"lease --json", "lease"}:                  {"Leases", ""},
		{"lease --list --json", "leases[]"}:        {"Leases", ""},
		{"uninstall --json", "links[]"}:            {"unlink --json", ""},
		{"tarball --list --json", "tarballs[]"}:    {"tarball --json", ""},
		{"tarball.json", "pin"}:                    {"ledger.jsonl", ""},
	}
}

// explain says what each field means, as the documentation does, and returns the
// fields of which that says nothing.
func (f form) explain(s *jsonschema.Schema) (unknown []string) {
	words, other := map[string]map[string]string{}, elsewhere()
	var walk func(s *jsonschema.Schema, at part)
	walk = func(s *jsonschema.Schema, at part) {
		if s == nil {
			return
		}
		if first, ok := other[at]; ok {
			at = first
		}
		if words[at.heading] == nil {
			words[at.heading] = docs.Fields(at.heading)
		}
		walk(s.Items, part{at.heading, at.path + "[]"})
		if len(s.Properties) == 0 {
			walk(s.AdditionalProperties, part{at.heading, at.path + ".*"})
			return
		}
		for name, p := range s.Properties {
			field := part{at.heading, strings.TrimPrefix(at.path+"."+name, ".")}
			if p.Description = words[at.heading][field.path]; p.Description == "" {
				unknown = append(unknown, field.heading+": "+field.path)
			}
			if at.heading != "runs/VERSION.json" || name != "audit" && name != "smoke" { // which have pages of their own
				walk(p, field)
			}
		}
	}
	walk(s, part{heading: f.heading})
	return unknown
}

// loosen lets a schema take fields that it does not know, in every object: those of
// later versions. What maps hold is described all the same.
func loosen(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Properties) > 0 {
		s.AdditionalProperties = nil
	}
	loosen(s.AdditionalProperties)
	loosen(s.Items)
	for _, p := range s.Properties {
		loosen(p)
	}
}
