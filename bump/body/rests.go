package body

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/audit/diff"
	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
	"github.com/rocm-nightly/rocm-nightly/internal/plain"
)

// What Proof.Against may hold beside names of who vouched for the bytes.
const (
	FirstUse = "trust on first use"            // nobody did
	NewBytes = "new bytes were to be accepted" // who did had told others, and a person knew
)

// Bounds of the lists of what to look at, and of what nobody could look at.
const (
	maxLook  = 24
	maxBlind = 6
)

// verdict says in one place what a reader has to decide on.
func (s story) verdict() string {
	if len(s.rows) == 0 {
		return ""
	}
	look, runs := s.look(), 0
	var firsts []string
	for _, r := range s.rows {
		if r.proof != nil && r.proof.Smoke != nil && r.proof.Smoke.Passed > 0 {
			runs++
		}
		if r.proof != nil && firstUse(r.proof.Against) {
			firsts = append(firsts, code(r.pin.Target))
		}
	}
	var b strings.Builder
	if len(look) == 0 {
		b.WriteString("**Nothing was found that speaks against merging this.** Every tarball was downloaded, verified, repacked and audited")
		if runs == len(s.rows) {
			b.WriteString(", and programs of it were run")
		}
		b.WriteString(".\n\n")
	} else {
		b.WriteString("**Look at this before merging:**\n\n")
		for _, l := range look[:min(len(look), maxLook)] {
			b.WriteString("- " + l + "\n")
		}
		if more := len(look) - maxLook; more > 0 {
			fmt.Fprintf(&b, "- … and %d more\n", more)
		}
		b.WriteString("\n")
	}
	b.WriteString(s.blind())
	// Most nights are like this, so that it is no cause for alarm.
	if len(firsts) > maxNamed {
		firsts = []string{count(len(firsts), "target")}
	}
	if len(firsts) > 0 {
		b.WriteString("First use of " + strings.Join(firsts, ", ") + ": AMD signs nothing, and nobody had told a digest of these bytes before. From now on they are held to this one.\n\n")
	}
	return b.String()
}

// blind tells what the comparisons could not look at: that nothing was found
// there says nothing.
func (s story) blind() string {
	var lines []string
	for _, r := range s.rows {
		t, p := "- "+code(r.pin.Target)+": ", r.proof
		switch {
		case p == nil: // which is told as what speaks against it
		case p.Diff == nil:
			lines = append(lines, t+"the trees were not compared: "+words(cmp.Or(p.NoDiff, "the one that the pin names now is not here"))+"\n")
		default:
			for _, n := range p.Diff.Notes {
				lines = append(lines, t+words(n)+"\n")
			}
		}
	}
	if len(lines) == 0 {
		return ""
	}
	out := "Not looked at, so that something may have changed there:\n\n" + strings.Join(lines[:min(len(lines), maxBlind)], "")
	if more := len(lines) - maxBlind; more > 0 {
		out += fmt.Sprintf("- … and %d more\n", more)
	}
	return out + "\n"
}

// look lists what speaks against merging, the gravest first.
func (s story) look() []string {
	var no, audits, smokes, risks []string
	for _, r := range s.rows {
		t, p := code(r.pin.Target)+": ", r.proof
		if p == nil {
			no = append(no, t+"there is no record that this tarball was verified and audited")
			continue
		}
		if slices.Contains(p.Against, NewBytes) {
			no = append(no, t+"AMD has uploaded this version again, with other bytes than before, and a person has accepted them")
		}
		switch a := p.Audit; {
		case a == nil:
			audits = append(audits, t+"it was not audited")
		case a.Refused || a.Fatal > 0:
			audits = append(audits, fmt.Sprintf("%sthe audit has %s, %d of them fatal", t, count(a.Fatal+a.Required, "grave finding"), a.Fatal))
		}
		if p.Smoke != nil && p.Smoke.Failed > 0 {
			smokes = append(smokes, t+count(p.Smoke.Failed, "program")+" of it failed to run")
		}
		if p.Diff != nil {
			for _, k := range p.Diff.Risks[:min(len(p.Diff.Risks), 4)] {
				risks = append(risks, t+words(k.Subject)+" "+words(k.Detail))
			}
			if more := len(p.Diff.Risks) - 4; more > 0 {
				risks = append(risks, t+count(more, "further thing")+" may break, see below")
			}
		}
	}
	for _, c := range s.in.Checks {
		if !c.Passed {
			smokes = append(smokes, "the check "+code(c.Command)+" failed")
		}
	}
	return slices.Concat(no, audits, smokes, risks)
}

// firstUse tells whether nobody had told a digest of the bytes.
func firstUse(against []string) bool {
	return len(against) == 0 || slices.Contains(against, FirstUse)
}

// known are the others of what bytes were checked against.
func known(against []string) []string {
	out := slices.DeleteFunc(slices.Clone(against), func(a string) bool { return a == FirstUse })
	return out[:min(len(out), 12)]
}

// proofs tell, for each target, what was done and what came of it.
func (s story) proofs(all bool) string {
	var b strings.Builder
	for _, r := range s.rows {
		if p := r.proof; p != nil {
			b.WriteString("- " + code(r.pin.Target) + "\n")
			for _, l := range p.lines(r, all) {
				b.WriteString("  - " + l + "\n")
			}
			if all && p.Audit != nil {
				for _, f := range p.Audit.Findings[:min(len(p.Audit.Findings), maxFindings)] {
					b.WriteString("    - " + cmp.Or(words(f), span("")) + "\n")
				}
			}
		}
	}
	if b.Len() == 0 {
		return ""
	}
	if n := len(s.rows); n > maxShown { // a reader would look for what comes after it
		return fold("What this rests on: "+count(n, "target"), b.String()+"\n")
	}
	return "### What this rests on\n\n" + b.String() + "\n"
}

func (p *Proof) lines(r row, all bool) []string {
	var out []string
	if all && r.pin.URL != "" {
		out = append(out, "downloaded from "+codeURL(r.pin.URL))
	}
	var parts []string
	for _, a := range known(p.Against) {
		parts = append(parts, words(a))
	}
	if firstUse(p.Against) {
		parts = append(parts, "no digest, for nobody had told one (first use)")
	}
	out = append(out, "verified against "+strings.Join(parts, "; "))
	if l := p.repacked(); all && l != "" {
		out = append(out, l)
	}
	if s := p.Smoke; s != nil {
		out = append(out, fmt.Sprintf("programs of it, run on the %s: %d passed, %d failed, %d skipped", words(s.Mode), s.Passed, s.Failed, s.Skipped))
		if all {
			for _, f := range s.Failures[:min(len(s.Failures), maxFindings)] {
				out = append(out, "failed: "+cmp.Or(words(f), span("")))
			}
		}
	}
	// The audit is last, for its findings follow.
	if a := p.Audit; a != nil {
		verdict := "passed"
		if a.Refused {
			verdict = "**refused**"
		}
		out = append(out, fmt.Sprintf("audit (%s): %s; %d fatal, %d required, %s, %d allowed by the config", words(a.Scope), verdict, a.Fatal, a.Required, count(a.Warnings, "warning"), a.Allowed))
	}
	return out
}

func (p *Proof) repacked() string {
	var parts []string
	if p.Entries > 0 {
		parts = append(parts, "to "+count(p.Entries, "file")+", "+diskspace.Text(p.Bytes))
	}
	if p.Tool != "" {
		parts = append(parts, "by "+words(p.Tool))
	}
	if !p.Ran.IsZero() {
		parts = append(parts, "until "+p.Ran.UTC().Format(time.DateTime)+" UTC")
	}
	if p.Recipe != "" {
		parts = append(parts, "recipe "+code(p.Recipe))
	}
	if p.Tree != "" {
		parts = append(parts, "list of files "+code(p.Tree))
	}
	if len(parts) == 0 {
		return ""
	}
	return "repacked " + strings.Join(parts, "; ")
}

// codeURL is an address that is shown and not linked. It may be longer than a
// name.
func codeURL(s string) string {
	if len(s) > 1000 {
		return code(s)
	}
	return span(inert(cleanURL(s)))
}

func (s story) checks(all bool) string {
	if len(s.in.Checks) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("### Checks in the edited checkout\n\n")
	for _, c := range s.in.Checks[:min(len(s.in.Checks), maxChecks)] {
		state := "passed"
		if !c.Passed {
			state = "**failed**"
		}
		// How long it took differs each time, and would make each text another.
		b.WriteString(code(c.Command) + ": " + state + "\n\n")
		if lines := tail(c.Tail); all && !c.Passed && len(lines) > 0 {
			b.WriteString(fence("", lines))
		}
	}
	return b.String()
}

// tail is the last lines of an output.
func tail(s string) []string {
	s = strings.TrimRight(unixLines(s[max(0, len(s)-maxTail*maxLine):]), "\n ")
	if s == "" {
		return nil
	}
	lines := strings.Split(s, "\n")
	return lines[max(0, len(lines)-maxTail):]
}

// diffs are the differences of the trees, which share what room there is.
func (s story) diffs() []section {
	var out []section
	left := 0
	for _, r := range s.rows {
		if r.proof != nil && r.proof.Diff != nil {
			left++
		}
	}
	for _, r := range s.rows {
		if r.proof == nil || r.proof.Diff == nil {
			continue
		}
		share := left
		left--
		out = append(out, section{name: "differences of the trees", fill: func(room int) string {
			return difference(r.pin.Target, r.proof.Diff, room/share)
		}})
	}
	return out
}

// difference is what differs between two trees, in at most room bytes.
func difference(target string, r *diff.Report, room int) string {
	title := "What is different in the tree of " + tag(target) + ": "
	if n := len(r.Risks); n > 0 {
		title += count(n, "thing") + " may break; "
	}
	title += count(r.Files.Changed.Files, "file") + " changed, " + strconv.Itoa(r.Files.Added.Files) + " added, " + strconv.Itoa(r.Files.Removed.Files) + " removed"
	frame := fold(title, "\n")
	if room < len(frame)+minFill/2 {
		return ""
	}
	// What inert adds has to fit too.
	for limit := room - len(frame); limit > 0; limit -= limit/4 + 1 {
		var b strings.Builder
		if err := r.Markdown(&b, limit); err != nil || strings.TrimSpace(b.String()) == "" {
			return ""
		}
		if out := fold(title, inertLines(b.String())+"\n"); len(out) <= room {
			return out
		}
	}
	return ""
}

// inertLines is Markdown of ours with foreign text in its code.
func inertLines(s string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(s, "\n") + "\n") {
		b.WriteString(inert(plain.Text(strings.TrimSuffix(line, "\n"))) + "\n")
	}
	return b.String()
}
