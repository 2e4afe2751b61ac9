package bump

import (
	"context"
	"log/slog"
	"time"

	"github.com/rocm-nightly/rocm-nightly/bump/body"
	"github.com/rocm-nightly/rocm-nightly/bump/forge"
	"github.com/rocm-nightly/rocm-nightly/bump/pinfile"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

// Pin is what templates see: one verified tarball, for one target.
type Pin = pinfile.Pin

// FromPin returns p as templates see it, for target.
func FromPin(p release.Pin, target string) Pin { return pinfile.FromPin(p, target) }

// File is a target file: a file of somebody's repository that holds a pin.
type File struct {
	// Path is relative to the repository's root, with slashes. It names a
	// regular file outside .git.
	Path string
	// Format is how the file is read, one of pinfile.Formats; "" goes by the
	// name of the file.
	Format string
	// Pattern is for the format regex: see pinfile.Options.
	Pattern string
	// Target chooses the pin. It may be empty where there is one pin.
	Target string
	// Set maps a key, as pinfile.Edit takes it, to a text/template over Pin.
	Set map[string]string
	// Fetches is a template of the address that the repository's code makes of
	// these values, where the file itself does not say it. It is compared with
	// what was verified.
	Fetches string
}

// Author signs the commits. The zero Author is rocm-nightly
// <rocm-nightly@localhost>, or whoever acts on a forge that signs.
type Author struct {
	Name  string
	Email string
}

// Repo is one repository to bump.
type Repo struct {
	// Name names the bump, and its branch: letters, digits, '.', '_' and '-'.
	Name string
	// Forge is git, github, gitea (Forgejo too) or gitlab; empty means git.
	Forge string
	// URL is https://, ssh://, file://, an absolute path, or user@host:path.
	// It must not hold a password.
	URL string
	// API is the base of the forge's API; empty means that it follows from URL.
	API string
	// Base is the branch the bump is for; empty means the remote's HEAD.
	Base string
	// Token is for https and for the forge's API; App acts in its place on
	// GitHub.
	Token secret.Source
	App   App
	// SSHKey and KnownHosts are for ssh; where they are empty, ssh knows.
	SSHKey     secret.Source
	KnownHosts secret.Source
	// Mode is "pull" (the default: a branch, and on a forge a pull request) or
	// "push": a commit on Base itself, fast-forward only, for forge git.
	Mode string
	// Fork is whose fork the branch is pushed to: "" the repository itself and,
	// where there is no right to push, the token's own fork; "never"; or an
	// owner.
	Fork string
	// Branch is the branch that is pushed; empty means rocm-nightly/Name, with
	// -TARGET when Group is independent.
	Branch string
	// Files are the pins. Several may share a path.
	Files []File
	// Require is "all" (the default: one missing target holds the others
	// back) or "available".
	Require string
	// Group is "lockstep" (the default: one request, all of one version) or
	// "independent": one request for each target.
	Group string
	// MaxWait is how long, from the publication of the newest pin, lockstep
	// waits for the other targets before it goes on with those of that version;
	// 0: for as long as it takes.
	MaxWait time.Duration
	// MinAge is how old a release must be; one without a date is too young.
	MinAge time.Duration
	// Windows say when requests may be opened or pushed to; none: always.
	Windows []Window
	// OpenLimit, PullsPerHour and CommitsPerHour bound what is done to the
	// repository; 0: no bound.
	OpenLimit, PullsPerHour, CommitsPerHour int
	// Author signs the commit; Signoff adds their Signed-off-by.
	Author  Author
	Signoff bool
	// Title and Message are templates of the request's title and of the
	// commit's message; empty means ours. They see Summary.
	Title, Message string
	// Labels are templates too, each over Summary.
	Labels, Reviewers, Teams, Assignees []string
	Draft                               bool
	// AutoMerge is "off" (the default), "platform": the forge merges when the
	// required checks have passed, or a duration such as "24h": we merge when it
	// has been open for so long and its checks have passed. Without required
	// checks there is no merge. MergeMethod is merge, squash or rebase.
	AutoMerge   string
	MergeMethod string
	// Reopen is "next" (the default: a version whose request was closed
	// unmerged is not offered again) or "always".
	Reopen string
	// Dashboard is the title of an issue that lists what is open, pending,
	// limited, failed and ignored; "": none.
	Dashboard string
	// Check are commands that run in the edited checkout and gate the push.
	Check        [][]string
	CheckTimeout time.Duration // of each; 0: 10 minutes
	// Config says for people which config asked for this.
	Config string
}

// App is an App of GitHub.
type App struct {
	ID           int64
	Installation int64 // 0: looked up
	Key          secret.Source
}

// Window is when something may be done: for Length from each time that Cron, a
// schedule of five fields with an optional CRON_TZ=, names.
type Window struct {
	Cron   string
	Length time.Duration
}

// Summary is what the templates of titles, messages and labels see.
type Summary struct {
	Name     string // Repo.Name
	Old, New string // the versions, where all targets agree; else ""
	Targets  []string
	Families []string
	Pins     []Pin
	Date     string // of the newest pin
	Title    string // the title that a template would take the place of
	Body     string // the body in plain text, for messages
}

// Options are the ways to run a bump.
type Options struct {
	// DryRun stops before anything is changed elsewhere: Result says what would
	// be. Depth is how far it goes, one of the Depth constants.
	DryRun bool
	Depth  string
	// Migrate lets the edit change host and directory of addresses too.
	Migrate bool
	// Force makes the branch anew whoever's commits it holds, and offers again
	// what was closed: a person has asked for it.
	Force bool
	// Older lets a pin take the place of a newer version: a person has named it, or
	// the policy is to follow wherever the index goes. Else nothing is offered.
	Older bool
	// WorkDir is where a scratch repository is made, and removed again; empty
	// means the system's directory for temporary files.
	WorkDir string
	// Env looks up the environment; nil means os.Getenv. git is found in its
	// PATH and sees no more of it than proxies, certificates, ssh's agent and
	// GIT_SSH_COMMAND; the token is where Repo.Token says.
	Env func(string) string
	// Now dates the commit; nil means time.Now.
	Now func() time.Time
	// Proofs say what the pins rest on, by target.
	Proofs map[string]body.Proof
	// Proof adds to the proof of a target what changes from old, the version that
	// stands there ("" if that is not known): comparing two trees takes seconds, so
	// it is asked for what a body will tell, and not before. nil: Proofs is all
	// that is known. It may return nil, for a target that it does not know.
	Proof func(ctx context.Context, target, old string) (*body.Proof, error)
	// Published tells whether the index still lists a release by its file name;
	// nil: it is not known. An open request for one that is gone is closed.
	Published func(name string) bool
	// Open opens the repository on its forge; nil means forge.Open. Tests put
	// another clock or transport in.
	Open func(ctx context.Context, c forge.Config) (forge.Forge, error)
	Log  *slog.Logger
	// Event receives progress; nil means nobody listens.
	Event func(Event)
}

// How far a dry run goes.
const (
	DepthLookup = "lookup" // which pins would change, without their diff
	DepthDiff   = "diff"   // the diff and the body
	DepthFull   = "full"   // and what the forge would be asked to do; the default
)

// Event is a step of a bump that has begun.
type Event struct {
	Kind    string // fetch, edit, check, push or request
	Repo    string // Repo.Name
	Message string // one line for a person
}

// Edit is one value that a bump changes.
type Edit struct {
	Path   string // of the file
	Attr   string // the key in File.Set
	Target string
	From   string
	To     string
}

// Result is what a bump did.
type Result struct {
	Changed bool     // the wanted files differ from those on the base
	Base    string   // the branch that was compared with
	Branch  string   // the branch the bump lives on
	Commit  string   // its commit; when DryRun or nothing changed, ""
	Title   string   // the first line of its message, and the request's title
	Body    string   // the body of the request, or the rest of the message
	Diff    string   // unified diff against the base
	Pushed  bool     // a commit was pushed by this run
	URL     string   // of the request, or where to open it; "" if unknown
	Edits   []Edit   // values that differ from the base, by path and key
	Waiting []string // targets without a pin that held the bump back
	Skipped []string // targets without a pin that were left out
	Message string   // one line for a person: what happened, what to do next

	Number   int64    // of the request; 0 if there is none
	Action   string   // what was done, one of the Action constants
	Actions  []string // what was done to the forge, or would be, one line each
	Verified bool     // the forge vouches for the commit's signature
	Others   []Result // of the further requests, when Group is independent
}

// What a bump did to its request.
const (
	ActionNone    = "none"    // nothing to do
	ActionOpened  = "opened"  //
	ActionUpdated = "updated" // commit or text
	ActionClosed  = "closed"  // obsolete, merged by other means, or withdrawn
	ActionMerged  = "merged"  // by us
	ActionPushed  = "pushed"  // a branch or a base, where there are no requests
	ActionWaits   = "waits"   // for a window, a limit, an age, a target
	ActionIgnored = "ignored" // closed by a person before, or somebody else's request does it
)

// Run brings the pins to the repository: it reads the base branch, edits the
// files, and keeps one commit on one branch and one request for it. Its errors
// are *pinfile.MatchError, *pinfile.ValueError, *pinfile.HashKindError,
// *pinfile.SyntaxError, *HumanCommitsError, *URLError, *CheckError, *GitError,
// *release.MismatchError (a rocm-nightly.lock of the repository knows other bytes
// under the name), those of forge, or say what in repo is wrong. Where Group is independent and
// one target's request failed, the Result is of the others.
func Run(ctx context.Context, repo Repo, pins map[string]Pin, o Options) (*Result, error) {
	return run(ctx, repo, pins, o)
}
