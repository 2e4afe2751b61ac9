package bump

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// nameRE is a Repo.Name, which is part of a branch's name.
var nameRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// newJob checks everything that can be checked without the network.
func newJob(repo Repo, pins map[string]Pin, o Options) (*job, error) {
	repo, o = withDefaults(repo, o)
	if !nameRE.MatchString(repo.Name) {
		return nil, errors.New("read name: it must be letters, digits, '.', '_' and '-', and begin with a letter or digit")
	}
	if !slices.Contains([]string{"git", "github", "gitea", "gitlab"}, repo.Forge) {
		return nil, fmt.Errorf("read forge: %.40q is not known (known: git, github, gitea, gitlab)", repo.Forge)
	}
	if repo.Require != "all" && repo.Require != "available" {
		return nil, fmt.Errorf("read require: %.40q is neither all nor available", repo.Require)
	}
	if err := checkBranch(repo.Branch); err != nil {
		return nil, err
	}
	if repo.Base != "" {
		if err := checkBranch(repo.Base); err != nil {
			return nil, err
		}
	}
	if err := checkAuthor(repo.Author); err != nil {
		return nil, err
	}
	r, err := parseRemote(repo.URL)
	if err != nil {
		return nil, err
	}
	p, err := planFiles(repo.Files, pins)
	if err != nil {
		return nil, err
	}
	return &job{repo: repo, o: o, remote: r, plan: p, res: &Result{Base: repo.Base, Branch: repo.Branch}}, nil
}

func checkAuthor(a Author) error {
	bad := func(s string) bool {
		return strings.TrimSpace(s) == "" || strings.ContainsAny(s, "<>") || strings.ContainsFunc(s, isControl)
	}
	if bad(a.Name) || bad(a.Email) {
		return fmt.Errorf("read author: %.60q <%.60q> is not a name and an address", a.Name, a.Email)
	}
	return nil
}

// withDefaults fills what a zero Repo and Options leave open.
func withDefaults(repo Repo, o Options) (Repo, Options) {
	if repo.Forge == "" {
		repo.Forge = "git"
	}
	if repo.Require == "" {
		repo.Require = "all"
	}
	if repo.Branch == "" {
		repo.Branch = "rocm-nightly/" + repo.Name
	}
	if repo.Author == (Author{}) {
		repo.Author = Author{"rocm-nightly", "rocm-nightly@localhost"}
	}
	if o.Env == nil {
		o.Env = os.Getenv
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return repo, o
}

// token returns the token for https, "" when none is asked for or the remote
// is no https.
func (j *job) token() (string, error) {
	if j.repo.TokenEnv == "" || !j.remote.https {
		return "", nil
	}
	token := strings.TrimSpace(j.o.Env(j.repo.TokenEnv))
	if token == "" {
		return "", fmt.Errorf("read token: the variable %s is empty or not set (export it, or take token_env out of the config)", j.repo.TokenEnv)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", fmt.Errorf("read token: the variable %s holds a space or a character that no token has", j.repo.TokenEnv)
	}
	return token, nil
}

// secretsOf lists the forms of the token that must not be shown.
func secretsOf(forge, user, token string) []string {
	if token == "" {
		return nil
	}
	return []string{basic(forge, user, token), token, url.QueryEscape(token), url.PathEscape(token)}
}

// commitInfo is what a raw commit says.
type commitInfo struct {
	tree              string
	parents           []string
	author, committer string // Name <email>
	message           string
}

// parseCommit reads a raw commit object: headers, an empty line, a message.
func parseCommit(raw string) commitInfo {
	var c commitInfo
	head, message, _ := strings.Cut(raw, "\n\n")
	c.message = message
	for line := range strings.SplitSeq(head, "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "tree":
			c.tree = value
		case "parent":
			c.parents = append(c.parents, value)
		case "author":
			c.author = identity(value)
		case "committer":
			c.committer = identity(value)
		}
	}
	return c
}

// identity drops the time from an author or committer line.
func identity(line string) string {
	if i := strings.LastIndexByte(line, '>'); i >= 0 {
		return line[:i+1]
	}
	return line
}

func emailOf(identity string) string {
	_, email, _ := strings.Cut(identity, "<")
	return strings.TrimSuffix(email, ">")
}

// hasTrailer reports whether the last paragraph of a message holds our
// trailer.
func hasTrailer(message string) bool {
	message = strings.TrimRight(message, "\n")
	last := message[strings.LastIndex(message, "\n\n")+1:]
	return slices.Contains(strings.Split(strings.TrimSpace(last), "\n"), trailer)
}

// notOurs says why c is not a commit that a bump by author made; "" if it is.
func (c commitInfo) notOurs(author Author) string {
	switch {
	case !strings.EqualFold(emailOf(c.author), author.Email):
		return "whose author is not " + author.Email
	case !strings.EqualFold(emailOf(c.committer), author.Email):
		return "whose committer is not " + author.Email
	case !hasTrailer(c.message):
		return "whose message lacks the line " + trailer
	}
	return ""
}

// inspectTip looks at the commit on the branch. It refuses somebody else's,
// and reports whether ours is what would be pushed.
func (j *job) inspectTip(ctx context.Context, tree string) (same bool, err error) {
	if j.tip == "" {
		return false, nil
	}
	raw, err := j.git.run(ctx, nil, "cat-file", "commit", j.tip)
	if err != nil {
		return false, err
	}
	c := parseCommit(string(raw))
	if reason := c.notOurs(j.repo.Author); reason != "" {
		return false, &HumanCommitsError{Repo: j.remote.shown, Branch: j.res.Branch, Commit: j.tip, By: oneLine(scrub(c.committer, j.git.secrets)), Reason: reason}
	}
	return c.tree == tree && slices.Equal(c.parents, []string{j.base}), nil
}
