package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/internal/config"
)

func (a *app) configCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Check, show or describe the config",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	check := &cobra.Command{
		Use:   "check",
		Short: "Say what is wrong with the config; exit 2 if anything is",
		Long: `Say everything that is wrong with the config, a line each: FILE:LINE:COLUMN:
KEY: REASON, or $VARIABLE for FILE:LINE:COLUMN. Schedules, templates and addresses
are tried, and files that it names are looked for. With --json the list is
problems. Exit 2 if anything is wrong.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.configCheck() },
	}
	show := &cobra.Command{
		Use:   "show",
		Short: "Show what holds, and where each key was set",
		Long: `Show what holds after the files, the variables of the environment and the
defaults were laid over each other, and above each key that is not as it is built
in the FILE:LINE:COLUMN or $VARIABLE that set it. Names, passwords and queries in
URLs are left out.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.configShow() },
	}
	schema := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the config, for editors",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return a.configSchema() },
	}
	a.jsonFlag(check)
	a.jsonFlag(show)
	c.AddCommand(check, show, schema)
	return c
}

// readFrom is what the verbs say about where the config came from.
func (a *app) readFrom() string {
	text := "no config file was found; these are the defaults"
	if len(a.read) > 0 {
		text = "read from " + strings.Join(a.read, " ")
	}
	if set := a.cfg.Overrides(); len(set) > 0 {
		text += "; set by the environment: " + strings.Join(set, " ")
	}
	return text
}

type configReport struct {
	Schema      int               `json:"schema"`
	Files       []string          `json:"files"`
	Environment []string          `json:"environment,omitempty"`
	Sources     map[string]string `json:"sources,omitempty"`
	Config      *config.Config    `json:"config,omitempty"`
}

// redacted is cfg without the secrets that URLs may hold: names, passwords and
// the values of queries.
func redacted(cfg *config.Config) *config.Config {
	out := *cfg
	out.Channels = map[string]config.Channel{}
	for name, ch := range cfg.Channels {
		ch.Indexes = slices.Clone(ch.Indexes)
		for i := range ch.Indexes {
			ch.Indexes[i].URL = redactedURL(ch.Indexes[i].URL)
		}
		out.Channels[name] = ch
	}
	out.Policy.Lock = redactedURL(cfg.Policy.Lock)
	out.Trust = slices.Clone(cfg.Trust)
	for i := range out.Trust {
		out.Trust[i].URL = redactedURL(out.Trust[i].URL)
	}
	out.Notify = slices.Clone(cfg.Notify)
	for i := range out.Notify {
		out.Notify[i].URL = redactedURL(out.Notify[i].URL)
	}
	return &out
}

// redactedURL is a URL, or a path, without what it may hold of secrets.
func redactedURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.User == nil && u.RawQuery == "" {
		return raw
	}
	if u.User != nil {
		u.User = url.User("xxxxx")
	}
	query := u.Query()
	for key := range query {
		query.Set(key, "xxxxx")
	}
	u.RawQuery = query.Encode()
	return u.String()
}

func (a *app) configShow() error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	sources := sourcesOf(cfg)
	cfg = redacted(cfg)
	if a.json {
		a.printJSON(configReport{Schema: 1, Files: append([]string{}, a.read...), Environment: cfg.Overrides(), Sources: sources, Config: cfg})
		return nil
	}
	comments := yaml.CommentMap{}
	for key, source := range sources {
		comments["$."+key] = []*yaml.Comment{yaml.HeadComment(" " + printable(source))}
	}
	text, err := yaml.MarshalWithOptions(cfg, yaml.WithComment(comments))
	if err != nil {
		return fmt.Errorf("show config: %w", err)
	}
	fmt.Fprintf(a.stdout, "# %s\n%s", a.readFrom(), text)
	return nil
}

// sourcesOf says of every key that is not as it is built in where it was set.
func sourcesOf(cfg *config.Config) map[string]string {
	sources := map[string]string{}
	for _, v := range config.Variables() {
		if source := cfg.Source(v.Key); source != "" {
			sources[v.Key] = source
		}
	}
	return sources
}

// optional makes every key optional that has a default: all but those of
// entries of lists, which have none.
func optional(s *jsonschema.Schema) {
	s.Required = nil
	for _, p := range s.Properties {
		optional(p)
	}
	for _, sub := range []*jsonschema.Schema{s.Items, s.AdditionalProperties} {
		if sub != nil {
			optional(sub)
		}
	}
	for _, key := range []string{"target", "url", "path", "set", "cron"} {
		if _, elsewhere := s.Properties[key+"_file"]; elsewhere {
			continue // it may stand in a file
		}
		if _, has := s.Properties[key]; has {
			s.Required = append(s.Required, key)
		}
	}
}

func (a *app) configSchema() error {
	text := &jsonschema.Schema{Type: "string"}
	size := &jsonschema.Schema{Types: []string{"string", "integer"}}
	part := &jsonschema.Schema{Type: "string"}
	for _, name := range config.Parts() {
		part.Enum = append(part.Enum, name)
	}
	s, err := jsonschema.For[config.Config](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[config.Duration](): text,
		reflect.TypeFor[config.Patience](): text,
		reflect.TypeFor[config.Size]():     size,
		reflect.TypeFor[config.Part]():     part,
	}})
	if err != nil {
		return fmt.Errorf("describe config: %w", err)
	}
	optional(s)
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("describe config: %w", err)
	}
	fmt.Fprintf(a.stdout, "%s\n", out)
	return nil
}
