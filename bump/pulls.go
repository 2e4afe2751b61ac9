package bump

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/bump/body"
	"github.com/rocm-nightly/rocm-nightly/bump/forge"
)

const (
	// closingTime is how long before a closing its comment may have been made.
	closingTime = time.Hour
	maxRivals   = 10      // requests whose diff is read
	rivalDiff   = 1 << 20 // bytes of each
	maxListed   = 1000    // requests that are counted for limits
	branchRoot  = "rocm-nightly/"
)

// declined returns the page of the newest of our requests that was for this
// version, or a newer one, and that a person has closed unmerged; "" if there
// is none, or they want it back: by the box, the label or a new title.
func (l *life) declined(ctx context.Context, mine []forge.Pull) (string, error) {
	if l.repo.Reopen == reopenAlways {
		return "", nil
	}
	for _, p := range mine {
		if p.State != forge.Closed || p.Base != l.base {
			continue
		}
		text, m := readMark(p.Body)
		if !l.covers(body.Versions(text)) {
			continue
		}
		for _, box := range body.Ticked(text) {
			if box == body.BoxRetry {
				return "", nil
			}
		}
		for _, label := range p.Labels {
			if label == labelRetry {
				return "", nil
			}
		}
		if m.renamed(p.Title) {
			return "", nil
		}
		if ours, err := l.closedByUs(ctx, p); err != nil {
			return "", err
		} else if !ours {
			return p.Page, nil
		}
	}
	return "", nil
}

// covers reports whether none of what would be offered is newer than versions.
func (l *life) covers(versions map[string]string) bool {
	for _, pin := range l.change.pins {
		v, ok := versions[pin.Target]
		if !ok || v != pin.Version && newer(pin.Version, v) {
			return false
		}
	}
	return len(versions) > 0
}

// closedByUs tells our closings from people's by the comment before them.
func (l *life) closedByUs(ctx context.Context, p forge.Pull) (bool, error) {
	comments, err := l.forge.Comments(ctx, p.Number)
	if err != nil {
		return false, err
	}
	for _, c := range comments {
		if l.isOurs(c, kindClosed) && (p.Ended.IsZero() || p.Ended.Sub(c.Created).Abs() < closingTime) {
			return true, nil
		}
	}
	return false, nil
}

// isOurs reports whether we made the comment, of that kind.
func (l *life) isOurs(c forge.Comment, kind string) bool {
	return body.Marked(c.Body) == kind && (l.info.Login == "" || strings.EqualFold(c.Author, l.info.Login))
}

// rival returns the page of somebody else's open request that brings all of
// this to the same files; "" if there is none.
func (l *life) rival(ctx context.Context) (string, error) {
	all, err := l.forge.Pulls(ctx, forge.Query{State: forge.Opened, Base: l.base})
	if err != nil {
		return "", err
	}
	read := 0
	for _, p := range all {
		if p.State != forge.Opened || p.Base != l.base || l.fromUs(p) || !l.mentions(p) {
			continue
		}
		if read++; read > maxRivals {
			break
		}
		diff, err := l.forge.Diff(ctx, p.Number, rivalDiff)
		if gone(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		if l.brings(diff) {
			return p.Page, nil
		}
	}
	return "", nil
}

// fromUs reports whether p is from a branch of this bump.
func (l *life) fromUs(p forge.Pull) bool {
	return strings.EqualFold(p.HeadRepo, l.headRepo) && (p.Head == l.u.branch || p.Head == l.repo.Branch || strings.HasPrefix(p.Head, l.repo.Branch+"-") && l.repo.Group == groupIndependent)
}

// mentions reports whether p's words have a version of ours in them, so that
// its diff is worth reading.
func (l *life) mentions(p forge.Pull) bool {
	for _, pin := range l.change.pins {
		if pin.Version != "" && (strings.Contains(p.Title, pin.Version) || strings.Contains(p.Body, pin.Version) || strings.Contains(p.Head, pin.Version)) {
			return true
		}
	}
	return false
}

// brings reports whether a diff adds every new value to its file.
func (l *life) brings(diff string) bool {
	added := map[string]*strings.Builder{}
	var file *strings.Builder
	for line := range strings.Lines(diff) {
		line = strings.TrimRight(line, "\r\n")
		if path, is := strings.CutPrefix(line, "+++ b/"); is {
			file = &strings.Builder{}
			added[strings.TrimSuffix(path, "\t")] = file
		} else if text, is := strings.CutPrefix(line, "+"); is && file != nil {
			file.WriteString(text + "\n")
		}
	}
	for _, e := range l.change.edits {
		if e.Attr == "url" && strings.Contains(e.To, "://") {
			continue // an address may be composed
		}
		if b := added[e.Path]; b == nil || !strings.Contains(b.String(), e.To) {
			return false
		}
	}
	return len(l.change.edits) > 0
}

// limits says why a push, or a new request, has to wait. They are counted from
// what the forge tells, so that no state of ours is needed.
func (l *life) limits(ctx context.Context, isOpen bool) (push, open string, err error) {
	if push, err = l.window(); err != nil || push != "" {
		return push, push, err
	}
	if l.repo.OpenLimit == 0 && l.repo.PullsPerHour == 0 && l.repo.CommitsPerHour == 0 {
		return "", "", nil
	}
	all, err := l.forge.Pulls(ctx, forge.Query{Limit: maxListed})
	if err != nil {
		return "", "", err
	}
	hour := l.now.Add(-time.Hour)
	opened, born, changed := 0, 0, 0
	for _, p := range all {
		if !strings.EqualFold(p.HeadRepo, l.headRepo) || !strings.HasPrefix(p.Head, branchRoot) && !l.fromUs(p) {
			continue
		}
		if p.State == forge.Opened {
			opened++
		}
		if p.Created.After(hour) {
			born++
		}
		if p.Updated.After(hour) {
			changed++
		}
	}
	reached := func(n, limit int) bool { return limit > 0 && n >= limit }
	if reached(changed, l.repo.CommitsPerHour) {
		push = fmt.Sprintf("%d requests have changed within the hour, and the limit is %d commits", changed, l.repo.CommitsPerHour)
	}
	switch {
	case isOpen:
	case reached(opened, l.repo.OpenLimit):
		open = fmt.Sprintf("%d requests are open, and the limit is %d", opened, l.repo.OpenLimit)
	case reached(born, l.repo.PullsPerHour):
		open = fmt.Sprintf("%d requests were opened within the hour, and the limit is %d", born, l.repo.PullsPerHour)
	}
	if open != "" && push == "" && !isOpen {
		push = open // a branch without a request is of no use
	}
	return push, open, nil
}
