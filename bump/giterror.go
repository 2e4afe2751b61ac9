package bump

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/bump/forge"
)

// GitError says which step of git failed.
type GitError struct {
	Verb   string // git's own word: ls-remote, fetch, push, …
	Remote string // the repository, without user or secret; "" if none
	Cause  string // what git said, scrubbed, one line
	Hint   string // what to try, "" if unknown
	err    error
}

func (e *GitError) Error() string {
	msg := "git " + e.Verb
	if e.Remote != "" {
		msg += " " + e.Remote
	}
	msg += ": " + e.Cause
	if e.Hint != "" {
		msg += " (" + e.Hint + ")"
	}
	return msg
}

// Unwrap returns how the process ended; it matches forge.ErrMoved where a
// branch was not where it had been seen.
func (e *GitError) Unwrap() error { return e.err }

// HumanCommitsError says that the branch's last commit is somebody else's, so
// that the branch is theirs now.
type HumanCommitsError struct {
	Repo   string
	Branch string
	Commit string
	By     string // committer, as git names them
	Reason string // how it is known
}

func (e *HumanCommitsError) Error() string {
	return fmt.Sprintf("push %s: branch %s holds commit %.12s by %s, %s: it is left alone (merge it, or delete the branch to have it made anew)",
		e.Repo, e.Branch, e.Commit, e.By, e.Reason)
}

// movedRE is what git says when a push would not replace what was looked at.
var movedRE = regexp.MustCompile(`(?i)stale info|non-fast-forward|fetch first|cannot lock ref|failed to update ref|reference already exists|incorrect old value`)

// blockedRE is what git says when one branch is named like the directory of the
// other, such as x and x/y: both cannot be.
var blockedRE = regexp.MustCompile(`'refs/heads/[^']+' exists; cannot create`)

// gitHints tells, for what git or a server says, what to try. The first that
// matches wins.
var gitHints = []struct {
	says *regexp.Regexp
	hint string
}{
	{blockedRE, "a branch of that name is in the way: delete or rename it, or write branch: in the config"},
	{regexp.MustCompile(`(?i)branch is currently checked out`), "push to a bare repository: a checkout does not follow what is pushed to its branch"},
	{movedRE, "the branch moved meanwhile: run again"},
	{regexp.MustCompile(`(?i)host key verification failed`), "add the host's key to known_hosts: ssh-keyscan, then compare it with what the host publishes"},
	{regexp.MustCompile(`(?i)protected branch|GH006|GH013|pre-receive hook declined|hook declined`), "the server's rules refuse this push: see what it said, or ask who keeps them"},
	{regexp.MustCompile(`(?i)unable to update url base from redirection|redirect|error: 30[1278]`), "the repository has moved: write its new address"},
	{regexp.MustCompile(`(?i)dubious ownership`), "the repository belongs to another user: run as its owner"},
	{regexp.MustCompile(`(?i)authentication failed|could not read (username|password)|terminal prompts disabled|invalid credentials|error: 40[13]|permission denied \(|permission to .* denied|write access .* not granted`),
		"authentication: check that the variable named by token_env holds a token that may write contents, or that ssh has a key for this host"},
	{regexp.MustCompile(`(?i)certificate|SSL`), "the server's certificate is not trusted: set GIT_SSL_CAINFO to its authority's file"},
	{regexp.MustCompile(`(?i)does not appear to be a git repository|repository .* not found|not found|error: 404`),
		"check the url, and that the token or key may read the repository"},
	{regexp.MustCompile(`(?i)could not resolve host|failed to connect|connection (refused|timed out|reset)|network is unreachable`), "check the network and the proxy variables"},
	{regexp.MustCompile(`(?i)no space left`), "free some space where the scratch directory is"},
	{regexp.MustCompile(`(?i)cannot run ssh|ssh: (command )?not found`), "apt install openssh-client"},
	{regexp.MustCompile(`(?i)remote helper|remote-https`), "this git has no https: install all of it, apt install git"},
	{regexp.MustCompile(`(?i)permission denied|insufficient permission|unpacker error`), "no right to write there"},
}

func hintFor(text string) string {
	for _, h := range gitHints {
		if h.says.MatchString(text) {
			return h.hint
		}
	}
	return ""
}

// failure makes an error of a failed command and of what it printed.
func (g *git) failure(verb string, err error, printed string) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
		return &GitError{Verb: verb, Cause: "git could not be started", Hint: "apt install git", err: err}
	}
	text := scrub(printed, g.secrets)
	cause := causeOf(text)
	if cause == "" {
		cause = err.Error()
	}
	if verb == "push" && movedRE.MatchString(text) && !blockedRE.MatchString(text) {
		err = errors.Join(forge.ErrMoved, err)
	}
	return &GitError{Verb: verb, Remote: g.shown, Cause: cause, Hint: hintFor(text), err: err}
}

// causeOf makes one line of git's many: the lines that say error, fatal,
// rejected or remote, or else the last.
func causeOf(text string) string {
	var said []string
	last := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		last = line
		switch {
		case strings.HasPrefix(line, "hint:"), line == "remote:":
			continue
		case strings.HasPrefix(line, "fatal:"), strings.HasPrefix(line, "error:"), strings.HasPrefix(line, "remote:"),
			strings.HasPrefix(line, "!"), strings.Contains(line, "[rejected]"), strings.Contains(line, "Permission denied"):
			if len(said) < 6 {
				said = append(said, oneLine(strings.TrimPrefix(strings.TrimPrefix(line, "fatal: "), "error: ")))
			}
		}
	}
	if len(said) == 0 {
		return oneLine(last)
	}
	return strings.Join(said, "; ")
}

var (
	userinfoRE = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^/\s'"]*@`)
	authRE     = regexp.MustCompile(`(?i)(authorization:\s*)[^\r\n]*`)
)

// scrubURLs takes user names and passwords out of the URLs in s.
func scrubURLs(s string) string { return userinfoRE.ReplaceAllString(s, "$1") }

// scrub takes secrets, what stands before @ in URLs, authorization headers
// and the control characters of terminals out of what git printed.
func scrub(s string, secrets []string) string {
	for _, secret := range secrets {
		if secret != "" {
			s = strings.ReplaceAll(s, secret, "***")
		}
	}
	s = authRE.ReplaceAllString(scrubURLs(s), "$1***")
	return strings.Map(func(r rune) rune {
		if isControl(r) && r != '\n' && r != '\t' {
			return ' '
		}
		return r
	}, s)
}

// lookPath finds name in a PATH that was passed in, absolute entries only.
func lookPath(path, name string) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", exec.ErrNotFound
}
