package main

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/bump"
	"github.com/rocm-nightly/rocm-nightly/bump/pinfile"
	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/internal/secret"
	"github.com/rocm-nightly/rocm-nightly/serve"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// configNames is for people which files a config was read from: by their paths
// below the directory dir, as in a repository, else by their names alone. Where
// somebody has their files is not for everybody who reads a request.
func configNames(read []string, dir string) string {
	var names []string
	for _, file := range read {
		name := filepath.Base(file)
		if path, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(path) {
			name = path
		} else if filepath.IsLocal(file) {
			name = filepath.Clean(file)
		}
		names = append(names, filepath.ToSlash(name))
	}
	return strings.Join(names, ", ")
}

// updateBump is a bump of the config as the pipeline wants it, but for the name of
// the config.
func updateBump(b config.Bump) update.Bump {
	out := update.Bump{Channel: b.Channel, Repo: bump.Repo{
		Name: b.Name, Forge: b.Forge, URL: b.URL, API: b.API, Base: b.Base, Branch: b.Branch,
		Token:      secret.Source{Env: b.TokenEnv, File: b.TokenFile, Credential: b.TokenCredential},
		SSHKey:     secret.Source{File: b.SSHKeyFile, Credential: b.SSHKeyCredential},
		KnownHosts: secret.Source{File: b.KnownHostsFile, Credential: b.KnownHostsCredential},
		Mode:       b.Mode, Fork: b.Fork, Require: b.Require, Group: b.Group,
		MaxWait: time.Duration(b.MaxWait), MinAge: time.Duration(b.MinAge),
		Signoff: b.Signoff, Title: b.Title, Message: b.Message,
		Labels: b.Labels, Reviewers: b.Reviewers, Teams: b.Teams, Assignees: b.Assignees,
		Draft: b.Draft, AutoMerge: b.AutoMerge, MergeMethod: b.MergeMethod, Reopen: b.Reopen, Dashboard: b.Dashboard,
		Check: b.Check, CheckTimeout: time.Duration(b.CheckTimeout),
	}}
	if out.Channel == "" {
		out.Channel = "nightly"
	}
	if a := b.App; a != nil {
		out.App = bump.App{ID: a.ID, Installation: a.Installation, Key: secret.Source{Env: a.KeyEnv, File: a.KeyFile, Credential: a.KeyCredential}}
	}
	if l := b.Limits; l != nil {
		out.OpenLimit, out.PullsPerHour, out.CommitsPerHour = l.Open, l.PullsPerHour, l.CommitsPerHour
	}
	if a := b.Author; a != nil {
		out.Author = bump.Author{Name: a.Name, Email: a.Email}
	}
	for _, w := range b.Windows {
		out.Windows = append(out.Windows, bump.Window{Cron: w.Cron, Length: time.Duration(w.Length)})
	}
	for _, f := range b.Files {
		out.Files = append(out.Files, bump.File{Path: f.Path, Format: f.Format, Pattern: f.Pattern, Target: f.Target, Set: f.Set, Fetches: f.Fetches})
	}
	return out
}

// bumpKey names the i-th bump of the config for those who read a request.
func bumpKey(read []string, dir string, i int) string {
	key := fmt.Sprintf("bump[%d]", i)
	if names := configNames(read, dir); names != "" {
		return names + ", " + key
	}
	return key
}

// examplePin is what templates are tried on: nothing of it is empty.
var examplePin = bump.Pin{
	Version: "10.2.0a20260930", URL: "https://rocm.nightlies.amd.com/tarball/therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz",
	SRI: "sha256-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", Hex: strings.Repeat("0", 64), Nix32: strings.Repeat("0", 52), Size: 1, Date: "2026-09-30",
	Family: "gfx1151", Target: "gfx1151", Channel: "nightly", Name: "therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz",
}

// exampleSummary is what titles, messages and labels are tried on.
var exampleSummary = bump.Summary{
	Name: "example", Old: "10.2.0a20260929", New: "10.2.0a20260930", Targets: []string{"gfx1151"}, Families: []string{"gfx1151"},
	Pins: []bump.Pin{examplePin}, Date: "2026-09-30", Title: "rocm: 10.2.0a20260929 -> 10.2.0a20260930", Body: "body",
}

// problem is what is wrong under a key.
type problem struct {
	key string
	err error
}

// at is the key below that of its bump; "" if the problem is the bump's.
func (p problem) at() string {
	if p.key == "" {
		return ""
	}
	return "." + p.key
}

// bumpProblems finds what is wrong with one bump, by its keys.
func bumpProblems(b config.Bump) (all []problem) {
	add := func(key string, err error) {
		if err != nil {
			all = append(all, problem{key, err})
		}
	}
	add("url", bump.CheckURL(b.URL))
	add("title", bump.CheckTemplate(b.Title, exampleSummary))
	add("message", bump.CheckTemplate(b.Message, exampleSummary))
	for i, text := range b.Labels {
		add(fmt.Sprintf("labels[%d]", i), bump.CheckTemplate(text, exampleSummary))
	}
	for i, w := range b.Windows {
		_, err := serve.ParseTimes(w.Cron, time.Now())
		add(fmt.Sprintf("windows[%d].cron", i), err)
	}
	for i, f := range b.Files {
		key := fmt.Sprintf("files[%d].", i)
		add(key+"format", checkFormat(f))
		add(key+"fetches", bump.CheckTemplate(f.Fetches, examplePin))
		for _, attr := range slices.Sorted(maps.Keys(f.Set)) {
			err := bump.CheckTemplate(f.Set[attr], examplePin)
			if f.Set[attr] == "" {
				err = errors.New("an empty value would blank the pin")
			}
			add(key+"set."+attr, err)
		}
	}
	if len(all) == 0 { // what a run would find as well, without the network
		add("", bump.CheckRepo(updateBump(b).Repo))
	}
	return all
}

// checkFormat reports a format that nobody reads.
func checkFormat(f config.Pins) error {
	format := f.Format
	if format == "" {
		format = pinfile.FormatOf(f.Path)
	}
	known := strings.Join(pinfile.Formats(), ", ")
	switch {
	case format == "":
		return fmt.Errorf("the name of %s does not tell how it is read: name one of %s", f.Path, known)
	case !slices.Contains(pinfile.Formats(), format):
		return fmt.Errorf("%.40q is not one of %s", format, known)
	}
	return nil
}
