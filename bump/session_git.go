package bump

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/bump/forge"
	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

// startGit finds git and gives it its environment.
func (s *session) startGit(ctx context.Context) error {
	if s.git != nil {
		return nil
	}
	bin, err := findGit(ctx, s.o.Env)
	if err != nil {
		return err
	}
	ssh, err := sshCommand(s.repo, s.o.Env, s.scratch)
	if err != nil {
		return err
	}
	env := s.o.Env
	if ssh != "" {
		env = func(name string) string {
			if name == "GIT_SSH_COMMAND" {
				return ssh
			}
			return s.o.Env(name)
		}
	}
	token, err := s.gitToken(ctx)
	if err != nil {
		return err
	}
	s.git = &git{
		bin: bin, dir: s.scratch, shown: s.remote.shown, origin: s.remote.url,
		env:     gitEnv(env, s.remote, s.repo.Forge, token, s.scratch),
		secrets: s.secrets,
	}
	return nil
}

// gitToken is what git brings to https: the config's token, or that which the
// forge has for an App.
func (s *session) gitToken(ctx context.Context) (string, error) {
	if !s.remote.https {
		return "", nil
	}
	app, is := s.forge.(interface {
		GitToken(context.Context) (secret.Secret, error)
	})
	if s.token != "" || !is {
		return s.token, nil
	}
	token, err := app.GitToken(ctx)
	if err != nil {
		return "", err
	}
	s.secrets = append(s.secrets, secretsOf(s.repo.Forge, s.remote.user, token.Reveal())...)
	return token.Reveal(), nil
}

// openGit makes the places for commits of git's own.
func (s *session) openGit(ctx context.Context, head forge.Forge) error {
	if err := s.startGit(ctx); err != nil {
		return err
	}
	up := newGitPlace(s.git, s.remote, "base")
	s.up, s.head = up, up
	if !s.forked || s.wouldFork {
		return nil
	}
	info, err := head.Info(ctx)
	if err != nil {
		return err
	}
	r, err := s.forkRemote(info.Clone)
	if err != nil {
		return err
	}
	s.head = newGitPlace(s.git, r, "fork")
	return nil
}

// forkRemote is the fork's address: beside the repository's own, reached in the
// same way. What the forge says of another host is not believed, for the token
// goes there.
func (s *session) forkRemote(clone string) (remote, error) {
	if !s.remote.https {
		at := strings.LastIndex(s.remote.url, s.remote.path)
		if at < 0 {
			return remote{}, fmt.Errorf("find fork %s: its address does not follow from %s (write the https address as url)", s.headRepo, s.remote.shown)
		}
		return parseRemote(s.remote.url[:at] + s.headRepo + s.remote.url[at+len(s.remote.path):])
	}
	r, err := parseRemote(clone)
	if err != nil {
		return r, err
	}
	if r.host != s.remote.host || r.scheme != s.remote.scheme {
		return r, fmt.Errorf("find fork %s: the forge says that it is at %s, which is another host than %s", s.headRepo, r.shown, s.remote.host)
	}
	return r, nil
}

// look has the places look again at the branches.
func (s *session) look(ctx context.Context, all ...*unit) error {
	var branches []string
	for _, u := range all {
		if s.repo.Mode == modePull {
			branches = append(branches, u.branch)
		}
	}
	if s.up == s.head {
		branches = append(branches, s.base)
	} else if l, is := s.up.(looker); is {
		if err := l.look(ctx, s.base); err != nil {
			return err
		}
	}
	if l, is := s.head.(looker); is {
		if err := l.look(ctx, branches...); err != nil {
			return err
		}
	}
	return s.findBase(all)
}

// findBase settles the name of the base where nobody gave it.
func (s *session) findBase(all []*unit) error {
	if g, is := s.up.(*gitPlace); is && s.base == "" {
		if g.head == "" {
			return fmt.Errorf("find base of %s: its HEAD names no branch that is there (write base: in the config; an empty repository wants a first commit by hand)", s.remote.shown)
		}
		s.base = g.head
	}
	if err := checkBranch(s.base); err != nil {
		return err
	}
	if s.repo.Mode == modePush || s.forked {
		return nil
	}
	if slices.ContainsFunc(all, func(u *unit) bool { return u.branch == s.base }) {
		return fmt.Errorf("find base of %s: base and branch are both %s", s.remote.shown, s.base)
	}
	return nil
}

// tips reads the commits that the base and a branch are at; the branch's is
// nil where there is none.
func (s *session) tips(ctx context.Context, branch string) (base forge.Commit, tip *forge.Commit, err error) {
	base, err = s.up.Tip(ctx, s.base)
	if errors.Is(err, forge.ErrNotFound) {
		return base, nil, fmt.Errorf("find base of %s: there is no branch %s (write another base: in the config; an empty repository wants a first commit by hand)", s.remote.shown, s.base)
	}
	if err != nil || s.repo.Mode == modePush || s.wouldFork {
		return base, nil, err
	}
	c, err := s.head.Tip(ctx, branch)
	if errors.Is(err, forge.ErrNotFound) {
		return base, nil, nil
	}
	return base, &c, err
}
