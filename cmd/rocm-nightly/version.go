package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/internal/provenance"
)

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
	b := build{Schema: 1, Version: "dev"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Go = info.GoVersion
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		}
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

func (a *app) versionCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "version",
		Short: "Show what this binary was built from",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := version()
			if a.json {
				a.printJSON(b)
				return nil
			}
			fmt.Fprintf(a.stdout, "rocm-nightly %s", b.Version)
			if b.Commit != "" {
				fmt.Fprintf(a.stdout, " commit %s of %s", b.Commit, b.Date)
			}
			fmt.Fprintf(a.stdout, " %s\n", b.Go)
			return nil
		},
	}
	a.jsonFlag(c)
	return c
}
