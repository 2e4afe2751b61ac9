package bump

import (
	"context"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// Pin is what templates see: one verified tarball, for one target.
type Pin struct {
	Version string // AMD's version, e.g. 10.2.0a20260930
	URL     string // where the verified bytes came from
	SRI     string // sha256-<base64>, the form of Nix's hash attributes
	Hex     string // 64 lower-case hex digits
	Nix32   string // 52 digits of Nix base-32, as nix-prefetch-url prints
	Size    int64  // of the tarball, in bytes
	Date    string // of publication, YYYY-MM-DD in UTC; "" if unknown
	Family  string // the slug in the file name, e.g. gfx110X-all
	Target  string // the target that was asked for, e.g. gfx1103
	Channel string // e.g. nightly
	Name    string // the file name of the tarball
}

// FromPin returns p as templates see it, for target.
func FromPin(p release.Pin, target string) Pin {
	_, hex, _ := strings.Cut(string(p.Digest), ":")
	out := Pin{
		Version: p.Version.String(),
		URL:     p.URL,
		SRI:     release.SRI(p.Digest),
		Hex:     hex,
		Nix32:   release.Nix32(p.Digest),
		Size:    p.Size,
		Family:  p.Family,
		Target:  target,
		Channel: p.Channel,
		Name:    p.Name,
	}
	if !p.MTime.IsZero() {
		out.Date = p.MTime.UTC().Format(time.DateOnly)
	}
	return out
}

// File is a target file: a file of somebody's repository that holds a pin.
type File struct {
	// Path is relative to the repository's root, with slashes. It names a
	// regular file outside .git.
	Path string
	// Format is how the file is read: "nix", which is also the default.
	Format string
	// Target chooses the pin. It may be empty where there is one pin.
	Target string
	// Set maps an attribute, as EditNix takes it, to a text/template over Pin.
	Set map[string]string
}

// Author signs the commits. The zero Author is rocm-nightly
// <rocm-nightly@localhost>.
type Author struct {
	Name  string
	Email string
}

// Repo is one repository to bump.
type Repo struct {
	// Name names the bump, and its branch: letters, digits, '.', '_' and '-'.
	Name string
	// Forge is git, github, gitea or gitlab; empty means git. It decides the
	// user name sent beside a token, and Result.URL.
	Forge string
	// URL is https://, ssh://, file://, an absolute path, or user@host:path.
	// It must not hold a password.
	URL string
	// Base is the branch the bump is for; empty means the remote's HEAD.
	Base string
	// TokenEnv names the environment variable that holds the token for https.
	TokenEnv string
	// Branch is the branch that is pushed; empty means rocm-nightly/Name.
	Branch string
	// Files are the pins. Several may share a path.
	Files []File
	// Require is "all" (the default: one missing target holds the others
	// back) or "available".
	Require string
	// Author signs the commit.
	Author Author
}

// Options are the ways to run a bump.
type Options struct {
	// DryRun stops before the push: Result says what would be pushed.
	DryRun bool
	// WorkDir is where a scratch repository is made, and removed again; empty
	// means the system's directory for temporary files.
	WorkDir string
	// Env looks up the environment; nil means os.Getenv. git is found in its
	// PATH and sees no more of it than proxies, certificates, ssh's agent and
	// GIT_SSH_COMMAND; the token is the value of Repo.TokenEnv.
	Env func(string) string
	// Now dates the commit; nil means time.Now.
	Now func() time.Time
	// Verified says, one line each, what the pins rest on; it goes into the
	// commit message.
	Verified []string
	// Event receives progress; nil means nobody listens.
	Event func(Event)
}

// Event is a step of a bump that has begun.
type Event struct {
	Kind    string // fetch, edit or push
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
	Title   string   // the first line of its message
	Body    string   // the rest of its message
	Diff    string   // unified diff against the base
	Pushed  bool     // a commit was pushed by this run
	URL     string   // where to open the pull request, "" if unknown
	Edits   []Edit   // values that differ from the base, by path and attribute
	Waiting []string // targets without a pin that held the bump back
	Skipped []string // targets without a pin that were left out
	Message string   // one line for a person: what happened, what to do next
}

// Run brings the pins to the repository: it fetches the base, edits the files,
// and pushes one commit to the branch. Its errors are *MatchError,
// *ValueError, *HashKindError, *SyntaxError, *HumanCommitsError, *GitError, or
// say what in repo is wrong.
func Run(ctx context.Context, repo Repo, pins map[string]Pin, o Options) (*Result, error) {
	return run(ctx, repo, pins, o)
}
