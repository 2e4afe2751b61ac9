package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// runKey is what events are about that are about no slot and no repository.
const runKey = "run"

// maxWhy bounds what is quoted of an error, in bytes.
const maxWhy = 1200

// scene is what all events of one report have in common.
type scene struct {
	host string
	now  time.Time
}

// event is an event about key.
func (s scene) event(kind, key, mark, title, text string) Event {
	host := cmp.Or(s.host, "this machine")
	return Event{
		Kind: kind, Key: key, Mark: mark, Time: s.now.UTC(), Host: s.host,
		Title: plain.Cut(title+" ("+host+")", maxTitle), Text: text,
	}
}

// Events is what a run has to tell: final says that nothing of its window is left,
// so that a failure is one. What is right again is told as recovered, to those who
// were told that it was not.
func Events(rep *update.Report, host string, now time.Time, final bool) []Event {
	if rep == nil {
		return nil
	}
	s := scene{host, now}
	all := []Event{s.recovered(runKey, Failed, "rocm-nightly runs again", "A run could begin again.")}
	still := standstill{scene: s}
	for _, out := range rep.Installs {
		all = append(all, s.outcome(out, final)...)
		if out != nil && !errors.Is(out.Err, context.Canceled) {
			still.found(out.Install, out.From, out.Stale, out.Moves)
		}
	}
	all = append(all, still.events()...)
	return append(all, FromBump(rep.Bumps, host, now, final)...)
}

// outcome is what is to be told of one install.
func (s scene) outcome(out *update.Outcome, final bool) []Event {
	if out == nil || errors.Is(out.Err, context.Canceled) {
		return nil // the next run continues
	}
	var all []Event
	switch {
	case out.Exit == update.ExitNewBytes:
		all = append(all, s.newBytes(out))
	case out.Exit == update.ExitRefused:
		all = append(all, s.refused(out))
	case out.Err != nil || out.Error != "":
		if final {
			all = append(all, s.failed(out))
		}
	default:
		all = append(all, s.done(out)...)
	}
	return all
}

// done is what is to be told of an install that is in order.
func (s scene) done(out *update.Outcome) []Event {
	var all []Event
	switch {
	case out.Waits != nil:
		e := s.event(NewNight, out.Install, out.Waits.Generation, out.Install+": "+out.Waits.Generation+" is here and waits",
			lines("It is verified and installed, and not active: "+out.Waits.Reason, active(cmp.Or(out.To, out.From)), "To switch: rocm-nightly activate "+out.Install))
		e.Slot, e.Version, e.From = out.Install, out.Waits.Generation, out.From
		all = append(all, e)
	case out.Changed && out.To != "" && out.To != out.From:
		all = append(all, s.installed(out))
	}
	if len(out.PassedOver) == 0 { // else the newest is still one that failed
		all = append(all, s.recovered(out.Install, Failed, out.Install+" is in order again", cmp.Or(out.Message, "The last run did what it should.")))
	}
	return all
}

func (s scene) installed(out *update.Outcome) Event {
	var checks []string
	if v := out.Verified; v != nil {
		checks = append(checks, "verified against "+strings.Join(v.Against, ", "))
	}
	if a := out.Audit; a != nil {
		checks = append(checks, fmt.Sprintf("audit: %d fatal, %d required, %d warnings", a.Fatal, a.Required, a.Warnings))
	}
	if c := out.Smoke; c != nil {
		checks = append(checks, fmt.Sprintf("smoke: %d passed, %d failed", c.Passed, c.Failed))
	}
	was := ""
	if out.From != "" {
		was = "Before: " + out.From + ". Back to it: rocm-nightly rollback " + out.Install
	}
	e := s.event(Installed, out.Install, out.To, out.Install+": "+out.To+" is active", lines(sentence(strings.Join(checks, "; ")), was))
	e.Slot, e.Version, e.From = out.Install, out.To, out.From
	return e
}

func (s scene) newBytes(out *update.Outcome) Event {
	version := wanted(out)
	e := s.event(NewBytes, out.Install, cmp.Or(version, out.Install), "ALARM: "+out.Install+": other bytes under a known name",
		lines("The index serves "+cmp.Or(version, "a night")+" with other content than was seen under this name before. Nothing of it was installed.",
			active(out.From), why(out), "Do not take it before it is known why. Then: rocm-nightly update --arch "+target(out.Install)+" --accept-new-bytes"))
	e.Slot, e.Version, e.From, e.Exit = out.Install, version, out.From, out.Exit
	return e
}

func (s scene) refused(out *update.Outcome) Event {
	version := wanted(out)
	e := s.event(Refused, out.Install, version, out.Install+": "+cmp.Or(version, "a night")+" was refused",
		lines(findings(out), active(out.From), why(out), "To see more: rocm-nightly status --history; to try it again: rocm-nightly update --arch "+target(out.Install)+" --retry"))
	e.Slot, e.Version, e.From, e.Exit = out.Install, version, out.From, out.Exit
	return e
}

func (s scene) failed(out *update.Outcome) Event {
	version := wanted(out)
	e := s.event(Failed, out.Install, version, out.Install+": the update failed",
		lines(active(out.From), why(out), "To try again now: rocm-nightly update --arch "+target(out.Install)+"; to look: rocm-nightly doctor"))
	e.Slot, e.Version, e.From, e.Exit = out.Install, version, out.From, cmp.Or(out.Exit, update.ExitFailed)
	return e
}

// recovered tells that a trouble is over: mark is its kind, Failed for all that are
// no stale index.
func (s scene) recovered(key, mark, title, text string) Event {
	e := s.event(Recovered, key, mark, title, text)
	if key != runKey && !strings.HasPrefix(key, bumpKey) && !strings.HasPrefix(key, indexKey) {
		e.Slot = key
	}
	return e
}

// Looked is what a look at the indexes has to tell. A look that failed tells
// nothing: the run after it does, when its window is over.
func Looked(l *update.Looked, host string, now time.Time) []Event {
	if l == nil {
		return nil
	}
	s := scene{host, now}
	var all []Event
	still := standstill{scene: s}
	for _, at := range l.Installs {
		if at.Error != "" {
			continue
		}
		if at.Admits && at.Newest != "" && at.Newest != at.Active {
			e := s.event(NewNight, at.Install, at.Newest, at.Install+": "+at.Newest+" is published",
				lines(active(at.Active), sentence(at.Message), "To install it now: rocm-nightly update --arch "+target(at.Install)))
			e.Slot, e.Version, e.From = at.Install, at.Newest, at.Active
			all = append(all, e)
		}
		still.found(at.Install, at.Active, at.Stale, at.Moves)
	}
	return append(all, still.events()...)
}

// FromError is what a run has to tell that could not even begin.
func FromError(err error, host string, now time.Time, final bool) []Event {
	if err == nil || !final || errors.Is(err, context.Canceled) {
		return nil
	}
	s := scene{host, now}
	e := s.event(Failed, runKey, "", "rocm-nightly could not run", lines("Why: "+quoted(err.Error()), "To look: rocm-nightly config check; rocm-nightly doctor"))
	e.Exit = update.ExitOf(err)
	return []Event{e}
}

// findings says in a line what of the checks did not pass.
func findings(out *update.Outcome) string {
	var all []string
	if a := out.Audit; a != nil && a.Refused {
		all = append(all, fmt.Sprintf("audit: %d fatal, %d required, %d warnings", a.Fatal, a.Required, a.Warnings))
	}
	if c := out.Smoke; c != nil && c.Failed > 0 {
		all = append(all, fmt.Sprintf("smoke: %d of %d failed", c.Failed, c.Failed+c.Passed))
	}
	for _, h := range out.Health {
		if h.Status == "failed" {
			all = append(all, "the health command failed "+h.Phase+" the switch")
		}
	}
	return sentence(strings.Join(all, "; "))
}

// wanted is the version that a run was about; "" if it did not come so far.
func wanted(out *update.Outcome) string {
	switch {
	case len(out.PassedOver) > 0:
		return out.PassedOver[0].Version
	case out.To != "" && out.To != out.From:
		return out.To
	case out.Release != "":
		name := path.Base(out.Release)
		if n, err := release.ParseName(name); err == nil {
			return n.Version.String()
		}
		return strings.TrimSuffix(name, ".tar.gz")
	}
	return ""
}

// why quotes the error of an install.
func why(out *update.Outcome) string {
	text := out.Error
	if text == "" && out.Err != nil {
		text = out.Err.Error()
	}
	if text == "" && len(out.PassedOver) > 0 {
		text = out.PassedOver[0].Reason
	}
	if text == "" {
		return ""
	}
	return "Why: " + quoted(text)
}

// quoted is a text of somebody else, plain and bounded, on one line.
func quoted(text string) string { return plain.Cut(strings.Join(strings.Fields(text), " "), maxWhy) }

// active says what stays in use.
func active(version string) string {
	if version == "" {
		return "Nothing is installed."
	}
	return "Active: " + version + "."
}

// target is the target of a slot, for commands.
func target(slot string) string {
	if _, t, ok := strings.Cut(slot, "-"); ok {
		return t
	}
	return slot
}

// sentence is a text with a capital and a full stop; "" stays "".
func sentence(text string) string {
	text = quoted(text)
	if text == "" {
		return ""
	}
	if !strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "…") {
		text += "."
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// lines joins those that are not empty.
func lines(all ...string) string {
	var have []string
	for _, line := range all {
		if line != "" {
			have = append(have, line)
		}
	}
	return strings.Join(have, "\n")
}
