package main

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/internal/provenance"
)

// What a release's linker is told (-X main.linkedVersion=…, in
// scripts/build-release.sh): a build of an archive of the sources has no
// repository beside it to be read. They are empty in every other build.
var linkedVersion, linkedCommit, linkedDate string

// build says what this binary was built from.
type build struct {
	Schema  int    `json:"schema"`
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Date    string `json:"date,omitempty"`
	Go      string `json:"go"`
}

// version reads what the Go linker recorded.
func version() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return buildOf(info, build{Version: linkedVersion, Commit: linkedCommit, Date: linkedDate})
}

// buildOf takes what the release says, and what Go saw of the repository where it
// says nothing.
func buildOf(info *debug.BuildInfo, linked build) build {
	b := linked
	b.Schema, b.Go = 1, info.GoVersion
	modified := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = either(b.Commit, s.Value)
		case "vcs.time":
			b.Date = either(b.Date, s.Value)
		case "vcs.modified":
			modified = s.Value == "true" && linked.Version == ""
		}
	}
	if v := info.Main.Version; v != "(devel)" {
		b.Version = either(b.Version, v)
	}
	b.Version = either(b.Version, "dev")
	if modified && !strings.HasSuffix(b.Version, "+dirty") {
		b.Version += "+dirty"
	}
	return b
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// tool is this binary as provenance names it.
func tool() provenance.Tool {
	b := version()
	return provenance.Tool{Version: b.Version, Commit: b.Commit, Go: b.Go}
}

// judge names this build where another one may judge a night otherwise.
func (b build) judge() string { return b.Version + " " + b.Commit }

// String is the line that people read.
func (b build) String() string {
	text := "rocm-nightly " + b.Version
	if b.Commit != "" {
		text += " commit " + b.Commit
	}
	if b.Date != "" {
		text += " of " + b.Date
	}
	return text + " " + b.Go
}

func (a *app) versionCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "version",
		Short: "Show what this binary was built from",
		Long: `Show the version, the commit and its date, and the release of Go that this
binary was built with. +dirty behind a version says that files differed from that
commit; dev is a build that knows none.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if a.json {
				a.printJSON(version())
				return nil
			}
			fmt.Fprintln(a.stdout, version())
			return nil
		},
	}
	a.jsonFlag(c)
	return c
}
