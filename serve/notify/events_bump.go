package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// Those of bump's actions that people are told of.
const (
	actionOpened = "opened" // a request
	actionPushed = "pushed" // a branch or a base, where there are no requests
)

// bumpKey begins the key of events about a repository.
const bumpKey = "bump "

// FromBump is what the bumps of a run have to tell: a request that was opened, a
// branch that was pushed where there are no requests, or that it failed.
func FromBump(bumps []*update.Bumped, host string, now time.Time, final bool) []Event {
	s := scene{host, now}
	var all []Event
	failed := map[string]bool{}
	for _, b := range bumps {
		if b != nil && (b.Err != nil || b.Error != "") {
			failed[b.Name] = true
		}
	}
	recovered := map[string]bool{}
	for _, b := range bumps {
		switch {
		case b == nil || errors.Is(b.Err, context.Canceled):
		case b.Err != nil || b.Error != "":
			if final {
				all = append(all, s.bumpFailed(b))
			}
		default:
			if b.Action == actionOpened || b.Action == actionPushed {
				all = append(all, s.opened(b))
			}
			if !failed[b.Name] && !recovered[b.Name] { // a repository may have several requests
				recovered[b.Name] = true
				all = append(all, s.recovered(bumpKey+b.Name, Failed, "bump "+b.Name+" is in order again", sentence(b.Message)))
			}
		}
	}
	return all
}

func (s scene) opened(b *update.Bumped) Event {
	title, text := "bump "+b.Name+": pushed to "+b.Branch, sentence(b.Message)
	if b.Number != 0 {
		title = fmt.Sprintf("bump %s: request #%d was opened", b.Name, b.Number)
		text = plain.Cut(b.Title, maxTitle)
	}
	e := s.event(Opened, bumpKey+b.Name, cmp.Or(mark(b), b.Title), title, lines(text, edits(b)))
	e.URL = b.URL
	for _, d := range b.Edits {
		if d.To != "" && e.Version == "" && len(d.To) < 100 {
			e.From, e.Version = plain.Cut(d.From, 100), plain.Cut(d.To, 100)
		}
	}
	return e
}

// mark tells one request, or one push, from the next.
func mark(b *update.Bumped) string {
	if b.Number != 0 {
		return fmt.Sprintf("#%d", b.Number)
	}
	return b.Commit
}

// edits says which values change, the first few.
func edits(b *update.Bumped) string {
	var all []string
	for i, d := range b.Edits {
		if i == 4 {
			all = append(all, fmt.Sprintf("and %d more", len(b.Edits)-i))
			break
		}
		all = append(all, plain.Cut(fmt.Sprintf("%s %s: %s -> %s", d.Path, d.Key, d.From, d.To), 200))
	}
	return lines(all...)
}

func (s scene) bumpFailed(b *update.Bumped) Event {
	reason := b.Error
	if reason == "" {
		reason = b.Err.Error()
	}
	e := s.event(Failed, bumpKey+b.Name, "", "bump "+b.Name+" failed",
		lines("Why: "+quoted(reason), "To try again: rocm-nightly bump "+b.Name+"; to see what it would do: rocm-nightly bump --dry-run "+b.Name))
	e.URL, e.Exit = b.URL, update.ExitFailed
	return e
}
