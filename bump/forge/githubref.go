package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/go-github/v92/github"
)

// Commit makes a commit of a tree. Without author and committer GitHub writes
// whoever acts, and signs what an App has made. One commit too many is an object
// that no branch leads to, so it may be tried again.
func (h *hub) Commit(ctx context.Context, n NewCommit, tree string) (Commit, error) {
	ctx = repeatable(h.t.call(ctx))
	doing := "make a commit in " + h.repo()
	asked := github.Commit{
		Message: &n.Message, Tree: &github.Tree{SHA: &tree}, Parents: []*github.Commit{{SHA: &n.Parent}},
	}
	if n.Author != "" || n.Email != "" {
		asked.Author = &github.CommitAuthor{Name: &n.Author, Email: &n.Email}
		if !n.Committed.IsZero() {
			asked.Author.Date = &github.Timestamp{Time: n.Committed.UTC().Truncate(time.Second)}
		}
		asked.Committer = asked.Author
	}
	c, _, err := h.client.Git.CreateCommit(ctx, h.owner, h.name, asked, nil)
	if err != nil {
		return Commit{}, h.fail(doing, err)
	}
	commit := hubCommitOf(c, c.Parents)
	if commit.Tree != tree {
		return Commit{}, fmt.Errorf("%s: GitHub has made one of another tree, %s instead of %s", doing, hubShort(commit.Tree), hubShort(tree))
	}
	h.keepRoot(commit.ID, commit.Tree)
	return commit, nil
}

// Move sets a branch, if it is at from.
//
// GitHub's API has no compare-and-set of branches that may go backwards. Move
// looks at the branch directly before it sets it; what somebody pushes in the
// fraction of a second between the two requests is no longer led to by the
// branch, but stays in the repository, and the request's page lists the force
// push. A branch that is made is safe: GitHub refuses if there is one.
func (h *hub) Move(ctx context.Context, branch, from, to string) error {
	ctx = h.t.call(ctx)
	doing := "set branch " + branch + " of " + h.repo()
	for try := 1; ; try++ {
		at, err := h.ref(ctx, branch)
		switch {
		case err != nil:
			return h.fail(doing, err)
		case at == to:
			return nil
		case at != from:
			return fmt.Errorf("%s: %w: it is at %s instead of %s", doing, ErrMoved, hubOrNone(at), hubOrNone(from))
		}
		if from == "" {
			_, _, err = h.client.Git.CreateRef(ctx, h.owner, h.name, github.CreateRef{Ref: "refs/heads/" + branch, SHA: to})
		} else {
			_, _, err = h.client.Git.UpdateRef(ctx, h.owner, h.name, "heads/"+branch, github.UpdateRef{SHA: to, Force: new(true)})
		}
		if err == nil {
			return nil
		}
		// The next turn sees what has become of it: a lost answer, somebody
		// else's branch, a commit that is not known everywhere yet.
		again := hubUnsure(err) || hubSays(err, "reference already exists", "reference does not exist", "object does not exist", "not a fast forward")
		if !again || try >= maxAttempts {
			return h.failRef(doing, branch, err)
		}
		if h.t.wait(ctx, budgetOf(ctx, h.t.maxWait), backoff(try), nil) != nil {
			return h.failRef(doing, branch, err)
		}
	}
}

// Remove deletes a branch, if it is at from; one that is gone already is none
// the worse. Between look and deletion is the gap that Move has.
func (h *hub) Remove(ctx context.Context, branch, from string) error {
	ctx = h.t.call(ctx)
	doing := "delete branch " + branch + " of " + h.repo()
	for try := 1; ; try++ {
		at, err := h.ref(ctx, branch)
		switch {
		case err != nil:
			return h.fail(doing, err)
		case at == "":
			return nil
		case at != from:
			return fmt.Errorf("%s: %w: it is at %s instead of %s", doing, ErrMoved, hubShort(at), hubOrNone(from))
		}
		_, err = h.client.Git.DeleteRef(ctx, h.owner, h.name, "heads/"+branch)
		if err == nil {
			return nil
		}
		if !hubUnsure(err) && !hubSays(err, "reference does not exist") || try >= maxAttempts ||
			h.t.wait(ctx, budgetOf(ctx, h.t.maxWait), backoff(try), nil) != nil {
			return h.failRef(doing, branch, err)
		}
	}
}

// failRef is fail for a change of a branch, whose name its protection's error
// then has.
func (h *hub) failRef(doing, branch string, err error) error {
	if hubStatus(err) == http.StatusUnprocessableEntity && hubSays(err, "not a fast forward") {
		return fmt.Errorf("%s: %w: %s", doing, ErrMoved, h.detailOf(err))
	}
	err = h.fail(doing, err)
	var protected *ProtectedError
	if errors.As(err, &protected) {
		protected.Branch = branch
	}
	return err
}

// detailOf is detail for an error that may be GitHub's.
func (h *hub) detailOf(err error) string {
	var answer *github.ErrorResponse
	if errors.As(err, &answer) && answer.Response != nil {
		return h.detail(answer)
	}
	return h.t.detail(err.Error())
}

func hubOrNone(id string) string {
	if id == "" {
		return "no commit"
	}
	return hubShort(id)
}
