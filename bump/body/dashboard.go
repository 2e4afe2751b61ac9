package body

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// The states of an Entry, and the headings that they have, in their order.
var states = []struct{ state, heading, about string }{
	{"failed", "Failed", "The last run could not do these."},
	{"open", "Open", "Requests that wait for somebody to merge them."},
	{"pending", "Pending", "These wait: for an age, a window, another target, or to be approved."},
	{"limited", "Limited", "As many requests are open, or were made in this hour, as the config allows."},
	{"ignored", "Ignored", "Closed by somebody before, or done by somebody else's request."},
	{"current", "Current", "These name the newest version that may be offered."},
}

// What a box of the dashboard means; a box of another name says its name.
var labels = map[string]string{
	"retry":   "make the request anew",
	"ignore":  "do not offer this version",
	"approve": "open the request now",
}

var boxNameRE = regexp.MustCompile(`\A[a-z][a-z-]{0,31}\z`)

// Dashboard writes the text of the issue that lists entries, by their states, in
// at most limit bytes; 0 is what the flavor's forge takes. Entries of the last
// states are left out first, and counted. Ticked returns the boxes of a group as
// "retry:GROUP". When it was updated does not count for the Fingerprint.
func Dashboard(flavor Flavor, entries []Entry, updated string, limit int) string {
	if limit <= 0 {
		limit = flavor.limit()
	}
	foot := ""
	if updated != "" {
		foot = "\nUpdated " + words(updated) + ".\n"
	}
	limit -= sealed + len(foot)
	const intro = "What rocm-nightly does to this repository. It looks at the boxes when it runs next.\n\n"
	var b strings.Builder
	b.WriteString(intro)
	left := 0
	for _, s := range states {
		lines := entriesOf(entries, s.state)
		if len(lines) == 0 {
			continue
		}
		open := "## " + s.heading + "\n\n" + s.about + "\n\n"
		n := write(&b, open, lines, limit-moreRoom)
		left += len(lines) - n
	}
	if len(entries) == 0 {
		b.WriteString("No bump is configured.\n\n")
	}
	if left > 0 {
		fmt.Fprintf(&b, "… and %d more, which did not fit.\n\n", left)
	}
	if b.Len() > limit {
		return ""
	}
	return seal(b.String()) + foot
}

// moreRoom is for the line that counts what did not fit.
const moreRoom = 80

// write writes open and as many lines as fit below limit, and returns how many.
func write(b *strings.Builder, open string, lines []string, limit int) int {
	if b.Len()+len(open)+len(lines[0])+1 > limit {
		return 0
	}
	b.WriteString(open)
	n := 0
	for n < len(lines) && b.Len()+len(lines[n])+1 <= limit {
		b.WriteString(lines[n])
		n++
	}
	b.WriteString("\n")
	return n
}

// entriesOf are the entries of one state, each with its boxes. An entry of no
// known state has failed to be told apart, and is shown as one that failed.
func entriesOf(entries []Entry, state string) []string {
	var out []string
	for _, e := range entries {
		s := e.State
		if !slices.ContainsFunc(states, func(k struct{ state, heading, about string }) bool { return k.state == s }) {
			s = "failed"
		}
		if s == state {
			out = append(out, e.item())
		}
	}
	return out
}

// item is an entry as an item of a list.
func (e Entry) item() string {
	line := "- **" + code(e.Group) + "**"
	if e.Version != "" {
		line += ": " + code(e.Version)
	}
	if e.Request != "" {
		line += ", " + pageLink(e.Request)
	}
	if e.Why != "" {
		line += " – " + words(e.Why)
	}
	line += "\n"
	for _, name := range e.Boxes {
		if !boxNameRE.MatchString(name) || !fitToKeep(e.Group) {
			continue
		}
		label := cmp.Or(labels[name], name)
		if name == BoxRetry && e.State == "ignored" {
			label = "offer this version again"
		}
		line += "  " + box(name, e.Group, label)
	}
	return line
}

// pageRE matches addresses that end a link nowhere but at its end.
var pageRE = regexp.MustCompile(`\Ahttps?://[A-Za-z0-9.:-]{1,255}/[A-Za-z0-9._~/-]{1,500}\z`)

// pageLink is a link to the page of a request, where its address is one that
// cannot be misread, else the address as code.
func pageLink(page string) string {
	u, err := url.Parse(page)
	if err != nil || u.User != nil || !pageRE.MatchString(page) || strings.Contains(page, "/../") {
		return codeURL(page)
	}
	return "[the request](" + page + ")"
}
