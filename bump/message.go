package bump

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// trailer marks the commits that a bump may replace.
const trailer = "Rocm-Nightly: bump"

// maxTitleTargets is how many targets a title names before it counts them.
const maxTitleTargets = 4

// titleOf is rocm: OLD -> NEW (gfx1151, gfx1103). Versions that differ
// between targets, or are unknown, are left out.
func titleOf(edits []Edit, pins []Pin) string {
	var olds, news, targets []string
	for _, p := range pins {
		if !touches(edits, p) {
			continue
		}
		targets = append(targets, p.Target)
		news = append(news, p.Version)
		if old := oldVersion(edits, p); old != "" {
			olds = append(olds, old)
		}
	}
	slices.Sort(olds)
	slices.Sort(news)
	olds, news = slices.Compact(olds), slices.Compact(news)
	what := strings.Join(news, ", ")
	if len(news) > 2 {
		what = fmt.Sprintf("%d versions", len(news))
	}
	if len(olds) == 1 && len(news) == 1 {
		what = olds[0] + " -> " + news[0]
	}
	who := strings.Join(targets, ", ")
	if len(targets) > maxTitleTargets {
		who = fmt.Sprintf("%d targets", len(targets))
	}
	return oneLine(fmt.Sprintf("rocm: %s (%s)", what, who))
}

func touches(edits []Edit, p Pin) bool {
	return slices.ContainsFunc(edits, func(e Edit) bool { return e.Target == p.Target })
}

// oldVersion is the value that p's version replaces, "" if it replaces none.
func oldVersion(edits []Edit, p Pin) string {
	for _, e := range edits {
		if e.Target == p.Target && e.To == p.Version {
			return e.From
		}
	}
	return ""
}

// bodyOf tells what a reader of the commit needs in order to trust it.
func bodyOf(edits []Edit, pins []Pin, skipped, verified []string) string {
	var b strings.Builder
	for _, p := range pins {
		if !touches(edits, p) {
			continue
		}
		fmt.Fprintf(&b, "%s\n", p.Target)
		field := func(name, value string) {
			if value != "" {
				fmt.Fprintf(&b, "  %-7s %s\n", name, oneLine(value))
			}
		}
		field("from", oldVersion(edits, p))
		field("to", p.Version)
		field("date", p.Date)
		field("url", p.URL)
		field("sri", p.SRI)
		field("sha256", p.Hex)
		if p.Size > 0 {
			field("size", strconv.FormatInt(p.Size, 10)+" bytes")
		}
		b.WriteByte('\n')
	}
	if len(verified) > 0 {
		b.WriteString("Verified:\n")
		for _, line := range verified {
			fmt.Fprintf(&b, "- %s\n", oneLine(line))
		}
		b.WriteByte('\n')
	}
	if len(skipped) > 0 {
		fmt.Fprintf(&b, "Left as they are, for there is no verified tarball: %s\n\n", oneLine(strings.Join(skipped, ", ")))
	}
	return b.String() + trailer + "\n"
}

// oneLine makes s safe to stand on a line: no line break, no control
// character, no end.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if isControl(r) {
			return ' '
		}
		return r
	}, s)
	if len(s) > 1000 {
		s = strings.ToValidUTF8(s[:1000], "") + "…"
	}
	return s
}
