package bump

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/bump/body"
	"github.com/rocm-nightly/rocm-nightly/bump/forge"
	"github.com/rocm-nightly/rocm-nightly/internal/fault"
)

const (
	// newborn is how long after its opening a request still gets what an
	// interrupted run may have left out.
	newborn = 25 * time.Hour
	// untouched is how long after its opening a run may still have been at it: a
	// later change is somebody else's, and what they took off stays off.
	untouched = 2 * time.Minute
)

// do takes the steps of v, each of which leaves the forge in a state from which
// the next run comes to the same end.
func (l *life) do(ctx context.Context, v verdict) error {
	for _, s := range v.steps {
		var err error
		switch s {
		case stepSpare:
			err = l.closeSpare(ctx)
		case stepPush:
			err = l.pushBranch(ctx)
		case stepOpen:
			err = l.openPull(ctx)
		case stepText:
			err = l.editPull(ctx)
		case stepTend:
			err = l.tend(ctx)
		case stepHuman:
			err = l.comment(ctx, l.open.Number, kindHuman, "The branch "+l.u.branch+" holds commits that are not mine, so I leave it alone. "+
				"To have it made anew on "+l.base+", tick the box for that in the text above, or add the label "+labelRetry+".")
		case stepClose:
			err = l.closePull(ctx, v)
		case stepDelete:
			err = l.deleteBranch(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *life) pushBranch(ctx context.Context) error {
	from := ""
	if l.tip != nil {
		from = l.tip.ID
	}
	return l.commit(ctx, l.u.branch, from)
}

// openPull opens the request. Where another run was faster, its request is
// ours too.
func (l *life) openPull(ctx context.Context) error {
	if err := l.check(ctx); err != nil {
		return err
	}
	title, text := l.wantText()
	n := forge.NewPull{Title: title, Body: text, Base: l.base, Head: l.u.branch, Draft: l.repo.Draft}
	if l.forked {
		n.HeadRepo = l.headRepo
	}
	p, err := l.forge.OpenPull(ctx, n)
	if err != nil && !errors.Is(err, forge.ErrExists) {
		return err
	}
	l.open = &p
	l.opened = err == nil
	l.res.Number, l.res.URL, l.res.Body, l.res.Title = p.Number, p.Page, text, title
	l.did("opened request %d", p.Number)
	if err := fault.Point("bump.request.opened"); err != nil {
		return err
	}
	if !l.opened {
		return l.editPull(ctx)
	}
	return nil
}

// editPull sends title and body where they say something else than they shall.
func (l *life) editPull(ctx context.Context) error {
	if l.made == "" && l.textStale(l.wantText()) {
		if err := l.check(ctx); err != nil {
			return err
		}
	}
	title, text := l.wantText()
	l.res.Title, l.res.Body = title, text
	if !l.textStale(title, text) {
		return nil
	}
	e := forge.PullEdit{Body: &text}
	if plainTitle(l.open.Title) != plainTitle(title) {
		e.Title = &title
	}
	p, err := l.forge.EditPull(ctx, l.open.Number, e)
	if err != nil {
		return err
	}
	l.open, l.edited = &p, true
	l.did("edited title and body of request %d", p.Number)
	return fault.Point("bump.request.edited")
}

// plainTitle is a title without what forges put before that of a draft.
func plainTitle(title string) string {
	for _, prefix := range []string{"Draft:", "WIP:", "[Draft]", "[WIP]"} {
		title = strings.TrimPrefix(title, prefix)
	}
	return strings.TrimSpace(title)
}

// comment says text once on a request.
func (l *life) comment(ctx context.Context, number int64, kind, text string) error {
	comments, err := l.forge.Comments(ctx, number)
	if err != nil {
		return err
	}
	for _, c := range comments {
		// A closing is explained each time, but not again after an interruption.
		if l.isOurs(c, kind) && (kind == kindHuman || l.now.Sub(c.Created).Abs() < closingTime) {
			return nil
		}
	}
	if _, err := l.forge.AddComment(ctx, number, body.Comment(kind, text)); err != nil {
		return err
	}
	l.did("commented on request %d", number)
	return fault.Point("bump.request.commented")
}

func (l *life) closePull(ctx context.Context, v verdict) error {
	text := "I close this, for " + v.why + "."
	if v.kind == kindIgnored {
		text = "As asked, I close this and do not offer this version again. The next one is offered."
	}
	if l.theirs != "" {
		text += " The branch holds commits that are not mine, so it stays."
	}
	return l.end(ctx, l.open.Number, v.kind, text, v.why)
}

// end says text on a request and closes it.
func (l *life) end(ctx context.Context, number int64, kind, text, why string) error {
	if err := l.comment(ctx, number, kind, text); err != nil {
		return err
	}
	state := forge.Closed
	if _, err := l.forge.EditPull(ctx, number, forge.PullEdit{State: &state}); err != nil {
		return err
	}
	l.did("closed request %d: %s", number, why)
	return fault.Point("bump.request.closed")
}

// closeSpare leaves one request of the branch open, the newest.
func (l *life) closeSpare(ctx context.Context) error {
	for _, p := range l.spare {
		why := l.open.Page + " is from the same branch"
		if err := l.end(ctx, p.Number, kindClosed, "I close this, for "+why+".", why); err != nil {
			return err
		}
	}
	return nil
}

// deleteBranch removes our own, unmodified branch. That it is gone already, or
// somebody's by now, is as good.
func (l *life) deleteBranch(ctx context.Context) error {
	if l.tip == nil || l.theirs != "" {
		return nil
	}
	err := l.head.Remove(ctx, l.u.branch, l.tip.ID)
	if errors.Is(err, forge.ErrMoved) || errors.Is(err, forge.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	l.did("deleted branch %s", l.u.branch)
	return fault.Point("bump.branch.deleted")
}

// fresh reports whether p is as the run that opened it left it, or was
// interrupted in leaving it.
func (l *life) fresh(p forge.Pull) bool {
	return l.now.Sub(p.Created) < newborn && p.Updated.Sub(p.Created) < untouched
}

// lacking are the labels that the request is to be given. Those that are of a
// version come with each; the others once, so that who takes one off is rid of it.
func (l *life) lacking(fresh bool) (labels []string) {
	p := l.open
	for i, label := range l.texts.labels {
		fixed := label == strings.TrimSpace(l.repo.Labels[i])
		due := fresh && (l.opened || len(p.Labels) == 0) || !fixed && (l.made != "" || l.edited)
		if due && !slices.Contains(p.Labels, label) {
			labels = append(labels, label)
		}
	}
	return labels
}

// tend sees to labels, reviews and merging. What the forge refuses there, for a
// name is unknown to it, is noted and keeps nothing back.
func (l *life) tend(ctx context.Context) error {
	p := l.open
	young := l.opened || l.young
	if lacking := l.lacking(young); len(lacking) > 0 {
		if err := l.soft("label request", l.forge.AddLabels(ctx, p.Number, lacking)); err != nil {
			return err
		}
	}
	if young && len(p.Reviewers) == 0 && len(l.repo.Reviewers)+len(l.repo.Teams) > 0 {
		if err := l.soft("ask for reviews", l.forge.Ask(ctx, p.Number, l.repo.Reviewers, l.repo.Teams)); err != nil {
			return err
		}
	}
	if young && len(p.Assignees) == 0 && len(l.repo.Assignees) > 0 {
		if err := l.soft("assign request", l.forge.Assign(ctx, p.Number, l.repo.Assignees)); err != nil {
			return err
		}
	}
	if slices.Contains(p.Labels, labelRetry) {
		if err := l.soft("remove label "+labelRetry, l.forge.RemoveLabel(ctx, p.Number, labelRetry)); err != nil {
			return err
		}
	}
	if err := fault.Point("bump.request.tended"); err != nil {
		return err
	}
	return l.merge(ctx, young)
}

// soft notes an error that is nobody's loss, and returns those that are.
func (l *life) soft(doing string, err error) error {
	var limit *forge.LimitError
	if err == nil || errors.As(err, &limit) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	l.did("could not %s: %s", doing, scrub(err.Error(), l.secrets))
	if l.o.Log != nil {
		l.o.Log.Warn("could not "+doing, "repo", l.repo.Name, "err", scrub(err.Error(), l.secrets))
	}
	return nil
}

// merge does what auto_merge asks for, where checks are required.
func (l *life) merge(ctx context.Context, young bool) error {
	if l.repo.AutoMerge == autoMergeOff || !l.required || l.open.Draft || l.tip == nil {
		return nil
	}
	if l.repo.AutoMerge == autoMergePlatform {
		if l.open.AutoMerge || !young && l.made == "" {
			return nil // somebody may have switched it off
		}
		return l.soft("switch auto-merge on", l.forge.AutoMerge(ctx, l.open.Number, l.tip.ID, true, l.repo.MergeMethod))
	}
	after, err := mergeAfter(l.repo.AutoMerge)
	if err != nil || l.made != "" || l.now.Sub(l.open.Created) < after {
		return err
	}
	checks, err := l.forge.Checks(ctx, l.tip.ID, l.base)
	if err != nil || !checks.Required || checks.State != "success" {
		return err
	}
	if err := l.forge.Merge(ctx, l.open.Number, l.tip.ID, l.repo.MergeMethod); err != nil {
		return l.soft("merge request", err)
	}
	l.did("merged request %d", l.open.Number)
	l.res.Action = ActionMerged
	if err := fault.Point("bump.request.merged"); err != nil {
		return err
	}
	return l.soft("delete branch", l.deleteBranch(ctx))
}
