package bump

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/bump/body"
)

// trailer marks the commits that a bump may replace.
const trailer = "Rocm-Nightly: bump"

const (
	maxTitleTargets = 4        // that a title names before it counts them
	maxTitle        = 200      // bytes of a title
	maxLabel        = 50       // bytes of a label, GitHub's bound
	maxMessage      = 16 << 10 // bytes of a commit's message
)

// titleOf is rocm: OLD -> NEW (gfx1151, gfx1103). Versions that differ
// between targets, or are unknown, are left out.
func titleOf(edits []Edit, pins []Pin) string {
	olds, news, targets := versionsOf(edits, pins)
	what := strings.Join(news, ", ")
	if len(news) > 2 {
		what = fmt.Sprintf("%d versions", len(news))
	}
	if len(olds) == 1 && len(news) == 1 && olds[0] != news[0] {
		what = olds[0] + " -> " + news[0]
	}
	who := strings.Join(targets, ", ")
	if len(targets) > maxTitleTargets {
		who = fmt.Sprintf("%d targets", len(targets))
	}
	return oneLine(fmt.Sprintf("rocm: %s (%s)", what, who))
}

// versionsOf returns the versions before and after, and the targets, that
// edits touch.
func versionsOf(edits []Edit, pins []Pin) (olds, news, targets []string) {
	for _, p := range pins {
		if !touches(edits, p) {
			continue
		}
		targets = append(targets, p.Target)
		news = append(news, p.Version)
		if old := oldVersion(edits, p); oldRE.MatchString(old) {
			olds = append(olds, old)
		}
	}
	slices.Sort(olds)
	slices.Sort(news)
	return slices.Compact(olds), slices.Compact(news), targets
}

// oldRE matches what a title says of the value that stood there: it may be anything,
// and a commit's first line closes issues and calls people.
var oldRE = regexp.MustCompile(`\A[0-9A-Za-z][0-9A-Za-z.+~_-]{0,63}\z`)

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

// texts are what the templates of a repository come to.
type texts struct {
	title, message string
	labels         []string
}

// summaryTexts expands the templates of repo. Where there is none, our own
// words are taken.
func summaryTexts(repo Repo, s Summary) (texts, error) {
	t := texts{title: s.Title, message: s.Body}
	var err error
	if repo.Title != "" {
		if t.title, err = expandSummary("title", repo.Title, s, maxTitle); err != nil {
			return texts{}, err
		}
		if t.title = strings.TrimSpace(t.title); strings.ContainsFunc(t.title, isControl) {
			return texts{}, errors.New("expand title: it must be one line")
		}
	}
	if repo.Message != "" {
		if t.message, err = expandSummary("message", repo.Message, s, maxMessage); err != nil {
			return texts{}, err
		}
		if strings.ContainsFunc(t.message, func(r rune) bool { return isControl(r) && r != '\n' && r != '\t' }) {
			return texts{}, errors.New("expand message: it holds a control character")
		}
	}
	for _, text := range repo.Labels {
		label, err := expandSummary("labels", text, s, maxLabel)
		if err != nil {
			return texts{}, err
		}
		if label = strings.TrimSpace(label); strings.ContainsFunc(label, isControl) || strings.Contains(label, ",") {
			return texts{}, fmt.Errorf("expand labels: %.60q holds a comma or a control character", label)
		}
		if label != "" && !slices.Contains(t.labels, label) {
			t.labels = append(t.labels, label)
		}
	}
	if strings.TrimSpace(t.title) == "" {
		return texts{}, errors.New("expand title: it is empty")
	}
	return t, nil
}

func expandSummary(key, text string, s Summary, limit int) (string, error) {
	value, err := execute(key, text, s)
	if err != nil {
		return "", fmt.Errorf("expand template of %s: %w (fields are Name, Old, New, Targets, Families, Pins, Date, Title, Body)", key, err)
	}
	if len(value) > limit {
		return "", fmt.Errorf("expand template of %s: it gives %d bytes, more than %d", key, len(value), limit)
	}
	return value, nil
}

// summaryOf returns what templates see of a change.
func summaryOf(name string, edits []Edit, pins []Pin, message string) Summary {
	s := Summary{Name: name, Title: titleOf(edits, pins), Body: message}
	var olds, news []string
	olds, news, s.Targets = versionsOf(edits, pins)
	if len(olds) == 1 {
		s.Old = olds[0]
	}
	if len(news) == 1 {
		s.New = news[0]
	}
	for _, p := range pins {
		if !touches(edits, p) {
			continue
		}
		s.Pins = append(s.Pins, p)
		if !slices.Contains(s.Families, p.Family) {
			s.Families = append(s.Families, p.Family)
		}
		s.Date = max(s.Date, p.Date)
	}
	return s
}

// messageOf is the whole message of a commit: title, text, trailers.
func messageOf(title, text string, signoff string) string {
	var b strings.Builder
	b.WriteString(title + "\n\n")
	if text = strings.TrimSpace(text); text != "" {
		b.WriteString(text + "\n\n")
	}
	if signoff != "" {
		b.WriteString("Signed-off-by: " + signoff + "\n")
	}
	return b.String() + trailer + "\n"
}

// titleMark says in a request's body which title we last gave it, or saw
// somebody else give it, so that a person's title is known and kept.
var titleMark = regexp.MustCompile(`\n*<!-- rocm-nightly title (ours|theirs) ([0-9a-f]{16}) -->\n*`)

// mark is what a titleMark says.
type mark struct {
	theirs bool
	sum    string // of the title; "" if there is no mark
}

func titleSum(title string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.TrimSpace(title))))[:16]
}

// markTitle adds the mark to a body.
func markTitle(text, title string, theirs bool) string {
	who := "ours"
	if theirs {
		who = "theirs"
	}
	return strings.TrimRight(text, "\n") + fmt.Sprintf("\n\n<!-- rocm-nightly title %s %s -->\n", who, titleSum(title))
}

// readMark splits a body into what body.Render wrote, with what people wrote
// around it, and the mark.
func readMark(text string) (string, mark) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	all := titleMark.FindAllStringSubmatch(text, -1)
	if all == nil {
		return text, mark{}
	}
	last := all[len(all)-1]
	rest := strings.TrimSpace(titleMark.ReplaceAllString(text, "\n\n"))
	return rest + "\n", mark{last[1] == "theirs", last[2]}
}

// renamed reports whether somebody has changed the title since the mark was
// made.
func (m mark) renamed(title string) bool { return m.sum != "" && m.sum != titleSum(title) }

// sameBody reports whether the body that a request has says what want says and
// nobody has changed it.
func sameBody(have, want string) bool {
	have, hm := readMark(have)
	want, wm := readMark(want)
	f := body.Fingerprint(want)
	return hm == wm && f != "" && body.Fingerprint(have) == f
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
