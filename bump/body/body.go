package body

import (
	"github.com/rocm-nightly/rocm-nightly/bump/pinfile"
)

// Flavor is whose Markdown is written.
type Flavor string

// The flavors.
const (
	GitHub Flavor = "github"
	Gitea  Flavor = "gitea"
	GitLab Flavor = "gitlab"
	Plain  Flavor = "git" // text, for a commit's message
)

// Edit is one value that the request changes.
type Edit struct {
	Path   string // of the file
	Key    string
	Target string
	From   string
	To     string
	Line   int
}

// Input is what a body tells.
type Input struct {
	Flavor  Flavor
	Name    string // of the bump in the config
	Config  string // which config asked for it, and where, for people; no path of a home
	Base    string // branch
	Branch  string
	Forked  bool   // the branch is in a fork
	Fork    string // https address of the fork; "" if it is not known
	Edits   []Edit
	Pins    []pinfile.Pin // by target, those that the request is about
	Proofs  []Proof       // by target
	Skipped []string      // targets that were left out, for they have no verified tarball
	Notes   []string      // one line each: what else a reader should know
	Checks  []Check       // what `check` commands of the config came to
	Limit   int           // bytes; 0 is what the flavor's forge takes
}

// Check is one command of the config that was run in the edited checkout.
type Check struct {
	Command string // for people
	Passed  bool
	Seconds float64
	Tail    string // the end of what it said
}

// Boxes that a person can tick in a body.
const (
	BoxRetry  = "retry"  // make the branch anew on the base, whoever's commits it holds
	BoxIgnore = "ignore" // close this, and do not offer this version again
)

// Entry is one line of a dashboard.
type Entry struct {
	Group   string // name of the bump, and its target where there are several
	State   string // open, pending, limited, failed, ignored or current
	Version string
	Request string // page of the request; "" if there is none
	Why     string // one line
	Boxes   []string
}
