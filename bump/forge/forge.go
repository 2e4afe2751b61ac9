package forge

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

// Config names one repository on a forge and whoever acts there.
type Config struct {
	Kind  string // github, gitea (Forgejo too) or gitlab
	API   string // base of the API, for GitHub Enterprise and the like; "" follows from Host
	Web   string // scheme and host of the pages, e.g. https://github.com
	Owner string // user, organisation or, for GitLab, a path of groups
	Name  string
	Auth  Auth
	// HTTP is the transport under everything; nil means one with timeouts.
	HTTP http.RoundTripper
	Log  *slog.Logger // nil: silent
	// Now and Sleep are the clock; nil means the machine's. Sleep ends early
	// with the context's error.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration) error
	// MaxWait bounds what one call waits for limits and retries together; 0 is
	// ten minutes. What would take longer is a *LimitError.
	MaxWait time.Duration
}

// Auth is who acts: a token, or an App of GitHub.
type Auth struct {
	Token          secret.Secret
	AppID          int64 // of a GitHub App; 0: Token is used
	InstallationID int64 // 0: that of the repository is looked up
	PrivateKey     secret.Secret
}

// Info is what the forge says of the repository.
type Info struct {
	Owner, Name string
	Default     string // branch
	Page        string // of the repository
	Clone       string // https address, without credentials
	Push        bool   // whoever acts may push to it
	Archived    bool
	Requests    bool   // pull requests are on
	Issues      bool   // issues are on
	AutoMerge   bool   // merging when checks have passed is on
	Login       string // who acts; "" if the forge does not tell
	Email       string // the address that the forge gives their commits; "" if unknown
	Signs       bool   // commits made through Trees without an author are signed by the forge
	// Missing names the scopes or permissions that the token lacks for what a
	// bump does, as the forge calls them; nil if none, or if it does not tell.
	Missing []string
}

// State of a pull request.
const (
	Opened = "open"
	Closed = "closed" // unmerged
	Merged = "merged"
)

// Pull is a pull request (a merge request on GitLab).
type Pull struct {
	Number              int64 // as people write it: #12, !12
	Page                string
	Title, Body         string
	State               string // Opened, Closed or Merged
	Draft               bool
	Base                string // branch
	Head                string // branch
	HeadRepo            string // OWNER/NAME; "" if it is gone
	HeadCommit          string
	Author              string // login
	Labels              []string
	Assignees           []string
	Reviewers           []string // asked, or who have reviewed
	Created, Updated    time.Time
	Ended               time.Time // closed or merged; zero while open
	Conflicts           bool      // the forge knows that it cannot be merged for conflicts
	AutoMerge           bool      // it merges itself when it may
	MergeCommit, Merger string
}

// Query selects pull requests.
type Query struct {
	State    string // Opened, Closed (merged ones too) or "" for all
	Head     string // branch; "" for any
	HeadRepo string // OWNER/NAME of the head; "" for any
	Base     string // branch; "" for any
	Limit    int    // at most so many, the newest first; 0 is 200
}

// PullEdit is what a pull request shall be. A nil field stays as it is.
type PullEdit struct {
	Title, Body, Base *string
	State             *string // Opened or Closed
	Draft             *bool
}

// NewPull is a pull request to open.
type NewPull struct {
	Title, Body string
	Base, Head  string // branches
	HeadRepo    string // OWNER/NAME of a fork; "" the repository itself
	Draft       bool
}

// Comment is a comment of a pull request or issue.
type Comment struct {
	ID      int64
	Author  string
	Body    string
	Created time.Time
}

// Issue is an issue.
type Issue struct {
	Number      int64
	Page        string
	Title, Body string
	Open        bool
	Author      string
	Labels      []string
	Updated     time.Time
}

// Checks is what the forge's checks say of a commit.
type Checks struct {
	State    string // pending, success, failure or none
	Total    int
	Required bool // the branch is protected by required checks
	Failed   []string
}

// Forge is one repository on a forge. Every method may wait for the forge's
// limits and tries again what may be tried again; its errors match one of this
// package's types or sentinels where a caller can act on it.
type Forge interface {
	Info(ctx context.Context) (Info, error)

	Pulls(ctx context.Context, q Query) ([]Pull, error)
	Pull(ctx context.Context, number int64) (Pull, error)
	// OpenPull opens a pull request. When one is open for the same head and
	// base it returns that one and ErrExists.
	OpenPull(ctx context.Context, n NewPull) (Pull, error)
	EditPull(ctx context.Context, number int64, e PullEdit) (Pull, error)
	// Diff returns the unified diff of a pull request, cut at limit bytes.
	Diff(ctx context.Context, number int64, limit int) (string, error)
	AddLabels(ctx context.Context, number int64, labels []string) error
	RemoveLabel(ctx context.Context, number int64, label string) error
	// Ask requests reviews: of users, and of teams as ORG/TEAM or TEAM.
	Ask(ctx context.Context, number int64, users, teams []string) error
	Assign(ctx context.Context, number int64, users []string) error
	// AutoMerge lets the forge merge when it may; off takes that back. An error
	// that matches ErrUnsupported says why this repository has no such thing.
	AutoMerge(ctx context.Context, number int64, headCommit string, on bool, method string) error
	// Merge merges now, if the head is still headCommit.
	Merge(ctx context.Context, number int64, headCommit, method string) error
	Checks(ctx context.Context, commit, base string) (Checks, error)

	Comments(ctx context.Context, number int64) ([]Comment, error)
	AddComment(ctx context.Context, number int64, body string) (Comment, error)
	EditComment(ctx context.Context, number, id int64, body string) error

	// Issues lists the open issues whose title is title and that whoever acts
	// has opened, the oldest first.
	Issues(ctx context.Context, title string) ([]Issue, error)
	OpenIssue(ctx context.Context, title, body string, labels []string) (Issue, error)
	EditIssue(ctx context.Context, number int64, title, body *string, open *bool) error

	// Fork returns the repository's fork that owner ("" whoever acts) has,
	// made first where there is none, and waits until it can be pushed to.
	Fork(ctx context.Context, owner string) (Forge, error)
}

// Commit is a commit of a repository.
type Commit struct {
	ID                          string
	Tree                        string
	Parents                     []string
	AuthorName, AuthorEmail     string
	CommitterName, CommitterAdr string
	Message                     string
	Verified                    bool   // the forge vouches for its signature
	Login                       string // the forge's account of the author; "" if it knows none
}

// File is a file of a commit.
type File struct {
	Path string
	Mode string // 100644 or 100755 for a regular file; else as git has it
	Text []byte // only of a regular file
}

// NewCommit is a commit to make: the tree of Parent with Files in it.
type NewCommit struct {
	Parent    string
	Files     []File // Mode and Text as they shall be
	Message   string
	Author    string // name; "" and an empty Email leave both to the forge, which then signs
	Email     string
	Committed time.Time
}

// Trees is a Forge whose commits are read and made without a clone.
type Trees interface {
	// Tip returns the commit that a branch is at; ErrNotFound where there is no
	// such branch.
	Tip(ctx context.Context, branch string) (Commit, error)
	// File reads a file of a commit. A symlink on the way to it is not followed.
	File(ctx context.Context, commit, path string, limit int64) (File, error)
	// Tree returns the id that the tree of n would have, and makes it, but no
	// commit.
	Tree(ctx context.Context, n NewCommit) (string, error)
	// Commit makes a commit. No branch leads to it yet.
	Commit(ctx context.Context, n NewCommit, tree string) (Commit, error)
	// Move sets a branch, if it is at from ("" if there is none), else ErrMoved.
	Move(ctx context.Context, branch, from, to string) error
	// Remove deletes a branch, if it is at from, else ErrMoved.
	Remove(ctx context.Context, branch, from string) error
}
