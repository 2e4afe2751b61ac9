package bump

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/bump/body"
	"github.com/rocm-nightly/rocm-nightly/bump/forge"
	"github.com/rocm-nightly/rocm-nightly/internal/fault"
)

// life is one passage of a unit: look, decide, do.
type life struct {
	*session
	u   *unit
	res *Result

	baseAt forge.Commit
	tip    *forge.Commit // of the branch; nil if there is none
	change *change
	older  string       // why nothing is offered: the base has something newer
	proofs []body.Proof // of the pins of change
	texts  texts
	plain  string // the text of the commit's message
	who    us
	theirs string // why the tip is not ours; "" if it is

	open    *forge.Pull  // our open request
	spare   []forge.Pull // older ones, which a person has opened again meanwhile
	young   bool         // nobody has touched it since it was opened
	checks  []body.Check
	checked bool
	notes   []string
	made    string // commit that this run pushed
	opened  bool   // the request by this run
	edited  bool   // its text by this run
	retry   bool
	// required says that the base asks for checks to pass.
	required bool
}

// live brings u to its branch. Whoever loses a race looks again once, and then
// agrees with what the winner did.
func (s *session) live(ctx context.Context, u *unit) (*Result, error) {
	for again := false; ; again = true {
		l := &life{session: s, u: u, res: s.newResult(u), who: us{s.repo.Author, s.info}}
		err := l.pass(ctx)
		if err == nil {
			return l.res, nil
		}
		if res, waits := s.limited(u, err); waits {
			return res, nil
		}
		if again || !errors.Is(err, forge.ErrMoved) || s.forge == nil && s.repo.Mode == modePull {
			return nil, err
		}
		if err := s.look(ctx, u); err != nil {
			return nil, err
		}
	}
}

func (l *life) pass(ctx context.Context) error {
	var err error
	if l.baseAt, l.tip, err = l.tips(ctx, l.u.branch); err != nil {
		return err
	}
	if l.tip != nil {
		l.theirs = l.who.notOurs(*l.tip)
	}
	if err := l.edit(ctx); err != nil {
		return err
	}
	if l.o.DryRun && l.o.Depth != DepthFull {
		return l.shallow()
	}
	if l.forge != nil {
		return l.request(ctx)
	}
	if held := l.held(l.u); held.Message != "" {
		l.res.Action, l.res.Message = held.Action, held.Message
		return nil
	}
	if !l.res.Changed {
		l.res.Message = l.upToDate()
		return nil
	}
	return l.push(ctx)
}

// upToDate says that nothing is to be changed.
func (l *life) upToDate() string {
	if l.older != "" {
		return l.older
	}
	return fmt.Sprintf("%s is up to date", l.base)
}

// edit finds out what the base lacks.
func (l *life) edit(ctx context.Context) error {
	l.change = &change{}
	if l.u.waits != "" || l.u.gone != "" {
		return nil
	}
	l.event("edit", fmt.Sprintf("edit %d files on %s", len(l.u.plan.wants), l.base))
	var err error
	if l.change, err = makeChange(ctx, l.u.plan, readAt(l.up, l.baseAt.ID, l.base), l.o.Migrate); err != nil {
		return err
	}
	if l.change.older != "" && !l.o.Older {
		l.older, l.change = fmt.Sprintf("%s has something newer: %s", l.base, l.change.older), &change{}
		return nil
	}
	if err := l.remote.local(l.change.edits); err != nil {
		return err
	}
	l.res.Edits, l.res.Diff = l.change.edits, l.change.diff
	l.res.Changed = len(l.change.files) > 0
	if !l.res.Changed {
		return nil
	}
	if !l.o.DryRun || l.o.Depth != DepthLookup {
		l.prove(ctx)
	}
	in := l.input()
	in.Flavor = body.Plain
	message := body.Message(in)
	l.texts, err = summaryTexts(l.repo, summaryOf(l.repo.Name, l.change.edits, l.change.pins, message))
	if err != nil {
		return err
	}
	l.plain = l.texts.message
	l.res.Title, l.res.Body = l.texts.title, messageBody(l.texts.title, l.message())
	return nil
}

// prove finds out what the pins of the change rest on.
func (l *life) prove(ctx context.Context) {
	l.proofs = nil
	for _, pin := range l.change.pins {
		_, told := l.o.Proofs[pin.Target]
		if told || l.o.Proof != nil {
			l.proofs = append(l.proofs, l.o.ProofOf(ctx, pin.Target, pin, oldVersion(l.change.edits, pin)))
		}
	}
}

// messageBody is what follows the title.
func messageBody(title, message string) string { return strings.TrimPrefix(message, title+"\n\n") }

func (l *life) message() string {
	signoff := ""
	if l.repo.Signoff {
		signoff = l.repo.Author.Name + " <" + l.repo.Author.Email + ">"
	}
	return messageOf(l.texts.title, l.plain, signoff)
}

// shallow ends a dry run that does not ask what would be done to the forge.
func (l *life) shallow() error {
	if held := l.held(l.u); held.Message != "" {
		l.res.Action, l.res.Message = held.Action, held.Message
		return nil
	}
	l.res.Message = l.upToDate()
	if l.res.Changed {
		l.res.Message = fmt.Sprintf("would change %d values on %s", len(l.res.Edits), l.base)
	}
	if l.o.Depth == DepthLookup {
		l.res.Diff, l.res.Body = "", ""
		return nil
	}
	if l.forge != nil && l.res.Changed {
		l.res.Body = body.Render(l.input())
	}
	return nil
}

// push is the life where there are no requests: a branch, or the base itself.
func (l *life) push(ctx context.Context) error {
	branch, from := l.u.branch, ""
	if l.repo.Mode == modePush {
		branch, from = l.base, l.baseAt.ID
	} else {
		l.res.URL = l.remote.compareURL(l.repo.Forge, l.base, branch)
		if l.tip != nil {
			from = l.tip.ID
		}
		if l.theirs != "" && !l.o.Force {
			return l.human()
		}
		if l.theirs == "" {
			stands, err := l.standing(ctx, false)
			if err != nil {
				return err
			}
			if stands == tipSame {
				l.res.Commit = l.tip.ID
				l.res.Message = fmt.Sprintf("branch %s has it already", branch)
				return nil
			}
		}
	}
	if waits, err := l.window(); err != nil || waits != "" && !l.o.Force {
		l.res.Action, l.res.Message = ActionWaits, waits
		return err
	}
	if l.o.DryRun {
		l.res.Action = ActionPushed
		l.res.Actions = []string{fmt.Sprintf("push %s to branch %s", l.res.Title, branch)}
		l.res.Message = "would " + l.res.Actions[0]
		return nil
	}
	if err := l.commit(ctx, branch, from); err != nil {
		return err
	}
	l.res.Action = ActionPushed
	l.res.Message = fmt.Sprintf("pushed %s to branch %s", l.res.Title, branch)
	return nil
}

func (l *life) human() error {
	by := l.tip.CommitterName + " <" + l.tip.CommitterAdr + ">"
	return &HumanCommitsError{Repo: l.remote.shown, Branch: l.u.branch, Commit: l.tip.ID, By: oneLine(scrub(by, l.secrets)), Reason: l.theirs}
}

// window says why nothing may be pushed now; "" if it may.
func (l *life) window() (string, error) {
	open, next, err := openAt(l.repo.Windows, l.now)
	switch {
	case err != nil || open:
		return "", err
	case next.IsZero():
		return "no window is open, and none will be", nil
	}
	return "no window is open: the next one opens at " + next.Format(time.RFC3339), nil
}

// commit makes the one commit on the base and has branch at it, if it still is
// where it was seen.
func (l *life) commit(ctx context.Context, branch, from string) error {
	if err := l.check(ctx); err != nil {
		return err
	}
	n := forge.NewCommit{
		Parent: l.baseAt.ID, Files: l.change.files, Message: l.message(),
		Author: l.repo.Author.Name, Email: l.repo.Author.Email, Committed: l.now,
	}
	if l.info.Signs && l.repo.Author.Email == defaultDomain {
		n.Author, n.Email = "", ""
	}
	l.event("push", "push "+branch)
	tree, err := l.head.Tree(ctx, n)
	if err != nil {
		return err
	}
	c, err := l.head.Commit(ctx, n, tree)
	if err != nil {
		return err
	}
	if err := fault.Point("bump.commit.made"); err != nil {
		return err
	}
	if err := l.head.Move(ctx, branch, from, c.ID); err != nil {
		return err
	}
	l.res.Commit, l.res.Pushed, l.res.Verified, l.made = c.ID, true, c.Verified, c.ID
	l.did("pushed commit %.12s to branch %s", c.ID, branch)
	l.tip, l.theirs = &c, ""
	return fault.Point("bump.branch.moved")
}

// did notes what was done to the forge.
func (l *life) did(format string, args ...any) {
	l.res.Actions = append(l.res.Actions, oneLine(fmt.Sprintf(format, args...)))
}

// standing tells how the branch stands to what is wanted. kept lets it stand
// where only the base has moved on, elsewhere than in the files of the edit.
func (l *life) standing(ctx context.Context, kept bool) (tipIs, error) {
	switch {
	case l.tip == nil:
		return tipNone, nil
	case l.theirs != "":
		return tipHuman, nil
	case !l.res.Changed:
		return tipStale, nil
	}
	parent, stands := l.tip.Parents[0], tipSame
	if parent != l.baseAt.ID {
		if stands = tipKept; !kept {
			return tipStale, nil
		}
	}
	for _, f := range l.change.files {
		have, err := l.head.File(ctx, l.tip.ID, f.Path, maxRead)
		if gone(err) || err == nil && (have.Mode != f.Mode || string(have.Text) != string(f.Text)) {
			return tipStale, nil
		}
		if err != nil {
			return tipNone, err
		}
		if stands == tipSame {
			continue
		}
		if same, err := l.sameBefore(ctx, parent, f.Path); err != nil || !same {
			return tipStale, err
		}
	}
	if _, api := l.head.(*gitPlace); l.o.DryRun && !api {
		return stands, nil // to ask for a tree would be to make one
	}
	tree, err := l.head.Tree(ctx, forge.NewCommit{Parent: parent, Files: l.change.files})
	if err != nil {
		return tipNone, err
	}
	if tree != l.tip.Tree {
		return tipStale, nil
	}
	return stands, nil
}

// sameBefore reports whether a file was at parent what it is on the base.
func (l *life) sameBefore(ctx context.Context, parent, path string) (bool, error) {
	was, err := l.head.File(ctx, parent, path, maxRead)
	now, there := l.change.before[path]
	if gone(err) {
		return !there, nil
	}
	return there && was.Mode == now.Mode && string(was.Text) == string(now.Text), err
}
