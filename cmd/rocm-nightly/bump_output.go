package main

import (
	"cmp"
	"errors"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/bump/actions"
	"github.com/rocm-nightly/rocm-nightly/bump/body"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// outputsFlag is --github-output of the verbs that propose.
func outputsFlag(c *cobra.Command, to *bool) {
	c.Flags().BoolVar(to, "github-output", false, "write what became of the requests to $GITHUB_OUTPUT and $GITHUB_STEP_SUMMARY, for a workflow")
}

// githubOutput tells a step of GitHub Actions what became of the requests.
func (a *app) githubOutput(bumps []*update.Bumped) error {
	files := actions.FromEnv(a.getenv)
	if files.Output == "" {
		return usage(errors.New("--github-output: GITHUB_OUTPUT is not set; it is for a step of GitHub Actions"))
	}
	return actions.Write(files, outcomesOf(bumps), nil)
}

func outcomesOf(bumps []*update.Bumped) []actions.Outcome {
	out := []actions.Outcome{}
	for _, b := range bumps {
		message := b.Message
		if b.Error != "" {
			message = b.Error
		}
		out = append(out, actions.Outcome{
			Repo: b.Name, Operation: actions.Operation(b.Action), Number: b.Number, URL: b.URL, Branch: b.Branch, HeadSHA: b.Commit,
			Version: offered(b), Changed: b.Changed, Verified: b.Signed, Message: message, Summary: b.Summary,
		})
	}
	return out
}

// offered is the version that a request is about, "" where its targets differ. Its
// text knows it also where the version stands there already, and an address or a
// digest is edited alone.
func offered(b *update.Bumped) string {
	found := ""
	for _, v := range body.Versions(b.Summary) {
		if found != "" && found != v {
			return ""
		}
		found = v
	}
	return cmp.Or(found, oneVersion(b.Edits))
}

// oneVersion is the version that every target is brought to, "" where they differ
// or none of the values is one.
func oneVersion(edits []update.Edited) string {
	found := ""
	for _, e := range edits {
		v, err := release.ParseVersion(e.To)
		switch {
		case err != nil || v.String() != e.To:
		case found != "" && found != e.To:
			return ""
		default:
			found = e.To
		}
	}
	return found
}
