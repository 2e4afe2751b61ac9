package bump

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/bump/body"
	"github.com/rocm-nightly/rocm-nightly/bump/forge"
	"github.com/rocm-nightly/rocm-nightly/bump/pinfile"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

const (
	maxRead = pinfile.MaxLen
	// labelRetry on a request is the box retry for those who may not edit it.
	labelRetry = "rocm-nightly:retry"
	// githubLimit is what GitHub takes of a body with what others wrote in it,
	// less room for our mark.
	githubLimit = 65536 - 256
)

func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, forge.ErrNotFound) }

// request is the life on a forge.
func (l *life) request(ctx context.Context) error {
	s, err := l.observe(ctx)
	if err != nil {
		return err
	}
	if l.open != nil {
		l.res.Number, l.res.URL = l.open.Number, l.open.Page
	}
	if l.tip != nil && l.theirs == "" {
		l.res.Verified = l.tip.Verified
	}
	if (s.tip == tipSame || s.tip == tipKept) && !l.o.DryRun {
		l.res.Commit = l.tip.ID
	}
	v := decide(s)
	l.res.Action, l.res.Message = v.action, v.why
	switch {
	case v.human && l.o.DryRun:
		return nil
	case v.human:
		return l.human()
	case l.o.DryRun:
		l.foresee(v)
		return nil
	}
	l.event("request", "bring the request for "+l.u.branch+" up to date")
	if err := l.do(ctx, v); err != nil {
		return err
	}
	l.say(s, v)
	return nil
}

// observe sees all that decides.
func (l *life) observe(ctx context.Context) (sight, error) {
	s := sight{gone: cmp.Or(l.u.gone, l.older), waits: l.u.waits, wanted: l.res.Changed, force: l.o.Force}
	mine, err := l.mine(ctx)
	if err != nil {
		return s, err
	}
	if err := l.findOpen(ctx, mine, &s); err != nil {
		return s, err
	}
	l.readBoxes(&s)
	if s.gone == "" && s.open {
		s.gone = l.withdrawn()
	}
	conflicts := l.open != nil && l.open.Conflicts
	if s.tip, err = l.standing(ctx, s.open && !conflicts); err != nil {
		return s, err
	}
	if s.gone != "" || s.waits != "" || !s.wanted || s.moved != "" {
		return s, nil
	}
	if !s.open {
		if s.decline, err = l.declined(ctx, mine); err != nil {
			return s, err
		}
	}
	if s.rival, err = l.rival(ctx); err != nil {
		return s, err
	}
	if s.mayPush, s.mayOpen, err = l.limits(ctx, s.open); err != nil {
		return s, err
	}
	if err := l.mergeNotes(ctx); err != nil {
		return s, err
	}
	title, text := l.wantText()
	s.text = l.textStale(title, text)
	l.res.Title, l.res.Body = title, text
	return s, nil
}

// mine lists the requests of our branch for any base, the newest first.
func (l *life) mine(ctx context.Context) ([]forge.Pull, error) {
	all, err := l.forge.Pulls(ctx, forge.Query{Head: l.u.branch, HeadRepo: l.headRepo})
	if err != nil {
		return nil, err
	}
	var out []forge.Pull
	for _, p := range all {
		ours := strings.EqualFold(p.HeadRepo, l.headRepo) || p.HeadRepo == "" && p.State != forge.Opened
		if p.Head == l.u.branch && ours {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b forge.Pull) int { return int(b.Number - a.Number) })
	return out, nil
}

// findOpen finds our open request: that for the base, or one that was
// retargeted.
func (l *life) findOpen(ctx context.Context, mine []forge.Pull, s *sight) error {
	var found *forge.Pull
	rank := func(p forge.Pull) (n int) {
		if p.Base == l.base {
			n += 2
		}
		if strings.EqualFold(p.Author, l.info.Login) {
			n++
		}
		return n
	}
	for i, p := range mine {
		if p.State == forge.Opened && (found == nil || rank(p) > rank(*found)) {
			found = &mine[i]
		}
	}
	if found == nil {
		return nil
	}
	p, err := l.forge.Pull(ctx, found.Number)
	if err != nil {
		return err
	}
	if p.State != forge.Opened {
		return nil
	}
	s.open, l.open, l.young = true, &p, l.fresh(p)
	if p.Base != l.base {
		s.moved = p.Base
	}
	for _, other := range mine {
		same := other.State == forge.Opened && other.Number != p.Number && other.Base == p.Base
		if same && strings.EqualFold(other.Author, l.info.Login) && body.Versions(other.Body) != nil {
			s.spare, l.spare = true, append(l.spare, other)
		}
	}
	return nil
}

// readBoxes takes what people have ticked.
func (l *life) readBoxes(s *sight) {
	group := l.group()
	if l.open != nil {
		text, _ := readMark(l.open.Body)
		boxes := body.Ticked(text)
		s.retry = slices.Contains(boxes, body.BoxRetry) || slices.Contains(l.open.Labels, labelRetry)
		s.ignore = slices.Contains(boxes, body.BoxIgnore)
	}
	s.now = l.board.ticked(boxApprove, group)
	if l.board.ticked(body.BoxRetry, group) {
		s.retry = true
		s.force = s.force || !s.open
	}
	s.ignore = s.ignore || l.board.ticked(body.BoxIgnore, group)
	l.retry = s.retry || s.force
}

// group is how the dashboard names the unit.
func (l *life) group() string { return groupName(l.repo.Name, l.u.key) }

// withdrawn says that what our open request is about is no longer listed, were
// it one target's alone: a pin of it would download nothing. It is "" if all of
// it is listed, or if nobody can tell. Where no pin tells the names of the
// tarballs, the request's own text does.
func (l *life) withdrawn() string {
	if l.o.Published == nil || l.res.Changed {
		return "" // with another version on offer the request is edited, not closed
	}
	text, _ := readMark(l.open.Body)
	versions := slices.Collect(maps.Values(body.Versions(text)))
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !strings.ContainsRune(nameRunes, r) }) {
		name, err := release.ParseName(word)
		if err == nil && slices.Contains(versions, name.Version.String()) && !l.o.Published(word) {
			return name.Version.String() + " has been withdrawn from AMD's index"
		}
	}
	return ""
}

// nameRunes are what the names of tarballs are made of.
const nameRunes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+~-"

// input is what a body tells.
func (l *life) input() body.Input {
	in := body.Input{
		Flavor: body.Flavor(l.repo.Forge), Name: l.repo.Name, Config: l.repo.Config, Base: l.base, Branch: l.u.branch,
		Forked: l.forked, Fork: l.forkURL,
		Pins: l.change.pins, Proofs: l.proofs, Skipped: l.u.skipped, Checks: l.checks,
	}
	for i, e := range l.change.edits {
		in.Edits = append(in.Edits, body.Edit{Path: e.Path, Key: e.Attr, Target: e.Target, From: e.From, To: e.To, Line: l.change.lines[i]})
	}
	for _, line := range l.notes {
		in.Notes = append(in.Notes, oneLine(line))
	}
	return in
}

// wantText is the request's title and body as they shall be. A title that a
// person gave stays.
func (l *life) wantText() (title, text string) {
	title, text = l.texts.title, body.Render(l.input())
	theirs := false
	if l.open != nil {
		have, m := readMark(l.open.Body)
		limit := 0
		if l.repo.Forge == "github" {
			limit = githubLimit
		}
		if others := strings.TrimSpace(have); body.Versions(have) == nil && !strings.EqualFold(l.open.Author, l.info.Login) && others != "" {
			text = others + "\n\n" + text // a person has opened it, in their words
		} else {
			text = body.Keep(have, text, limit)
		}
		if m.theirs || m.renamed(l.open.Title) || m.sum == "" && plainTitle(l.open.Title) != title {
			title, theirs = l.open.Title, true
		}
	}
	return title, markTitle(text, title, theirs)
}

// textStale reports whether the open request's title or body are to be edited.
// What check commands came to is not known before they have run, and they run
// only for a new commit: without one, what they came to then stays.
func (l *life) textStale(title, text string) bool {
	if l.open == nil {
		return false
	}
	have, hm := readMark(l.open.Body)
	want, wm := readMark(text)
	switch {
	case plainTitle(l.open.Title) != plainTitle(title) || hm != wm || len(body.Ticked(have)) > 0:
		return true
	case len(l.repo.Check) == 0 || l.checked:
		return !sameBody(l.open.Body, text)
	}
	return body.Fingerprint(have) == "" || !sameVersions(body.Versions(have), body.Versions(want))
}

func sameVersions(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

// mergeNotes says in the body why a merging that was asked for does not happen.
func (l *life) mergeNotes(ctx context.Context) error {
	if l.repo.AutoMerge == autoMergeOff {
		return nil
	}
	checks, err := l.forge.Checks(ctx, l.baseAt.ID, l.base)
	if err != nil {
		return err
	}
	if l.required = checks.Required; !l.required {
		l.notes = append(l.notes, fmt.Sprintf("auto_merge is %s, and no check is required on %s: this is merged by hand", l.repo.AutoMerge, l.base))
	}
	return nil
}

// foresee tells what a dry run would have done.
func (l *life) foresee(v verdict) {
	if l.wouldFork {
		l.did("push to the fork %s, which is made if it is not there", l.headRepo)
	}
	what := map[step]string{
		stepPush: "push a commit to branch " + l.u.branch, stepOpen: "open the request: " + l.res.Title,
		stepText: "edit the request's title and body", stepHuman: "comment that the branch is somebody's",
		stepSpare: "close older requests of the same branch", stepClose: "close the request: " + v.why, stepDelete: "delete branch " + l.u.branch,
	}
	for _, s := range v.steps {
		if text := what[s]; text != "" {
			l.did("%s", text)
		}
	}
	l.res.Message = v.why
	if len(l.res.Actions) > 0 {
		l.res.Message = "would " + strings.Join(l.res.Actions, "; ")
	}
}

// say sums up for a person.
func (l *life) say(s sight, v verdict) {
	at := ""
	if l.res.URL != "" {
		at = ": " + l.res.URL
	}
	switch l.res.Action {
	case ActionOpened:
		l.res.Message = "opened " + l.res.Title + at
	case ActionUpdated:
		l.res.Message = "updated " + l.res.Title + at
	case ActionMerged:
		l.res.Message = "merged " + l.res.Title + at
	case ActionClosed:
		l.res.Message = "closed the request, for " + v.why + at
	case ActionNone:
		l.res.Message = v.why + at
		if !s.wanted {
			l.res.Message = fmt.Sprintf("%s is up to date", l.base)
		}
	}
}
