package bump

import "slices"

// tipIs is how the branch stands to what is wanted.
type tipIs int

const (
	tipNone  tipIs = iota // there is no such branch
	tipSame               // one commit of ours on the base, with what is wanted
	tipKept               // the same edit of ours on an older base, in nobody's way
	tipStale              // a commit of ours that is to be replaced
	tipHuman              // somebody else's commit
)

// sight is what decides about a request.
type sight struct {
	gone    string // why nothing of this is offered any more
	waits   string // why nothing is offered now
	wanted  bool   // the base lacks what is wanted
	tip     tipIs
	open    bool   // our request is open
	spare   bool   // and so is an older one of ours from the same branch
	moved   string // the base that a person has retargeted the request to
	text    bool   // title or body of the request are to be edited
	rival   string // the page of somebody else's request for the same
	decline string // the page of our request for the same that a person closed

	force  bool // a person asked for this run to override
	retry  bool // a person asked for the branch to be made anew
	ignore bool // a person asked not to be offered this
	now    bool // a person asked not to wait for windows and limits

	mayPush, mayOpen string // why a push, or a new request, has to wait; "" if not
}

// step is one thing to do to the forge.
type step string

const (
	stepSpare  step = "spare"  // close older requests of the same branch
	stepPush   step = "push"   // make the commit, and have the branch at it
	stepOpen   step = "open"   // open the request
	stepText   step = "edit"   // bring title and body up to date
	stepTend   step = "tend"   // labels, reviews, merging
	stepHuman  step = "human"  // say once that the branch is somebody's
	stepClose  step = "close"  // say why, and close the request
	stepDelete step = "delete" // delete the branch
)

// verdict is what to do.
type verdict struct {
	action string // as Result.Action
	why    string // one line
	steps  []step
	human  bool   // the branch is somebody's and there is no request to say so in
	kind   string // of the comment that a closing leaves
}

// Kinds of our comments.
const (
	kindHuman   = "human"   // the branch is somebody's
	kindClosed  = "closed"  // closed by us: obsolete, withdrawn, or another's
	kindIgnored = "ignored" // closed by us because a person ticked the box
)

// decide says what to do. Run again after any prefix of the steps was done, it
// comes to the rest of them.
func decide(s sight) verdict {
	v := decideOne(s)
	if s.spare && s.moved == "" {
		v.steps = slices.Insert(v.steps, 0, stepSpare)
		if v.action == ActionNone {
			v.action, v.why = ActionUpdated, "an older request of the same branch"
		}
	}
	return v
}

// decideOne says what to do with the one request.
func decideOne(s sight) verdict {
	ours := s.tip != tipNone && s.tip != tipHuman
	end := func(kind, why string) verdict {
		v := verdict{action: ActionClosed, why: why, kind: kind}
		if s.open {
			v.steps = append(v.steps, stepClose)
		}
		if ours {
			v.steps = append(v.steps, stepDelete)
		}
		if kind == kindIgnored || !s.open {
			v.action = ActionIgnored
		}
		return v
	}
	switch {
	case s.open && s.moved != "":
		return verdict{action: ActionIgnored, why: "the request is for branch " + s.moved + " now: it is left alone"}
	case s.gone != "":
		return end(kindClosed, s.gone)
	case s.open && s.ignore && s.waits != "":
		return end(kindIgnored, "a person has asked not to be offered this version")
	case s.waits != "":
		return verdict{action: ActionWaits, why: s.waits}
	case !s.wanted:
		v := end(kindClosed, "the base has it already")
		if !s.open {
			v.action = ActionNone
		}
		return v
	case s.open && s.ignore:
		return end(kindIgnored, "a person has asked not to be offered this version")
	case !s.open && s.decline != "" && !s.force:
		return verdict{action: ActionIgnored, why: "a person has closed " + s.decline + " for this version: the next version is offered again"}
	}
	if s.rival != "" && !s.force && !(s.open && s.tip == tipHuman) {
		return end(kindClosed, s.rival+" brings the same")
	}
	if s.tip == tipHuman && !s.retry && !s.force {
		v := verdict{action: ActionIgnored, why: "the branch holds somebody's commits: it is left alone", human: !s.open}
		if s.open {
			v.steps = []step{stepHuman}
		}
		return v
	}
	return offer(s)
}

// offer brings what is wanted to the branch and to a request.
func offer(s sight) verdict {
	push := s.tip == tipNone || s.tip == tipStale || s.tip == tipHuman || s.tip == tipKept && (s.retry || s.force)
	now := s.now || s.retry || s.force
	switch {
	case push && s.mayPush != "" && !now:
		return verdict{action: ActionWaits, why: s.mayPush}
	case !s.open && s.mayOpen != "" && !now:
		return verdict{action: ActionWaits, why: s.mayOpen}
	}
	v := verdict{action: ActionNone, why: "the request has it already"}
	if push {
		v.steps = append(v.steps, stepPush)
		v.action, v.why = ActionUpdated, "a newer commit"
	}
	switch {
	case !s.open:
		v.steps = append(v.steps, stepOpen)
		v.action, v.why = ActionOpened, "a new request"
	case s.text:
		v.steps = append(v.steps, stepText)
		if !push {
			v.action, v.why = ActionUpdated, "title or body"
		}
	}
	v.steps = append(v.steps, stepTend)
	return v
}
