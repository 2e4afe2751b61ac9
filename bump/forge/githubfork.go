package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-github/v92/github"
)

// Fork returns the fork that owner has. GitHub is asked to make one in any case:
// where there is one already, whatever its name, it answers with that.
func (h *hub) Fork(ctx context.Context, owner string) (Forge, error) {
	ctx = h.t.call(ctx)
	doing := "fork " + h.repo()
	who, err := h.me(ctx)
	if err != nil {
		return nil, err
	}
	if h.auth.bot() && owner == "" {
		return nil, fmt.Errorf("%s: %w: an App has no account that a fork could belong to (give it the right to push, name as fork the owner of one that it is installed on, or use a person's token)", doing, ErrUnsupported)
	}
	options := &github.RepositoryCreateForkOptions{}
	if owner != "" && !strings.EqualFold(owner, who.login) {
		options.Organization = owner
	}
	fork, _, err := h.client.Repositories.CreateFork(repeatable(ctx), h.owner, h.name, options)
	var accepted *github.AcceptedError
	if err != nil && !errors.As(err, &accepted) {
		return nil, h.fail(doing, err)
	}
	c := h.conf
	c.Owner, c.Name = fork.GetOwner().GetLogin(), fork.GetName()
	switch {
	case !hubSlug(c.Owner) || !hubSlug(c.Name):
		return nil, fmt.Errorf("%s: GitHub's answer names no repository", doing)
	case strings.EqualFold(c.Owner, h.owner):
		return nil, fmt.Errorf("%s: %w: %s owns it, and nobody has a fork of their own repository", doing, ErrUnsupported, c.Owner)
	}
	c.Auth.InstallationID = 0 // that of the fork is another
	f, err := openHub(c, h.t, h.t.base.String(), h.graphql)
	if err != nil {
		return nil, err
	}
	f.who, f.upstream = &who, h
	return f, f.ready(ctx, doing)
}

// ready waits until the fork's default branch is there, and checks that it is
// this repository's fork.
func (h *hub) ready(ctx context.Context, doing string) error {
	for try := 1; ; try++ {
		r, _, err := h.client.Repositories.Get(ctx, h.owner, h.name)
		if err == nil && !r.GetFork() {
			return fmt.Errorf("%s: %w: %s is a repository of its own, not a fork (rename it, or name another owner)", doing, ErrExists, h.repo())
		}
		if err == nil {
			if _, _, err = h.client.Git.GetRef(ctx, h.owner, h.name, "heads/"+r.GetDefaultBranch()); err == nil {
				return nil
			}
		}
		if code := hubStatus(err); code != http.StatusNotFound && code != http.StatusConflict {
			return h.fail(doing, err)
		}
		if err := h.t.wait(ctx, budgetOf(ctx, h.t.maxWait), min(time.Duration(try)*2*time.Second, 15*time.Second), nil); err != nil {
			return fmt.Errorf("%s: GitHub is still making %s: try again later (%w)", doing, h.repo(), err)
		}
	}
}

// catchUp brings the fork's default branch up to its upstream's, and with it the
// objects that a commit of ours builds on.
func (h *hub) catchUp(ctx context.Context) error {
	r, _, err := h.client.Repositories.Get(ctx, h.owner, h.name)
	if err != nil {
		return err
	}
	_, _, err = h.client.Repositories.MergeUpstream(repeatable(ctx), h.owner, h.name, github.RepoMergeUpstreamRequest{Branch: r.GetDefaultBranch()})
	return err
}
