package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/update"
)

// output is one output of a step of a workflow.
type output struct{ name, value string }

// outputsOf are the outputs of a bump: those of the first request that something was
// done to, else of the first, by the names that actions for pull requests use.
func outputsOf(rep *update.Proposed) []output {
	out := []output{{"event", update.EventNoResult}, {"changed", "false"}}
	var one *update.Bumped
	for _, b := range rep.Bumps {
		if one == nil || one.Event != update.EventUpdated && b.Event == update.EventUpdated {
			one = b
		}
	}
	if one == nil {
		return out
	}
	number := ""
	if one.Number != 0 {
		number = strconv.FormatInt(one.Number, 10)
	}
	return []output{
		{"event", one.Event},
		{"changed", strconv.FormatBool(one.Changed)},
		{"pull-request-number", number},
		{"pull-request-url", one.URL},
		{"pull-request-operation", one.Action},
		{"pull-request-head-sha", one.Commit},
		{"pull-request-branch", one.Branch},
		{"pull-request-commits-verified", strconv.FormatBool(one.Signed)},
		{"title", one.Title},
		{"message", one.Message},
	}
}

// githubOutput appends the outputs to $GITHUB_OUTPUT. A value may hold what a forge
// or AMD has said: none of it begins another output.
func (a *app) githubOutput(rep *update.Proposed) (err error) {
	path := a.getenv("GITHUB_OUTPUT")
	if path == "" {
		return usage(errors.New("bump: --github-output: GITHUB_OUTPUT is not set; it is for a step of GitHub Actions"))
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("write the outputs of the step: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, o := range outputsOf(rep) {
		// Nobody can know the word that ends the value.
		end := "end_" + rand.Text()
		if _, err := fmt.Fprintf(f, "%s<<%s\n%s\n%s\n", o.name, end, strings.ReplaceAll(o.value, "\r", ""), end); err != nil {
			return fmt.Errorf("write the outputs of the step: %w", err)
		}
	}
	return nil
}
