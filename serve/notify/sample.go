package notify

import (
	"time"

	"github.com/rocm-nightly/rocm-nightly/update"
)

// Sample is an example of an event of a kind, made by what makes real ones; false
// if there is no such kind. notify-test sends it, and templates are tried on it.
func Sample(kind, host string, now time.Time) (Event, bool) {
	s := scene{host, now}
	const slot, from, to = "nightly-gfx1151", "10.2.0a20260929", "10.2.0a20260930"
	out := &update.Outcome{Install: slot, From: from, To: to}
	var e Event
	switch kind {
	case NewNight:
		e = Looked(&update.Looked{Installs: []update.LookedAt{{Install: slot, Active: from, Newest: to, Admits: true, Message: "an update would install it"}}}, host, now)[0]
	case Installed:
		out.Verified = &update.Verified{Against: []string{"the ledger"}}
		e = s.installed(out)
	case Stale:
		still := standstill{scene: s}
		still.found(slot, from, &update.Stale{Age: "120h0m0s", Cause: "skipped", Detail: "AMD skipped nights or has moved them"}, false)
		e = still.events()[0]
	case NewBytes:
		out.Exit, out.Error = update.ExitNewBytes, "the digest is not the one that was seen before"
		e = s.newBytes(out)
	case Failed:
		out.Exit, out.Error = update.ExitFailed, "no space is left on the device"
		e = s.failed(out)
	case Recovered:
		e = s.recovered(slot, Failed, slot+" is in order again", "10.2.0a20260930 is active.")
	case Refused:
		out.Exit, out.Error = update.ExitRefused, "the audit refused the tree: 1 finding more than what is active has"
		e = s.refused(out)
	case Opened:
		e = s.opened(&update.Bumped{
			Name: "my-flake", Action: actionOpened, Number: 7, URL: "https://forge.example/me/rocm-flake/pull/7", Title: "rocm: " + from + " -> " + to,
			Edits: []update.Edited{{Path: "flake.nix", Key: "version", Target: "gfx1151", From: from, To: to}},
		})
	case Test:
		e = s.event(Test, "notify-test", "", "rocm-nightly: a test", "If this can be read, events of rocm-nightly arrive here.")
		return e, true
	default:
		return Event{}, false
	}
	e.Text += "\n(This is an example, sent by notify-test: nothing of it has happened.)"
	return e, true
}
