package body

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
)

// Markers are HTML comments that stand at the start of a line: nobody sees them,
// and every forge keeps them.
const (
	markBody     = "<!-- rocm-nightly:body 1 -->"
	markEnd      = "<!-- rocm-nightly:end "
	markVersions = "<!-- rocm-nightly:versions "
	markComment  = "<!-- rocm-nightly:comment "
	markBox      = "<!-- rocm-nightly:box "
	markClose    = " -->"
)

// Bounds of what is read from a forge.
const (
	maxRead     = 1 << 20  // bytes of a text; what is longer is no text of ours
	maxVersions = 12 << 10 // bytes of the marker of versions
	maxTicked   = 500      // boxes
)

// boxRE matches a line that is a box of ours.
var boxRE = regexp.MustCompile(`^( {0,3}[-*+] )\[([ xX])\] <!-- rocm-nightly:box ([a-z][a-z-]{0,31})(?: (\S{1,600}))? -->`)

// seal puts text between the markers, the last of which has its fingerprint.
func seal(text string) string {
	return markBody + "\n" + text + markEnd + fingerprint(text) + markClose + "\n"
}

// sealed is how many bytes seal adds.
const sealed = len(markBody) + 1 + len(markEnd) + 2*sha256.Size + len(markClose) + 1

// fingerprint is the SHA-256 of a text as it is when a forge and a browser have
// handled it: line ends and spaces at the end of a line do not count, nor does
// whether a box is ticked. Nor does the time of a run: one that finds the same
// again has nothing to tell.
func fingerprint(text string) string {
	h := sha256.New()
	for _, line := range strings.Split(strings.TrimSpace(unixLines(text)), "\n") {
		if m := boxRE.FindStringSubmatchIndex(line); m != nil {
			line = line[:m[4]] + " " + line[m[5]:]
		}
		line = strings.TrimRight(line, " \t")
		if strings.Contains(line, " UTC") {
			line = timeRE.ReplaceAllString(line, "")
		}
		h.Write([]byte(line + "\n"))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// timeRE matches the time of a run as a body has it.
var timeRE = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2} UTC`)

func unixLines(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

// Fingerprint returns the fingerprint that a body written by Render carries, ""
// if it carries none or somebody has changed the text since: a body whose
// fingerprint is that of a new one needs no edit. What is written above the
// first marker or below the last, as by other bots, is not looked at, nor is
// which boxes are ticked. A dashboard carries one too.
func Fingerprint(text string) string {
	if len(text) > maxRead {
		return ""
	}
	var inside []string
	found, open := "", false
	for _, line := range strings.Split(unixLines(text), "\n") {
		trimmed := strings.TrimRight(line, " \t")
		sum, isEnd := strings.CutPrefix(trimmed, markEnd)
		switch {
		case trimmed == markBody:
			if open || found != "" {
				return "" // there are two: somebody has put them there
			}
			open = true
		case isEnd:
			if !open {
				return ""
			}
			open, found = false, strings.TrimSuffix(sum, markClose)
		case open:
			inside = append(inside, line)
		}
	}
	if open || found == "" || fingerprint(strings.Join(inside, "\n")) != found {
		return ""
	}
	return found
}

// Keep returns text, which Render or Dashboard has written, with what others have
// written above and below our part of old: other bots add to requests. It is text
// alone where old has no part of ours, or where both together are longer than
// limit bytes.
func Keep(old, text string, limit int) string {
	if len(old) > maxRead {
		return text
	}
	old = unixLines(old)
	above, rest, begins := strings.Cut(old, markBody+"\n")
	at := strings.LastIndex(rest, "\n"+markEnd)
	if !begins || at < 0 || above != "" && !strings.HasSuffix(above, "\n") {
		return text
	}
	_, below, _ := strings.Cut(rest[at+1:], "\n")
	if below = strings.TrimSpace(below); below != "" {
		below = "\n" + below + "\n"
	}
	if updatedRE.MatchString(below) { // ours, of a dashboard
		below = ""
	}
	if above = strings.TrimSpace(above); above != "" {
		above += "\n\n"
	}
	if out := above + text + below; limit <= 0 || len(out) <= limit {
		return out
	}
	return text
}

// updatedRE matches the line below a dashboard.
var updatedRE = regexp.MustCompile(`\A\nUpdated [^\n]*\.\n\z`)

// versionsMark is the marker that Versions reads. What is not fit for it, by
// length or for its characters, is left out.
func versionsMark(in Input) string {
	m, size := map[string]string{}, 0
	for _, p := range in.Pins {
		if n := len(p.Target) + len(p.Version); fitToKeep(p.Target) && fitToKeep(p.Version) && size+8*n < maxVersions {
			m[p.Target] = p.Version
			size += 8 * n
		}
	}
	b, err := json.Marshal(m) // with < and > as escapes
	if err != nil || len(m) == 0 {
		return ""
	}
	return markVersions + jsonInert.Replace(string(b)) + markClose + "\n"
}

// jsonInert writes in JSON as escapes what ends a comment, and what a forge
// makes something of that reads the source.
var jsonInert = strings.NewReplacer("--", `-\u002d`, "#", `\u0023`, "!", `\u0021`, "@", `\u0040`, "/", `\u002f`)

// fitToKeep tells whether s may be a target or version of the marker.
func fitToKeep(s string) bool { return s != "" && len(s) <= 200 && plain.Is(s) }

// Versions returns, by target, the versions that a body written by Render is
// about, as its hidden marker has them; nil if it has none. Whoever may edit the
// body may have changed them.
func Versions(text string) map[string]string {
	var out map[string]string
	visible(text, func(line string) bool {
		raw, ok := strings.CutPrefix(line, markVersions)
		if !ok {
			return true
		}
		raw = strings.TrimSuffix(strings.TrimRight(raw, " \t"), markClose)
		if len(raw) > maxVersions || json.Unmarshal([]byte(raw), &out) != nil {
			out = nil
			return false
		}
		for target, version := range out {
			if !fitToKeep(target) || !fitToKeep(version) {
				out = nil
				break
			}
		}
		return false
	})
	if len(out) == 0 {
		return nil
	}
	return out
}

// Ticked returns the boxes of a body, or of a dashboard, that a person has
// ticked: "retry", or "retry:GROUP" where the box is of a group. A box that is
// not ours, or that stands in a block of code or in a comment, is none.
func Ticked(text string) []string {
	var out []string
	visible(text, func(line string) bool {
		m := boxRE.FindStringSubmatch(line)
		if m == nil || m[2] == " " {
			return true
		}
		name := m[3]
		if m[4] != "" {
			group, ok := fromToken(m[4])
			if !ok {
				return true
			}
			name += ":" + group
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
		return len(out) < maxTicked
	})
	return out
}

// box is a line that a person can tick. group may be "".
func box(name, group, label string) string {
	if group != "" {
		name += " " + token(group)
	}
	return "- [ ] " + markBox + name + markClose + label + "\n"
}

// token is s as one word that can stand in an HTML comment; fromToken reads it.
func token(s string) string {
	return strings.ReplaceAll(url.PathEscape(s), "-", "%2D")
}

func fromToken(s string) (string, bool) {
	out, err := url.PathUnescape(s)
	return out, err == nil && fitToKeep(out)
}

// fenceRE matches a line that may open or close a block of code.
var fenceRE = regexp.MustCompile("^[ \t>]*(`{3,}|~{3,})(.*)$")

// visible calls do with the lines of text that are neither in a block of code
// nor in a comment, until it returns false.
func visible(text string, do func(line string) bool) {
	if len(text) > maxRead {
		return
	}
	var open string // the fence of the block that this line is in
	comment := false
	for line := range strings.Lines(unixLines(text)) {
		line = strings.TrimRight(line, "\n")
		m := fenceRE.FindStringSubmatch(line)
		trimmed := strings.TrimLeft(line, " \t")
		switch {
		case comment:
			comment = !strings.Contains(line, "-->")
		case open != "":
			// A fence is closed by one of its kind that is as long and says nothing.
			if m != nil && m[1][0] == open[0] && len(m[1]) >= len(open) && strings.Trim(m[2], " \t") == "" {
				open = ""
			}
		case m != nil && (m[1][0] == '~' || !strings.Contains(m[2], "`")):
			open = m[1]
		case strings.HasPrefix(trimmed, "<!--") && !strings.Contains(trimmed, "-->"):
			comment = true
		default:
			if !do(line) {
				return
			}
		}
	}
}
